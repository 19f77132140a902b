//! Fields of which exactly one must be there.

use tollgate_rules::problem::Problems;
use tollgate_rules::read::MapFields;

/// The one of these fields that is there; a problem if there are none or several.
pub(super) fn one_of(
    fields: &MapFields<'_>,
    names: &[&'static str],
    help: &str,
    problems: &mut Problems,
) -> Option<&'static str> {
    let found: Vec<&'static str> = names.iter().copied().filter(|name| fields.get(name).is_some()).collect();
    if let [name] = *found {
        return Some(name);
    }
    if fields.known() {
        let message = match found.as_slice() {
            [] => format!("{} has none of {}", fields.value.path, names.join(", ")),
            _ => format!("{} has {}", fields.value.path, found.join(" and ")),
        };
        problems.push(fields.value.problem("out-of-range", message).help(format!("write {help}")));
    }
    None
}
