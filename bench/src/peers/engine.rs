//! The whole engine on the in-memory store, and the rule set alone.

use tollgate_core::{Request, Time};
use tollgate_engine::Engine;
use tollgate_ruleset::{Charges, RuleSet};
use tollgate_store::Memory;

use super::KeyedLimiter;
use crate::workload::{request, request_from_address};

/// From request to decision.
pub struct Decides {
    engine: Engine<Memory>,
    request: fn(&str) -> Request<'_>,
}

impl Decides {
    /// An engine of default size on the real clock.
    pub fn new(rules: RuleSet) -> Decides {
        Decides { engine: Engine::in_memory(rules), request }
    }

    /// The same, asked with an address.
    pub fn with_address(rules: RuleSet) -> Decides {
        Decides { request: request_from_address, ..Decides::new(rules) }
    }
}

impl KeyedLimiter for Decides {
    type Hand = ();

    #[inline]
    fn check(&self, (): &mut (), key: &str) -> bool {
        self.engine.decide_now(&(self.request)(key)).is_allowed()
    }
}

/// From request to charges.
pub struct Matches(pub RuleSet);

impl KeyedLimiter for Matches {
    type Hand = Charges;

    #[inline]
    fn check(&self, charges: &mut Charges, key: &str) -> bool {
        charges.clear();
        self.0.charges(&request(key), Time::ZERO, charges).is_ok() && !charges.charges.is_empty()
    }
}
