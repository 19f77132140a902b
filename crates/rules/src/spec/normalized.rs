//! Rules in a Unicode form.

use super::{Cost, MatchSpec, RuleSpec};
use crate::normalize::{Normalize, has_canonical_spelling};
use crate::pattern::Pattern;

impl RuleSpec {
    /// The rule with the values in its conditions in `form`; `None` if they are already. Globs with inner stars are
    /// compared as written.
    pub fn normalized(&self, form: Normalize) -> Option<RuleSpec> {
        if form == Normalize::None {
            return None;
        }
        let mut new = self.clone();
        normalize(&mut new.matches, form);
        if let Cost::ByMatch(cases) = &mut new.cost {
            cases.iter_mut().for_each(|case| normalize(&mut case.matches, form));
        }
        (new != *self).then_some(new)
    }
}

fn normalize(matches: &mut MatchSpec, form: Normalize) {
    let conditions = matches.attributes.iter_mut().filter(|(name, _)| !has_canonical_spelling(name));
    for pattern in conditions.flat_map(|(_, matcher)| matcher.any.iter_mut().chain(&mut matcher.none)) {
        if let Pattern::Exact(text) | Pattern::Prefix(text) = pattern
            && let Some(new) = form.rewritten(text)
        {
            *text = new;
        }
    }
}
