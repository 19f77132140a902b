//! How many new buckets a namespace may make while a server's memory is scarce: what keeps a flood of invented
//! identities in one namespace from taking what is left from the others.
//!
//! Each node counts the buckets it makes, per namespace, against a rate. A namespace that has spent it shares its rules'
//! overflow buckets for identities without a bucket of their own; those that have one go on undisturbed. While there is
//! room ([`crate::store::primary::memory`]) nothing is limited, but all is counted: the namespace that filled the store is the one that is
//! limited first.

use std::collections::HashMap;

use parking_lot::Mutex;
use tollgate_core::{Algorithm, Ask, Effect, Gcra, Span, Tat, Time};

use super::primary::memory::MemoryLevel;

/// Seconds' worth of new buckets that may come at once: a fleet that starts anew meets all its callers in a short time.
const BURST_SECONDS: u64 = 10;

pub(crate) struct Budget {
    /// `None`: unlimited.
    limit: Option<Gcra>,
    spent: Mutex<HashMap<u32, Tat>>,
}

impl Budget {
    /// At most so many new buckets a second for each namespace; zero for any number, however full the store is.
    pub(crate) fn new(per_second: u64) -> Budget {
        let burst = per_second.saturating_mul(BURST_SECONDS);
        // Calls under way at the same time all find the last unit: what they make beyond it is owed, not forgiven.
        let limit = Gcra::new(per_second, Span::SECOND, burst).and_then(|limit| limit.with_max_debt(burst)).ok();
        Budget { limit: limit.filter(|_| per_second > 0), spent: Mutex::default() }
    }

    /// True if the namespace may make no more buckets now, in a store with so much room.
    pub(crate) fn is_spent(&self, namespace: u32, memory: MemoryLevel, now: Time) -> bool {
        let Some(limit) = self.limit.filter(|_| memory > MemoryLevel::Roomy) else { return false };
        if memory == MemoryLevel::Full {
            return true;
        }
        self.spent.lock().get(&namespace).is_some_and(|tat| !limit.admits(tat, now, &Ask::Consume(1)))
    }

    /// Counts buckets that were made.
    pub(crate) fn made(&self, namespace: u32, buckets: u32, now: Time) {
        let Some(limit) = self.limit.filter(|_| buckets > 0) else { return };
        let tats = &mut *self.spent.lock();
        limit.record(tats.entry(namespace).or_default(), now, &Ask::Force(u64::from(buckets)), Effect::Force);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1_700_000_000);

    #[test]
    fn a_namespace_spends_its_own_budget_and_gets_it_back_with_time() {
        let budget = Budget::new(2);
        budget.made(1, 19, NOW);
        assert!(!budget.is_spent(1, MemoryLevel::Scarce, NOW));
        budget.made(1, 1, NOW);
        assert!(budget.is_spent(1, MemoryLevel::Scarce, NOW) && !budget.is_spent(2, MemoryLevel::Scarce, NOW));
        assert!(!budget.is_spent(1, MemoryLevel::Scarce, NOW.after(Span::from_millis(500))));
    }

    #[test]
    fn what_was_made_beyond_the_budget_is_owed() {
        let budget = Budget::new(2);
        budget.made(1, 24, NOW);
        assert!(
            budget.is_spent(1, MemoryLevel::Scarce, NOW.after(Span::from_millis(2400))),
            "four above the budget are two seconds"
        );
        assert!(!budget.is_spent(1, MemoryLevel::Scarce, NOW.after(Span::from_millis(2500))));
    }

    #[test]
    fn nothing_is_limited_while_there_is_room_and_everything_when_there_is_none() {
        let budget = Budget::new(2);
        assert!(budget.is_spent(1, MemoryLevel::Full, NOW));
        budget.made(1, 1000, NOW);
        assert!(!budget.is_spent(1, MemoryLevel::Roomy, NOW) && budget.is_spent(1, MemoryLevel::Scarce, NOW));
    }

    #[test]
    fn zero_means_any_number() {
        let budget = Budget::new(0);
        budget.made(1, u32::MAX, NOW);
        assert!(!budget.is_spent(1, MemoryLevel::Scarce, NOW) && !budget.is_spent(1, MemoryLevel::Full, NOW));
    }
}
