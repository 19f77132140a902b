//! The canonical layout of a tree that was not parsed from text.
//!
//! Rules are blocks; the values of their fields, clients and overrides are on one line while they fit. Text is quoted
//! if some reader of YAML would not read it as text.

use super::attach::bare;
use super::order::FieldOrder;
use super::print;
use crate::duration;
use crate::yaml::{SourceSpan, YamlKey, YamlKind, YamlNode, is_blank};

/// The text of a whole file.
pub(crate) fn lay_out(root: &YamlNode) -> String {
    let root = laid_out(root, FieldOrder::File);
    print::print(&bare(&root), FieldOrder::File)
}

/// The tree with the quotes and braces that are written.
fn laid_out(node: &YamlNode, order: FieldOrder) -> YamlNode {
    let kind = match &node.kind {
        YamlKind::Scalar { text, quoted } => {
            YamlKind::Scalar { text: text.clone(), quoted: needs_quotes(text, *quoted) }
        }
        YamlKind::List(items) => YamlKind::List(items.iter().map(|item| laid_out(item, order)).collect()),
        YamlKind::Map(entries) => {
            let entry = |(key, value): &(YamlKey, YamlNode)| (key.clone(), laid_out(value, order.below(&key.text)));
            YamlKind::Map(entries.iter().map(entry).collect())
        }
    };
    let is_block = match (&kind, order) {
        (YamlKind::Map(entries), FieldOrder::File | FieldOrder::Rule) => !entries.is_empty(),
        (YamlKind::List(items), FieldOrder::Rule | FieldOrder::Client | FieldOrder::Override) => !items.is_empty(),
        _ => false,
    };
    YamlNode { span: SourceSpan { flow: !is_block, ..SourceSpan::default() }, kind }
}

/// Whether a scalar is written in quotes. Text has none if every reader reads it as text, and a plain value only if it
/// stays plain in every context.
fn needs_quotes(text: &str, quoted: bool) -> bool {
    match quoted {
        true => !(is_word(text) || is_amount(text)),
        false => !is_blank(text) && !is_simple(text),
    }
}

/// A name that no reader takes for a number, a boolean or null.
fn is_word(text: &str) -> bool {
    const RESERVED: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
        && !RESERVED.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// A duration or a percentage.
fn is_amount(text: &str) -> bool {
    is_simple(text) && (duration::parse(text).is_ok() || text.ends_with('%'))
}

/// Letters, digits and characters without meaning in YAML; a colon only inside.
fn is_simple(text: &str) -> bool {
    let bare = text.strip_prefix('-').unwrap_or(text);
    bare.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && bare.ends_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '%')
        && bare
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'+' | b':' | b'%'))
}
