//! Plans of the rules file and of the database in one namespace.
//!
//! A plan of the file hides one of the same name. What names it means the file's plan from then on, `extends` of other
//! plans of the database included: a plan of the database must not lose the rules that it inherits, and a hidden one must
//! not bring any.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use tollgate_rules::{RuleFile, RuleSpec, plan};

/// The file with the modes that the database sets for rules of its namespace, and with the plans of the database that the
/// file does not have. A default plan of the file comes first.
pub(super) fn switched<'a>(file: &'a RuleFile, database: &RuleFile) -> Cow<'a, RuleFile> {
    if database.modes.is_empty() && database.plans.is_empty() {
        return Cow::Borrowed(file);
    }
    let beside = database.plans.iter().filter(|plan| !has_plan(file, &plan.name)).cloned();
    let plans = file.plans.iter().cloned().chain(beside).collect();
    Cow::Owned(RuleFile { modes: database.modes.clone(), plans, ..file.clone() })
}

/// True if the file has a plan of this name.
pub(super) fn has_plan(file: &RuleFile, name: &str) -> bool {
    file.plans.iter().any(|plan| plan.name == name)
}

/// Where the file hides plans of the database, makes the rules of plans those of the plans of both sources: the rules of
/// `together`, which has these plans, and the rules of the database that are left.
pub(super) fn join(
    file: &RuleFile,
    database: &RuleFile,
    together: &mut Cow<'_, RuleFile>,
    rules: &mut Cow<'_, [Arc<RuleSpec>]>,
) {
    if !database.plans.iter().any(|plan| has_plan(file, &plan.name)) {
        return;
    }
    let expanded: HashMap<String, RuleSpec> =
        plan::expand(&together.plans).into_iter().filter_map(|rule| Some((rule.name.clone()?, rule))).collect();
    let joined = |rule: &RuleSpec| {
        let known = expanded.get(rule.name.as_ref().filter(|_| rule.plan.is_some())?)?;
        let is_same = known.matches == rule.matches && known.replaces == rule.replaces;
        (!is_same).then(|| (known.matches.clone(), known.replaces.clone()))
    };
    for rule in &mut together.to_mut().rules {
        if let Some((matches, replaces)) = joined(rule) {
            (rule.matches, rule.replaces) = (matches, replaces);
        }
    }
    if rules.iter().any(|rule| joined(rule).is_some()) {
        for rule in rules.to_mut() {
            if let Some((matches, replaces)) = joined(rule) {
                *rule = Arc::new(RuleSpec { matches, replaces, ..RuleSpec::clone(rule) });
            }
        }
    }
}
