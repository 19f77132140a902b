//! Rules files that several tests read.

/// The file of a first user, exactly as the issue has it.
pub(crate) const FIRST: &str = include_str!("../samples/first.yaml");

/// The file of DESIGN.md.
pub(crate) const DESIGN: &str = include_str!("../samples/design.yaml");

/// Every field there is.
pub(crate) const FULL: &str = include_str!("../samples/full.yaml");
