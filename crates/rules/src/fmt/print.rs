//! Prints entries with their comments.

use super::attach::{Block, CommentLine, LayoutEntry, LayoutValue, bare};
use super::order::FieldOrder;
use super::scalar;
use crate::yaml::{YamlKind, YamlNode, is_blank};

/// Widest line with a flow collection on it.
const WIDTH: usize = 100;

/// The text of a whole document.
pub(super) fn print(root: &Block<'_>, order: FieldOrder) -> String {
    let mut out = String::new();
    notes(&mut out, &root.lead, 0, true);
    if !root.lead.is_empty() {
        out.push('\n');
    }
    block(&mut out, root, order, 0, BlockStart::Plain);
    out
}

/// Whether the first line of a block starts with the dash of its list item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockStart {
    Plain,
    Dashed,
}

fn block(out: &mut String, block: &Block<'_>, order: FieldOrder, indent: usize, start: BlockStart) {
    for (index, entry) in sorted(block, order).into_iter().enumerate() {
        if index == 0 && start == BlockStart::Dashed {
            let mut text = String::new();
            one(&mut text, entry, order, indent);
            out.push_str(&format!("{:1$}- ", "", indent.saturating_sub(2)));
            out.push_str(text.trim_start_matches(' '));
            continue;
        }
        let above = hoisted(entry, order);
        notes(out, &above, indent, index == 0);
        if entry.gap && (index > 0 || !above.is_empty()) {
            out.push('\n');
        }
        one(out, entry, order, indent);
    }
    notes(out, &block.foot, indent, block.entries.is_empty());
}

fn one(out: &mut String, entry: &LayoutEntry<'_>, order: FieldOrder, indent: usize) {
    let right = entry.right.as_deref();
    match (entry.key, &entry.value) {
        (Some(name), LayoutValue::Block(inner)) => {
            line(out, indent, &format!("{}:", scalar::key(name)), right);
            block(out, inner, order.below(name), indent + 2, BlockStart::Plain);
        }
        (Some(name), LayoutValue::Leaf(node)) => {
            leaf(
                out,
                &format!("{}:", scalar::key(name)),
                node,
                LeafContext { order: order.below(name), indent, right },
            );
        }
        (None, LayoutValue::Block(inner)) => block(out, inner, order, indent + 2, BlockStart::Dashed),
        (None, LayoutValue::Leaf(node)) => leaf(out, "-", node, LeafContext { order, indent, right }),
    }
}

/// Entries in canonical order; equal ranks keep their order.
fn sorted<'b, 'a>(block: &'b Block<'a>, order: FieldOrder) -> Vec<&'b LayoutEntry<'a>> {
    let mut entries: Vec<&LayoutEntry<'_>> = block.entries.iter().collect();
    entries.sort_by_key(|entry| entry.key.map_or(0, |key| order.rank(key)));
    entries
}

/// Comments above an entry. A list item starts on the line of its first entry, so the comments of that entry go above
/// the item.
fn hoisted(entry: &LayoutEntry<'_>, order: FieldOrder) -> Vec<CommentLine> {
    let mut above = entry.above.clone();
    if let (None, LayoutValue::Block(inner)) = (entry.key, &entry.value)
        && let Some(first) = sorted(inner, order).first()
    {
        above.extend(hoisted(first, order).into_iter().map(|note| CommentLine { gap: false, ..note }));
    }
    above
}

fn notes(out: &mut String, notes: &[CommentLine], indent: usize, first: bool) {
    for (index, note) in notes.iter().enumerate() {
        if note.gap && !(first && index == 0) {
            out.push('\n');
        }
        line(out, indent, &note.text, None);
    }
}

struct LeafContext<'a> {
    order: FieldOrder,
    indent: usize,
    right: Option<&'a str>,
}

fn leaf(out: &mut String, head: &str, node: &YamlNode, at: LeafContext<'_>) {
    let LeafContext { order, indent, right } = at;
    if let YamlKind::Scalar { text, quoted } = &node.kind {
        if let Some((header, lines)) = scalar::literal(text) {
            let right = raised(out, head, indent, right);
            line(out, indent, &format!("{head} {header}"), right);
            for text in lines {
                line(out, if text.is_empty() { 0 } else { indent + 2 }, text, None);
            }
            return;
        }
        let text = scalar::inline(text, *quoted);
        let text = if !quoted && is_blank(&text) { String::new() } else { text };
        return line(out, indent, format!("{head} {text}").trim_end(), right);
    }
    let flow = format!("{head} {}", flow(node, order));
    let empty = matches!(&node.kind, YamlKind::List(items) if items.is_empty())
        || matches!(&node.kind, YamlKind::Map(entries) if entries.is_empty());
    if empty || indent + flow.chars().count() <= WIDTH {
        return line(out, indent, &flow, right);
    }
    let inner = bare(node);
    let right = raised(out, head, indent, right);
    if head == "-" {
        return block(out, &inner, order, indent + 2, BlockStart::Dashed);
    }
    line(out, indent, head, right);
    block(out, &inner, order, indent + 2, BlockStart::Plain);
}

/// A comment to the right of a dash would not be parsed as such if the value continues below, so it moves above.
fn raised<'a>(out: &mut String, head: &str, indent: usize, right: Option<&'a str>) -> Option<&'a str> {
    let above = right.filter(|_| head == "-");
    if let Some(comment) = above {
        line(out, indent, comment, None);
    }
    right.filter(|_| above.is_none())
}

/// A value on one line.
fn flow(node: &YamlNode, order: FieldOrder) -> String {
    match &node.kind {
        YamlKind::Scalar { text, quoted: false } if is_blank(text) => "~".to_owned(),
        YamlKind::Scalar { text, quoted } => scalar::inline(text, *quoted),
        YamlKind::List(items) => {
            let items: Vec<String> = items.iter().map(|item| flow(item, order)).collect();
            format!("[{}]", items.join(", "))
        }
        YamlKind::Map(entries) if entries.is_empty() => "{}".to_owned(),
        YamlKind::Map(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| order.rank(&key.text));
            let entry = |key: &str, value| format!("{}: {}", scalar::key(key), flow(value, order.below(key)));
            let entries: Vec<String> = entries.iter().map(|(key, value)| entry(&key.text, value)).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

fn line(out: &mut String, indent: usize, text: &str, right: Option<&str>) {
    out.push_str(&" ".repeat(indent));
    out.push_str(text);
    if let Some(comment) = right {
        out.push_str("  ");
        out.push_str(comment);
    }
    out.push('\n');
}
