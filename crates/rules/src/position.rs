//! Positions in a text.

use std::fmt;

/// A position in a text. Line and column count from 1; 0 means that the value is not from a file.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourcePosition {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// `Place`, its name in earlier versions: fingerprints of rules are digests of this text, and nodes of several versions
/// compare them.
impl fmt::Debug for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("line", &self.line).field("column", &self.column).finish()
    }
}
