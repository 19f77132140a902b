//! The rules language: YAML text in, typed and validated specs out; `tollgate-ruleset` compiles them.
//!
//! The crate does no I/O, reads no clock and keeps no state. [`read`](fn@read) turns a file into a [`RuleFile`] or into
//! a [`Report`] that names every mistake with its line, column and field; [`format`](fn@format) writes the same file in
//! canonical form. [`document`] reads single rules that come from a database or an API. Requests and rules share the
//! canonicalisers ([`canonical_path`], [`canonical_ip`]), so both sides of a match have one spelling.

pub mod address;
pub mod check;
pub mod client_address;
pub mod datetime;
pub mod document;
pub mod duration;
pub mod endpoint;
pub mod envoy;
pub mod fmt;
#[doc(hidden)]
pub mod forwarded;
pub mod glob;
pub mod key;
pub mod lint;
pub mod literal;
pub mod nearest;
pub mod normalize;
pub mod path;
pub mod pattern;
pub mod plan;
pub mod position;
pub mod problem;
pub mod read;
pub mod report;
pub mod route;
pub mod shrink;
pub mod spec;
pub mod translate;
pub mod yaml;

#[cfg(test)]
mod samples;

pub use address::{Cidr, IpKey, canonical_ip};
pub use endpoint::{EndpointMatcher, EndpointPattern};
pub use fmt::format;
pub use glob::Glob;
pub use key::KeyBy;
pub use lint::{lint, lint_rule, lint_text};
pub use nearest::nearest;
pub use normalize::Normalize;
pub use path::{Endpoint, EscapedSlash, PathCase, PathError, canonical_path, forwarded_path, has_dot_segment};
pub use pattern::{Matcher, Pattern};
pub use position::SourcePosition;
pub use problem::{Problem, Severity};
pub use read::{read, read_bytes, read_with_tree};
pub use report::Report;
pub use route::{PathGlob, PathPattern, Segment, Tail};
pub use shrink::shrinkage;
pub use spec::{
    Align, ClientSpec, Consistency, Cost, CostCase, Enforcement, GrantSpec, LeaseSpec, LimitAlgorithm, LimitSpec,
    MatchSpec, MeterSpec, Missing, OnFail, OverrideSpec, PlanOrigin, PlanSchedule, PlanSpec, ReservedSlots, RuleFile,
    RuleSpec, SoftSpec, Unmetered,
};
