//! Indexes of patterns: which of many patterns may match a value?
//!
//! Every pattern is stored under one literal that a matching value must contain: the whole text, its start, its end, or
//! a piece inside. A value is compared with all literals at once: one hash, one binary search from the front, one from
//! the back, and one pass through an automaton. The results are candidates, which the caller checks: an index may
//! return too many, and never too few. The cost depends on the length of the value and on the number of candidates, not
//! on the number of patterns. Rejected: one automaton for whole globs, whose size is exponential in the number of
//! patterns.

mod matchers;
mod networks;
mod routes;
mod texts;

use smallvec::SmallVec;

pub(crate) use self::matchers::{IndexedEndpoint, IndexedMatcher};
pub(crate) use self::networks::NetworkIndex;
pub(crate) use self::routes::{LowercasePath, RouteIndex};
pub(crate) use self::texts::TextIndex;

/// Patterns stored under one literal; most literals have one.
type Ids = SmallVec<[u32; 2]>;

/// No index.
const NONE: u32 = u32::MAX;
