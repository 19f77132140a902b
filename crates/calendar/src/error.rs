//! Why a text is not a period, an anchor or a time zone.

use std::fmt;

/// The most characters of an offending text that a message repeats.
const SHOWN_MAX: usize = 64;

/// A text that could not be read: what it is not, and what would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarError {
    kind: CalendarErrorKind,
    message: String,
    help: String,
}

/// The part of a calendar that a [`CalendarError`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CalendarErrorKind {
    /// The text is not an [`Every`](crate::Every).
    UnknownEvery,
    /// The text is not an [`Anchor`](crate::Anchor) of this period.
    BadAnchor,
    /// The embedded database has no [`TimeZone`](crate::TimeZone) of this name.
    UnknownTimeZone,
}

impl CalendarError {
    /// `problem` completes the sentence that begins with the text.
    pub(crate) fn new(kind: CalendarErrorKind, text: &str, problem: &str, help: String) -> CalendarError {
        CalendarError { kind, message: format!("{} {problem}", quote(text)), help }
    }

    /// The part of a calendar that could not be read.
    pub fn kind(&self) -> CalendarErrorKind {
        self.kind
    }

    /// A stable word for programs: `unknown-period`, `bad-anchor` or `unknown-time-zone`.
    pub fn code(&self) -> &'static str {
        match self.kind {
            CalendarErrorKind::UnknownEvery => "unknown-period",
            CalendarErrorKind::BadAnchor => "bad-anchor",
            CalendarErrorKind::UnknownTimeZone => "unknown-time-zone",
        }
    }

    /// The offending text, and what it is not.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to write instead.
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl fmt::Display for CalendarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message, self.help)
    }
}

impl std::error::Error for CalendarError {}

/// The text between backticks, without control characters and of bounded length.
fn quote(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}
