//! YAML text to a tree with positions, in the small and strict subset that rules need.
//!
//! One document of maps, lists and scalars. Anchors, aliases, merge keys and tags are rejected: a file with them means
//! something other than it shows, and an alias bomb costs gigabytes (RELIABILITY Y01). Sizes are checked while parser
//! events arrive, before memory is spent (Y02, Y03). Scalars stay text; the reader of a field decides what is a number
//! (Y04).

mod build;
mod refuse;

use crate::position::SourcePosition;
use crate::problem::Problem;

/// Longest text accepted.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Deepest nesting accepted.
pub const DEPTH_MAX: usize = 16;
/// Longest scalar accepted.
pub const SCALAR_BYTES_MAX: usize = 64 << 10;
/// Largest number of values in one file.
pub const NODES_MAX: usize = 2_000_000;

/// A value and its position; a node that was not parsed has line 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlNode {
    /// Its position.
    pub span: SourceSpan,
    /// Its content.
    pub kind: YamlKind,
}

impl YamlNode {
    /// Quoted text: never a number or a boolean.
    pub fn text(text: impl Into<String>) -> YamlNode {
        YamlNode { span: SourceSpan::default(), kind: YamlKind::Scalar { text: text.into(), quoted: true } }
    }

    /// A plain scalar: a number, `true`, `false`, or a word without quotes.
    pub fn plain(value: impl ToString) -> YamlNode {
        YamlNode { span: SourceSpan::default(), kind: YamlKind::Scalar { text: value.to_string(), quoted: false } }
    }

    /// No value: null in other formats.
    pub fn blank() -> YamlNode {
        YamlNode::plain("")
    }

    /// A list.
    pub fn list(items: impl IntoIterator<Item = YamlNode>) -> YamlNode {
        YamlNode { span: SourceSpan::default(), kind: YamlKind::List(items.into_iter().collect()) }
    }

    /// A map. Keys must be unique, as they are in a parsed map.
    pub fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, YamlNode)>) -> YamlNode {
        let entries =
            entries.into_iter().map(|(key, node)| (YamlKey { text: key.into(), span: SourceSpan::default() }, node));
        YamlNode { span: SourceSpan::default(), kind: YamlKind::Map(entries.collect()) }
    }

    /// Position of its start.
    pub fn position(&self) -> SourcePosition {
        SourcePosition { line: self.span.line, column: self.span.column }
    }

    /// The value under a key of a map.
    pub fn get(&self, name: &str) -> Option<&YamlNode> {
        match &self.kind {
            YamlKind::Map(entries) => entries.iter().find(|(key, _)| key.text == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The items of a list; empty for other nodes.
    pub fn items(&self) -> &[YamlNode] {
        match &self.kind {
            YamlKind::List(items) => items,
            _ => &[],
        }
    }

    /// Its type, in words.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            YamlKind::Scalar { text, quoted: false } if is_blank(text) => "nothing",
            YamlKind::Scalar { quoted: true, .. } => "quoted text",
            YamlKind::Scalar { .. } => "a plain value",
            YamlKind::List(_) => "a list",
            YamlKind::Map(_) => "a map",
        }
    }
}

/// Position of a node: its start, and the line on which it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceSpan {
    /// First line, from 1.
    pub line: u32,
    /// First column in characters, from 1.
    pub column: u32,
    /// Last line.
    pub end_line: u32,
    /// Whether a list or map is written in flow style, with brackets or braces.
    pub flow: bool,
}

/// Content of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum YamlKind {
    /// Text, with escapes resolved; `quoted` is also true for block scalars.
    Scalar {
        /// The text.
        text: String,
        /// Whether it is text by its notation.
        quoted: bool,
    },
    /// A list.
    List(Vec<YamlNode>),
    /// A map, in file order; keys are unique.
    Map(Vec<(YamlKey, YamlNode)>),
}

/// Key of a map entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlKey {
    /// Its text.
    pub text: String,
    /// Its position.
    pub span: SourceSpan,
}

impl YamlKey {
    /// Position of its start.
    pub fn position(&self) -> SourcePosition {
        SourcePosition { line: self.span.line, column: self.span.column }
    }
}

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Position of its `#`.
    pub at: SourcePosition,
    /// The text after `#`.
    pub text: String,
    /// Whether nothing else is on its line.
    pub own_line: bool,
}

/// A parsed text: its tree and its comments, in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The tree; an empty map for an empty text.
    pub root: YamlNode,
    /// The comments.
    pub comments: Vec<Comment>,
}

/// Parses a text.
pub fn parse(text: &str) -> Result<YamlNode, Vec<Problem>> {
    build::document(text, false, DEPTH_MAX).map(|document| document.root)
}

/// Parses a text that is nested up to `depth` levels: files of other limiters are deeper than ours.
pub(crate) fn parse_to_depth(text: &str, depth: usize) -> Result<YamlNode, Vec<Problem>> {
    build::document(text, false, depth).map(|document| document.root)
}

/// Parses a text and keeps its comments.
pub fn parse_with_comments(text: &str) -> Result<Document, Vec<Problem>> {
    build::document(text, true, DEPTH_MAX)
}

/// Whether some YAML reader takes a plain scalar for null.
pub fn is_blank(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

#[cfg(test)]
mod tests;
