//! Bounds on what is read from disk.

use tollgate_rules::yaml;

/// Longest file accepted, 16 MiB: the limit of the rules parser.
pub const BYTES_MAX: u64 = yaml::TEXT_BYTES_MAX as u64;

/// Most files read from one directory.
pub const FILES_MAX: usize = 1000;
