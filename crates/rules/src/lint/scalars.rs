//! Warnings about values that are text here and something else to other readers of YAML.

use crate::position::SourcePosition;
use crate::problem::Problem;
use crate::yaml::{YamlKind, YamlNode};

/// Checks conditions of rules and attributes of clients; other fields have a fixed type.
pub(super) fn warnings(root: &YamlNode) -> Vec<Problem> {
    let mut found = Vec::new();
    for (list, fields) in [("rules", ["match", "name", "cost"]), ("clients", ["attributes", "tier", "org"])] {
        for (number, item) in root.get(list).map(YamlNode::items).unwrap_or_default().iter().enumerate() {
            for field in fields {
                if let Some(node) = item.get(field) {
                    walk(node, &format!("{list}[{number}].{field}"), &mut found);
                }
            }
        }
    }
    found
}

/// Recursion is bounded by the nesting of the text.
fn walk(node: &YamlNode, field: &str, found: &mut Vec<Problem>) {
    match &node.kind {
        YamlKind::Scalar { text, quoted: false } => found.extend(warning(text, node.position(), field)),
        YamlKind::Scalar { .. } => {}
        YamlKind::List(items) => items.iter().for_each(|item| walk(item, field, found)),
        YamlKind::Map(entries) => {
            for (key, value) in entries {
                found.extend(warning(&key.text, key.position(), field).filter(|_| is_switch(&key.text)));
                walk(value, field, found);
            }
        }
    }
}

fn warning(text: &str, at: SourcePosition, field: &str) -> Option<Problem> {
    let other = match text {
        _ if is_switch(text) => {
            let yes = matches!(text.to_ascii_lowercase().as_str(), "y" | "yes" | "on");
            if yes { "true".to_owned() } else { "false".to_owned() }
        }
        _ if is_date(text) => "a date".to_owned(),
        _ => format!("the number {}", sexagesimal(text)?),
    };
    let message = format!("`{text}` is text here, and {other} to other readers of YAML");
    Some(Problem::warning("ambiguous-value", at, field, message).help(format!("write '{text}', in quotes")))
}

fn is_switch(text: &str) -> bool {
    ["y", "n", "yes", "no", "on", "off"].iter().any(|word| word.eq_ignore_ascii_case(text))
}

fn is_date(text: &str) -> bool {
    let shape: String = text.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    shape == "0000-00-00"
}

/// `12:30:45` is a base-60 number in YAML 1.1.
fn sexagesimal(text: &str) -> Option<u64> {
    let mut parts = text.split(':');
    let first: u64 = parts.next().filter(|part| is_digits(part) && !part.starts_with('0'))?.parse().ok()?;
    let mut number = None;
    for part in parts {
        let digit: u64 = part.parse().ok().filter(|digit| is_digits(part) && *digit < 60)?;
        number = Some(number.unwrap_or(first).checked_mul(60)?.checked_add(digit)?);
    }
    number
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
