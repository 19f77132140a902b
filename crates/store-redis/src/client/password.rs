//! Passwords.

use std::fmt;

/// A password. `Debug` and `Display` print `…`.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// A password.
    pub fn new(word: impl Into<String>) -> Password {
        Password(word.into())
    }

    /// The password itself, to send it to a server.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl fmt::Display for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
