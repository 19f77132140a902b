//! The source of a value.

use std::fmt;

use tollgate_rules::SourcePosition;

/// The source of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SettingOrigin {
    /// Not set.
    #[default]
    Default,
    /// The file.
    File {
        /// Its name as it was given.
        file: String,
        /// The position of the value.
        place: SourcePosition,
    },
    /// This variable.
    Environment(String),
    /// This flag, with its dashes.
    Flag(String),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, place } => write!(f, "file {file}:{}:{}", place.line, place.column),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}
