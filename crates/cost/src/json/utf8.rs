//! The check of UTF-8, one byte at a time: a character may be cut between two pieces of a body.

/// What is still expected of a character that has begun.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Utf8Check {
    left: u8,
    low: u8,
    high: u8,
}

impl Utf8Check {
    /// Whether no character is incomplete.
    pub(super) fn is_between(self) -> bool {
        self.left == 0
    }

    /// Takes a byte of 0x80 or above, or any byte while a character is incomplete; false if it cannot stand here.
    #[must_use]
    pub(super) fn accept(&mut self, byte: u8) -> bool {
        if self.left > 0 {
            let fits = (self.low..=self.high).contains(&byte);
            *self = Utf8Check { left: self.left - 1, low: 0x80, high: 0xbf };
            return fits;
        }
        // The second byte is restricted where it could make a longer spelling, a surrogate, or a number beyond Unicode.
        let (left, low, high) = match byte {
            0xc2..=0xdf => (1, 0x80, 0xbf),
            0xe0 => (2, 0xa0, 0xbf),
            0xed => (2, 0x80, 0x9f),
            0xe1..=0xef => (2, 0x80, 0xbf),
            0xf0 => (3, 0x90, 0xbf),
            0xf4 => (3, 0x80, 0x8f),
            0xf1..=0xf3 => (3, 0x80, 0xbf),
            _ => return false,
        };
        *self = Utf8Check { left, low, high };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(bytes: &[u8]) -> bool {
        let mut check = Utf8Check::default();
        let all = bytes.iter().all(|byte| (byte.is_ascii() && check.is_between()) || check.accept(*byte));
        all && check.is_between()
    }

    #[test]
    fn agrees_with_the_standard_library() {
        for first in 0..=255u8 {
            for second in [0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff] {
                for rest in [&[][..], &[0x80], &[0x80, 0x80], &[0x80, 0x41], &[0xbf, 0xbf]] {
                    let bytes = [&[first, second], rest].concat();
                    assert_eq!(accepts(&bytes), std::str::from_utf8(&bytes).is_ok(), "{bytes:x?}");
                }
            }
        }
    }
}
