//! Rules in a Unicode form.

use super::{Cost, MatchSpec, RuleSpec};
use crate::normalize::{Normalize, has_a_form_of_its_own};
use crate::pattern::Pattern;

impl Normalize {
    /// A rule whose conditions are texts in this form. Wildcards between texts are compared as they are written.
    /// None if it is so already.
    pub(crate) fn rule(self, spec: &RuleSpec) -> Option<RuleSpec> {
        if self == Self::None {
            return None;
        }
        let mut new = spec.clone();
        self.conditions(&mut new.matches);
        if let Cost::ByMatch(cases) = &mut new.cost {
            cases.iter_mut().for_each(|case| self.conditions(&mut case.matches));
        }
        (new != *spec).then_some(new)
    }

    fn conditions(self, matches: &mut MatchSpec) {
        let conditions = matches.attributes.iter_mut().filter(|(name, _)| !has_a_form_of_its_own(name));
        for pattern in conditions.flat_map(|(_, matcher)| matcher.any.iter_mut().chain(&mut matcher.none)) {
            if let Pattern::Exact(text) | Pattern::Prefix(text) = pattern
                && let Some(new) = self.rewritten(text)
            {
                *text = new;
            }
        }
    }
}
