//! One thing wrong with a rules file, and the bounded list in which they are gathered.
//!
//! A reader never stops at the first mistake, so problems are values pushed into [`Problems`], not errors thrown. The
//! code is stable and meant for machines; the message says what was found, the help what would be right.

use std::borrow::Cow;

use crate::position::SourcePosition;

/// How much a problem matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file works, and probably not as meant.
    Warning,
}

impl Severity {
    /// The word printed in front of the code.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One mistake, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whether the file is refused for it.
    pub severity: Severity,
    /// Stable name of the kind of mistake, such as `unknown-field`.
    pub code: &'static str,
    /// Line, from 1; 0 when the problem has no place in a text (a rule that came from a database).
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Path of the field, such as `rules[2].limit.window`; empty for the file as a whole.
    pub field: String,
    /// What was found.
    pub message: String,
    /// What is allowed and what to do.
    pub help: Option<String>,
}

impl Problem {
    /// An error at a place.
    pub fn error(code: &'static str, at: SourcePosition, field: impl ToString, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            line: at.line,
            column: at.column,
            field: field.to_string(),
            message: message.into(),
            help: None,
        }
    }

    /// A warning at a place.
    pub fn warning(code: &'static str, at: SourcePosition, field: impl ToString, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, at, field, message) }
    }

    /// The same problem with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Problems found so far; past [`Problems::KEPT`] they are only counted.
///
/// A hostile file of 16 MiB can hold millions of mistakes; nobody reads more than a few.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    kept: Vec<Problem>,
    dropped: usize,
}

impl Problems {
    /// How many problems are kept in full.
    pub const KEPT: usize = 1000;

    /// Adds one.
    pub fn push(&mut self, problem: Problem) {
        if self.is_full() {
            self.dropped += 1;
        } else {
            self.kept.push(problem);
        }
    }

    /// Whether further ones would only be counted.
    pub fn is_full(&self) -> bool {
        self.kept.len() >= Self::KEPT
    }

    /// Counts problems that nobody will read, without making them.
    pub fn skip(&mut self, count: usize) {
        self.dropped += count;
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: impl IntoIterator<Item = Problem>) {
        other.into_iter().for_each(|problem| self.push(problem));
    }

    /// How many there are, counted ones included.
    pub fn len(&self) -> usize {
        self.kept.len() + self.dropped
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kept problems and the number of those that were only counted.
    pub fn into_parts(self) -> (Vec<Problem>, usize) {
        (self.kept, self.dropped)
    }
}

/// Why a piece of text is not what it should be, before anybody knows where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What was found.
    pub message: String,
    /// What would be right.
    pub help: String,
}

impl ParseError {
    /// A fault with its remedy.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}

impl std::error::Error for ParseError {}

/// User text fit for a message: short, in backquotes.
pub fn quote(text: &str) -> String {
    format!("`{}`", short(text))
}

/// User text fit for a message: its beginning, and a sign that there is more.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}\u{2026}", text.get(..end).unwrap_or(""))),
        None => Cow::Borrowed(text),
    }
}
