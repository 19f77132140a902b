//! Reports `${NAME}` in a rules file: variables are not replaced, so the value cannot be meant.

use crate::problem::Problem;
use crate::yaml::{YamlKind, YamlNode};

/// Adds a problem for each value with a variable (RELIABILITY Y11).
pub(super) fn problems(node: &YamlNode, found: &mut Vec<Problem>) {
    match &node.kind {
        YamlKind::Scalar { text, .. } => {
            if let Some(name) = variable(text) {
                let message = format!("`${{{name}}}` is not replaced by anything: a rules file is read as it is");
                let help = "write the value itself. Rules contain no secrets: tokens and the key of digests are settings of the \
                            server, given by environment or file, and keys of clients are matched by the value of `api_key`";
                found.push(Problem::error("unreplaced-variable", node.position(), "", message).help(help));
            }
        }
        YamlKind::List(items) => items.iter().for_each(|item| problems(item, found)),
        YamlKind::Map(entries) => entries.iter().for_each(|(_, value)| problems(value, found)),
    }
}

fn variable(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("${")?;
    let (name, _) = rest.split_once('}')?;
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain.then_some(name)
}
