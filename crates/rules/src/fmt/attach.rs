//! Attaches comments to entries.
//!
//! Entries and comments are visited together in text order. Comments before an entry go above it, one at the end of its
//! line goes to its right, and comments below the last entry of a block, indented like it, are the foot of the block.
//! Entries can then be reordered together with their comments.

use crate::report;
use crate::yaml::{Comment, Document, YamlKind, YamlNode};

/// A block: entries of a map or items of a list.
#[derive(Debug, Default)]
pub(super) struct Block<'a> {
    /// The first paragraph of comments of a file, which stays at the top.
    pub(super) lead: Vec<CommentLine>,
    pub(super) entries: Vec<LayoutEntry<'a>>,
    pub(super) foot: Vec<CommentLine>,
}

/// One entry or item.
#[derive(Debug)]
pub(super) struct LayoutEntry<'a> {
    pub(super) above: Vec<CommentLine>,
    /// Whether an empty line precedes it, below its comments.
    pub(super) gap: bool,
    pub(super) key: Option<&'a str>,
    pub(super) value: LayoutValue<'a>,
    pub(super) right: Option<String>,
}

#[derive(Debug)]
pub(super) enum LayoutValue<'a> {
    /// A scalar, or a flow collection without comments inside.
    Leaf(&'a YamlNode),
    Block(Block<'a>),
}

/// A comment on its own line.
#[derive(Clone, Debug)]
pub(super) struct CommentLine {
    pub(super) gap: bool,
    pub(super) text: String,
}

/// The entries of a document with their comments.
pub(super) fn attach<'a>(document: &'a Document, text: &str) -> Block<'a> {
    let blank: Vec<bool> = report::lines(text).map(|line| line.trim().is_empty()).collect();
    let mut walk = Walk { comments: &document.comments, blank: &blank };
    let mut block = match &document.root.kind {
        YamlKind::Scalar { .. } => {
            Block { entries: vec![walk.entry(None, &document.root, END, 0)], ..Block::default() }
        }
        _ => walk.block(&document.root, END, 0),
    };
    if let Some(first) = block.entries.first_mut() {
        let end = first.above.iter().skip(1).position(|note| note.gap).map(|index| index + 1);
        let end = end.unwrap_or(if first.gap { first.above.len() } else { 0 });
        block.lead = first.above.drain(..end).collect();
    }
    block.foot.extend(walk.take(|_| true));
    block
}

/// The entries of a collection without comments.
pub(super) fn bare(node: &YamlNode) -> Block<'_> {
    Walk { comments: &[], blank: &[] }.block(node, END, 0)
}

type Position = (u32, u32);

const END: Position = (u32::MAX, u32::MAX);

struct Walk<'w> {
    comments: &'w [Comment],
    blank: &'w [bool],
}

impl<'w> Walk<'w> {
    /// `until` is the start of the next entry outside the node, `parent` the column of the entry that contains it.
    fn block<'a>(&mut self, node: &'a YamlNode, until: Position, parent: u32) -> Block<'a> {
        let heads: Vec<(Option<&'a str>, Position, &'a YamlNode)> = match &node.kind {
            YamlKind::Map(entries) => entries
                .iter()
                .map(|(key, value)| (Some(key.text.as_str()), (key.span.line, key.span.column), value))
                .collect(),
            YamlKind::List(items) => {
                items.iter().map(|item| (None, (item.span.line, item.span.column), item)).collect()
            }
            YamlKind::Scalar { .. } => Vec::new(),
        };
        let mut block = Block::default();
        for (index, (key, at, value)) in heads.iter().enumerate() {
            let next = heads.get(index + 1).map_or(until, |(_, at, _)| *at);
            let above = self.take(|comment| (comment.at.line, comment.at.column) < *at);
            let gap = self.is_blank(at.0.saturating_sub(1)) && (index > 0 || !above.is_empty());
            let column = if key.is_some() { at.1 } else { node.span.column };
            let entry = self.entry(*key, value, next, column);
            let mut entry = LayoutEntry { gap, ..entry };
            entry.above.splice(0..0, above);
            block.entries.push(entry);
        }
        let flow_end = if node.span.flow { node.span.end_line } else { 0 };
        let indent = node.span.column.max(parent + 1);
        block.foot = self.take(|comment| {
            let inside = comment.at.line <= flow_end;
            let below = comment.own_line && comment.at.column >= indent && (comment.at.line, comment.at.column) < until;
            inside || below
        });
        block
    }

    fn entry<'a>(&mut self, key: Option<&'a str>, node: &'a YamlNode, next: Position, column: u32) -> LayoutEntry<'a> {
        let mut entry = LayoutEntry { above: Vec::new(), gap: false, key, value: LayoutValue::Leaf(node), right: None };
        let start = (node.span.line, node.span.column);
        let is_block = !matches!(node.kind, YamlKind::Scalar { .. }) && !node.span.flow;
        let inside =
            |comment: &&Comment| comment.at.line < node.span.end_line && (comment.at.line, comment.at.column) > start;
        if key.is_some() || !is_block {
            // Between a key and its value: the first goes to the right of the key, others above, or to the first entry
            // below.
            let before =
                |comment: &Comment| (comment.at.line, comment.at.column) < start && !(is_block && comment.own_line);
            let mut between = self.take(before).into_iter();
            entry.right = between.next().map(|note| note.text);
            entry.above.extend(between);
        }
        if is_block || (node.span.flow && self.comments.first().as_ref().is_some_and(inside)) {
            entry.value = LayoutValue::Block(self.block(node, next, column));
            return entry;
        }
        let end = node.span.end_line;
        for note in self
            .take(|comment| !comment.own_line && comment.at.line <= end && (comment.at.line, comment.at.column) < next)
        {
            match entry.right {
                None => entry.right = Some(note.text),
                Some(_) => entry.above.push(note),
            }
        }
        entry
    }

    fn take(&mut self, wanted: impl Fn(&Comment) -> bool) -> Vec<CommentLine> {
        let count = self.comments.iter().take_while(|comment| wanted(comment)).count();
        let (taken, rest) = self.comments.split_at_checked(count).unwrap_or((self.comments, &[]));
        self.comments = rest;
        let note = |comment: &Comment| CommentLine {
            gap: comment.own_line && self.is_blank(comment.at.line.saturating_sub(1)),
            text: format!("#{}", comment.text.trim_end()),
        };
        taken.iter().map(note).collect()
    }

    /// Whether a line, counted from 1, is empty.
    fn is_blank(&self, line: u32) -> bool {
        let index = (line as usize).checked_sub(1);
        index.and_then(|index| self.blank.get(index)).copied().unwrap_or(false)
    }
}
