//! The smallest change of a body: one piece of text replaced by another.

use std::ops::Range;

/// One replacement within a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BodyEdit {
    /// The bytes that are replaced; empty to insert.
    pub(super) range: Range<usize>,
    /// What replaces them.
    pub(super) text: &'static str,
}

impl BodyEdit {
    /// The changed body.
    pub(super) fn apply(&self, body: &[u8]) -> Vec<u8> {
        let before = body.get(..self.range.start).unwrap_or_default();
        let after = body.get(self.range.end..).unwrap_or_default();
        [before, self.text.as_bytes(), after].concat()
    }
}
