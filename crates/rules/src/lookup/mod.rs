//! Many patterns looked up at once: which of them may match a value?
//!
//! Every pattern is stored under one literal part that a matching value must have: the whole text, its start, its end,
//! or a piece somewhere inside. A value is then compared with all stored parts at once: one hash, one binary search
//! from the front, one from the back, and one pass through an automaton. What is found is a candidate that the caller
//! checks, so an index may return too much, and never too little. The cost depends on the length of the value and on what
//! is found, not on how many patterns there are. Rejected: one automaton for whole globs, whose size is exponential in
//! the number of patterns.

mod affix;
mod counts;
mod crowded;
mod lists;
mod literal;
mod networks;
mod routes;
mod substrings;
mod texts;

use smallvec::SmallVec;

pub(crate) use self::counts::{IndexChoice, LiteralCounts};
pub use self::crowded::CROWD_MAX;
pub(crate) use self::crowded::{CrowdedPattern, crowded, wildcards};
pub(crate) use self::lists::{IndexedEndpoint, IndexedMatcher};
pub(crate) use self::networks::NetworkIndex;
pub(crate) use self::routes::{LowercasePath, RouteIndex};
pub(crate) use self::texts::TextIndex;

/// Patterns stored in one place; most places have one.
type Ids = SmallVec<[u32; 2]>;

/// No entry.
const NONE: u32 = u32::MAX;
