//! `priorities`: classes of importance, and the class of a route or rule.

use tollgate_rules::nearest::suggest;
use tollgate_rules::problem::{Problems, quote};
use tollgate_rules::read::FieldValue;

use crate::priority::{Priorities, Priority};

/// Reads `[critical, default, sheddable, test]`, the most important first.
pub fn read_priorities(value: FieldValue<'_>, problems: &mut Problems) -> Priorities {
    let mut names = Vec::new();
    for item in value.items("classes, the most important first", problems).collect::<Vec<_>>() {
        names.extend(item.text(problems));
    }
    match Priorities::new(names) {
        Ok(priorities) => priorities,
        Err(error) => {
            if matches!(value.node.kind, tollgate_rules::yaml::YamlKind::List(_)) {
                problems.push(value.fault("bad-priorities", error));
            }
            Priorities::default()
        }
    }
}

/// Reads the name of a class, such as the `priority` of a route.
pub fn read_priority(value: FieldValue<'_>, known: &Priorities, problems: &mut Problems) -> Priority {
    let Some(name) = value.text(problems) else { return known.unnamed() };
    known.find(name).unwrap_or_else(|| {
        let names: Vec<&str> = known.names().chain([Priorities::HEALTH]).collect();
        let message = format!("{} is {}, which is no class of priority", value.path, quote(name));
        problems.push(value.problem("unknown-value", message).help(suggest(name, &names)));
        known.unnamed()
    })
}
