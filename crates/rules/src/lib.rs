//! Rules as people write them: YAML text in, typed and validated specs out.
//!
//! Nothing here does I/O, reads a clock or keeps state. [`read`](fn@read) turns a file into a [`RuleFile`] or into a
//! [`Report`] that names every mistake with its line, column and field; [`format`](fn@format) writes the same file in
//! canonical form. What never was a file is read by [`document`]. The canonicalisers ([`canonical_path`], [`canonical_ip`]) serve requests as well as rules, so
//! that both sides of a match are spelled alike.

pub mod address;
pub mod check;
pub mod datetime;
pub mod directory;
pub mod document;
pub mod duration;
pub mod endpoint;
pub mod envoy;
mod fast_hash;
pub mod fmt;
pub mod glob;
pub mod key;
pub mod lint;
mod lookup;
pub mod nearest;
mod normalize;
pub mod path;
pub mod pattern;
pub mod position;
pub mod problem;
pub mod read;
pub mod report;
pub mod route;
pub mod ruleset;
pub mod shrink;
pub mod spec;
pub mod translate;
pub mod yaml;

#[cfg(test)]
mod samples;

pub use address::{Cidr, IpKey, canonical_ip};
pub use directory::{ActiveOverride, Directory, DirectoryBuilder, DirectoryRecord, canonical_client_key};
pub use endpoint::{EndpointMatcher, EndpointPattern};
pub use fmt::format;
pub use glob::Glob;
pub use key::KeyBy;
pub use lint::{lint, lint_rule, lint_text};
pub use nearest::nearest;
pub use normalize::Normalize;
pub use path::{Endpoint, EscapedSlash, PathCase, PathError, canonical_path};
pub use pattern::{Matcher, Pattern};
pub use position::SourcePosition;
pub use problem::{Problem, Severity};
pub use read::{read, read_bytes, read_with_tree};
pub use report::Report;
pub use route::{PathGlob, PathPattern, Segment, Tail};
pub use shrink::shrinkage;
pub use spec::{
    Align, ClientSpec, Consistency, Cost, CostCase, Enforcement, LeaseSpec, LimitAlgorithm, LimitSpec, MatchSpec,
    Missing, OnFail, OverrideSpec, RuleFile, RuleSpec, SoftSpec,
};
