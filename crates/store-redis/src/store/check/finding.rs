//! Findings of a check.

use std::fmt;

use tollgate_core::Span;

/// Timeout of a check: long, so that a slow server is reported as slow, not as unreachable.
pub(crate) const PATIENCE: Span = Span::from_secs(2);

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    /// As it should be.
    Ok,
    /// It works, with a restriction.
    Warning,
    /// It does not work, or cannot be relied on.
    Problem,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its severity.
    pub level: FindingLevel,
    /// What was found.
    pub what: String,
    /// What to do about it; empty if nothing.
    pub help: String,
}

impl Finding {
    pub(crate) fn ok(what: impl Into<String>) -> Finding {
        Finding { level: FindingLevel::Ok, what: what.into(), help: String::new() }
    }

    pub(crate) fn warning(what: impl Into<String>, help: impl Into<String>) -> Finding {
        Finding { level: FindingLevel::Warning, what: what.into(), help: help.into() }
    }

    pub(crate) fn problem(what: impl Into<String>, help: impl Into<String>) -> Finding {
        Finding { level: FindingLevel::Problem, what: what.into(), help: help.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { level, what, help } = self;
        let level = match level {
            FindingLevel::Ok => "ok",
            FindingLevel::Warning => "warning",
            FindingLevel::Problem => "problem",
        };
        write!(f, "{level}: {what}")?;
        if help.is_empty() { Ok(()) } else { write!(f, "; {help}") }
    }
}
