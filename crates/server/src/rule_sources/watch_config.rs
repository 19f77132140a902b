//! What watching a rule source takes.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Clock;

use super::error::RuleSourceError;
use super::file::{Source, Written};
use super::rule_source::{ContentMark, RuleSource};

/// Puts rules into force and answers their generation: `Engine::swap_rules`, and whatever else should know of it; or
/// says why they do not go together with others. Called off the runtime, where taking long holds nobody up.
pub type Apply<W = Written> = Arc<dyn Fn(W) -> Result<u64, RuleSourceError> + Send + Sync>;

/// What following a file takes, or a directory of them.
pub struct WatchConfig<S: RuleSource = Source> {
    /// The file.
    pub source: S,
    /// How often to look.
    pub pace: Pace,
    /// Tells when rules were loaded.
    pub clock: Arc<dyn Clock>,
    /// What becomes of new rules.
    pub apply: Apply<S::Compiled>,
    /// The content that is in force already, and its generation. Without one the first valid content is the first
    /// reload.
    pub in_force: Option<(ContentMark, u64)>,
}

/// How often the file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time between two looks. Default 500 ms.
    pub poll: Duration,
    /// How long a change must stand still before it is read. Default 200 ms.
    pub settle: Duration,
    /// How long to wait for that at most. Default 2 s.
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
