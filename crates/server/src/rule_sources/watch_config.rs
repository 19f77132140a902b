//! The configuration of a watched rule source.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Clock;

use super::error::RuleSourceError;
use super::file::{RulesFileSource, Written};
use super::rule_source::{ContentMark, RuleSource};

/// Activates rules and returns their generation, or the conflict with other rules. Called on a blocking thread.
pub type Apply<W = Written> = Arc<dyn Fn(W) -> Result<u64, RuleSourceError> + Send + Sync>;

/// What a [`Reloader`](super::Reloader) watches, and how.
pub struct WatchConfig<S: RuleSource = RulesFileSource> {
    /// The file or directory.
    pub source: S,
    /// How often to check.
    pub pace: Pace,
    /// The clock of load times.
    pub clock: Arc<dyn Clock>,
    /// Activates new rules.
    pub apply: Apply<S::Compiled>,
    /// The content that is active already, and its generation. Without it the first valid content is the first reload.
    pub in_force: Option<(ContentMark, u64)>,
}

/// How often a source is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time between two checks. Default 500 ms.
    pub poll: Duration,
    /// How long a change must be stable before it is read. Default 200 ms.
    pub settle: Duration,
    /// Longest wait for a stable change. Default 2 s.
    pub settle_max: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            poll: Duration::from_millis(500),
            settle: Duration::from_millis(200),
            settle_max: Duration::from_secs(2),
        }
    }
}
