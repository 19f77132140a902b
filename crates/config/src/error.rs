//! All errors of a configuration at once.

use std::fmt;

use tollgate_rules::Report;
use tollgate_rules::problem::ParseError;

/// Why a configuration is invalid: the problems of the file with their positions, and all others.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// What is wrong with the file.
    pub report: Option<Report>,
    /// Errors of flags and variables, and conflicting settings.
    pub mistakes: Vec<Mistake>,
}

/// An error outside of the file. The operator must correct it; a retry does not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where it is: `TOLLGATE_HTTP`, `--http`, or the conflicting settings.
    pub place: String,
    /// What was found, and what is allowed.
    pub fault: ParseError,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.fault)
    }
}

impl std::error::Error for Mistake {}

impl From<Mistake> for ConfigError {
    fn from(mistake: Mistake) -> Self {
        Self { report: None, mistakes: vec![mistake] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(report) = &self.report {
            report.fmt(f)?;
        }
        self.mistakes.iter().try_for_each(|mistake| writeln!(f, "{mistake}"))
    }
}

impl std::error::Error for ConfigError {}
