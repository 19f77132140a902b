//! One layout for rules files: two spaces, known fields in a fixed order, flow maps on one line while they fit.
//!
//! Comments stay with their entry, and blank lines between entries stay (at most one). The result is parsed again and
//! compared: a text whose meaning would change is returned unchanged.

mod attach;
mod order;
mod print;
mod scalar;
mod tree;

use std::collections::HashMap;

use crate::problem::Problems;
use crate::report::Report;
use crate::yaml::{self, YamlKey, YamlKind, YamlNode};
use order::FieldOrder;

pub(crate) use tree::lay_out;

/// The text in canonical layout. Fails only if it is not YAML; the rules need not be valid.
pub fn format(file_name: &str, text: &str) -> Result<String, Report> {
    let document = yaml::parse_with_comments(text).map_err(|found| {
        let mut problems = Problems::default();
        problems.extend(found);
        Report::new(file_name, text, problems)
    })?;
    let entries = attach::attach(&document, text);
    let laid_out = print::print(&entries, FieldOrder::File);
    let safe = yaml::parse_with_comments(&laid_out)
        .is_ok_and(|again| same(&document.root, &again.root) && document.comments.len() == again.comments.len());
    Ok(if safe { laid_out } else { text.to_owned() })
}

/// Whether two trees are equal apart from layout and order of keys.
fn same(a: &YamlNode, b: &YamlNode) -> bool {
    match (&a.kind, &b.kind) {
        (YamlKind::Scalar { text: a, quoted: false }, YamlKind::Scalar { text: b, quoted: false }) => {
            a == b || (yaml::is_blank(a) && yaml::is_blank(b))
        }
        (YamlKind::List(a), YamlKind::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (YamlKind::Map(a), YamlKind::Map(b)) => {
            let other: HashMap<&str, &YamlNode> = b.iter().map(|(key, value)| (key.text.as_str(), value)).collect();
            let found = |(key, value): &(YamlKey, YamlNode)| {
                other.get(key.text.as_str()).is_some_and(|other| same(value, other))
            };
            a.len() == b.len() && a.iter().all(found)
        }
        (YamlKind::Scalar { text: a, .. }, YamlKind::Scalar { text: b, .. }) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
