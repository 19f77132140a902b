//! The whole engine on the in-memory store, and the rule set alone.

use tollgate_core::Time;
use tollgate_engine::Engine;
use tollgate_rules::ruleset::{Charges, RuleSet};
use tollgate_store::Memory;

use super::Peer;
use crate::workload::request;

/// From request to decision.
pub struct Decides(Engine<Memory>);

impl Decides {
    /// An engine of default size on the real clock.
    pub fn new(rules: RuleSet) -> Decides {
        Decides(Engine::in_memory(rules))
    }
}

impl Peer for Decides {
    type Hand = ();

    #[inline]
    fn check(&self, (): &mut (), key: &str) -> bool {
        self.0.decide_now(&request(key)).is_allowed()
    }
}

/// From request to charges.
pub struct Matches(pub RuleSet);

impl Peer for Matches {
    type Hand = Charges;

    #[inline]
    fn check(&self, charges: &mut Charges, key: &str) -> bool {
        charges.clear();
        self.0.charges(&request(key), Time::ZERO, charges).is_ok() && !charges.charges.is_empty()
    }
}
