//! A value that is nested too deeply to be looked into: where it ends.

/// What has been read of the value, behind its first bracket.
///
/// Brackets are counted whatever their kind: the value is not checked, only passed over, in constant memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeepValue {
    /// Brackets that are open.
    open: u64,
    text: DeepText,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeepText {
    Outside,
    Inside,
    /// After a backslash.
    Escape,
}

impl DeepValue {
    pub(super) fn new() -> DeepValue {
        DeepValue { open: 1, text: DeepText::Outside }
    }

    /// Whether its last bracket is closed.
    pub(super) fn is_over(self) -> bool {
        self.open == 0
    }

    /// Takes bytes until the value ends; how many those are.
    pub(super) fn skip(&mut self, bytes: &[u8]) -> usize {
        for (length, byte) in bytes.iter().enumerate() {
            self.text = match (self.text, byte) {
                (DeepText::Outside, b'"') => DeepText::Inside,
                (DeepText::Inside, b'"') => DeepText::Outside,
                (DeepText::Inside, b'\\') => DeepText::Escape,
                (DeepText::Escape, _) => DeepText::Inside,
                (text, _) => text,
            };
            match (self.text, byte) {
                (DeepText::Outside, b'{' | b'[') => self.open = self.open.saturating_add(1),
                (DeepText::Outside, b'}' | b']') => self.open = self.open.saturating_sub(1),
                _ => {}
            }
            if self.open == 0 {
                return length + 1;
            }
        }
        bytes.len()
    }
}
