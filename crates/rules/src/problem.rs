//! A mistake in a rules file, and the bounded list of all mistakes.
//!
//! A reader does not stop at the first mistake, so it pushes problems into [`Problems`] and returns no error. The code
//! is stable and for machines; the message says what was found, the help says what is allowed.

use std::borrow::Cow;

use crate::position::SourcePosition;

/// How much a problem matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but probably does not do what its author meant.
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
    /// Whether the file is refused.
    pub severity: Severity,
    /// Stable name of the kind of mistake, such as `unknown-field`.
    pub code: &'static str,
    /// Line, from 1; 0 if the rule is not from a text, such as a row of a database.
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
    /// An error at a position.
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

    /// A warning at a position.
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

/// Problems found so far; beyond [`Problems::KEPT`] they are only counted.
///
/// A hostile file of 16 MiB can hold millions of mistakes, and a person reads a few.
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

    /// Whether further problems are only counted.
    pub fn is_full(&self) -> bool {
        self.kept.len() >= Self::KEPT
    }

    /// Counts problems that are not kept, so that the caller need not build them.
    pub fn skip(&mut self, count: usize) {
        self.dropped += count;
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: impl IntoIterator<Item = Problem>) {
        other.into_iter().for_each(|problem| self.push(problem));
    }

    /// The number of problems, including those that were only counted.
    pub fn len(&self) -> usize {
        self.kept.len() + self.dropped
    }

    /// Whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kept problems, and the number of those that were only counted.
    pub fn into_parts(self) -> (Vec<Problem>, usize) {
        (self.kept, self.dropped)
    }
}

/// Why a text cannot be parsed. Parsers do not know the position; their callers add it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What was found.
    pub message: String,
    /// What would be right.
    pub help: String,
}

impl ParseError {
    /// An error with advice.
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

/// User text for a message: shortened, in backquotes.
pub fn quote(text: &str) -> String {
    format!("`{}`", short(text))
}

/// User text for a message: the beginning, with an ellipsis if more follows.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}\u{2026}", text.get(..end).unwrap_or(""))),
        None => Cow::Borrowed(text),
    }
}
