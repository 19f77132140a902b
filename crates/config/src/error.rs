//! Everything that is wrong with a configuration, at once.

use std::fmt;

use tollgate_rules::Report;
use tollgate_rules::problem::ParseError;

/// Why there is no configuration: the problems of the file with their places, and those of everything else.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// What is wrong with the file.
    pub report: Option<Report>,
    /// What is wrong with flags, variables, and settings that do not go together.
    pub mistakes: Vec<Mistake>,
}

/// Something wrong outside of the file. It is the operator's to mend; trying again does not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where it is: `TOLLGATE_HTTP`, `--http`, or the settings that do not go together.
    pub place: String,
    /// What was found, and what would be right.
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
