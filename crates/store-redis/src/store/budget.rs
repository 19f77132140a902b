//! How many buckets a namespace may create while a server's memory is scarce: a flood of invented identities in one
//! namespace must not take the memory of the others.
//!
//! Each node counts the buckets it creates per namespace, against a rate. A namespace above its rate uses its rules'
//! overflow buckets for identities without a bucket; identities with a bucket are not affected. While memory is ample
//! ([`MemoryLevel`]) nothing is limited but all is counted, so the namespace that filled the store is limited first.

use std::collections::HashMap;

use parking_lot::Mutex;
use tollgate_core::{Algorithm, Ask, Effect, Gcra, Span, Tat, Time};

use super::primary::memory::MemoryLevel;

/// Burst in seconds of the rate: a restarted fleet creates the buckets of all its clients in a short time.
const BURST_SECONDS: u64 = 10;

pub(crate) struct Budget {
    /// `None`: unlimited.
    limit: Option<Gcra>,
    spent: Mutex<HashMap<u32, Tat>>,
}

impl Budget {
    /// A budget of so many new buckets per second and namespace; zero is unlimited, however full the store is.
    pub(crate) fn new(per_second: u64) -> Budget {
        let burst = per_second.saturating_mul(BURST_SECONDS);
        // Concurrent calls all see the last unit: buckets beyond it become debt.
        let limit = Gcra::new(per_second, Span::SECOND, burst).and_then(|limit| limit.with_max_debt(burst)).ok();
        Budget { limit: limit.filter(|_| per_second > 0), spent: Mutex::default() }
    }

    /// True if the namespace may not create buckets now, at this memory level.
    pub(crate) fn is_spent(&self, namespace: u32, memory: MemoryLevel, now: Time) -> bool {
        let Some(limit) = self.limit.filter(|_| memory > MemoryLevel::Roomy) else { return false };
        if memory == MemoryLevel::Full {
            return true;
        }
        self.spent.lock().get(&namespace).is_some_and(|tat| !limit.admits(tat, now, &Ask::Consume(1)))
    }

    /// Counts created buckets.
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
    fn buckets_beyond_the_budget_become_debt() {
        let budget = Budget::new(2);
        budget.made(1, 24, NOW);
        assert!(
            budget.is_spent(1, MemoryLevel::Scarce, NOW.after(Span::from_millis(2400))),
            "four above the budget are two seconds"
        );
        assert!(!budget.is_spent(1, MemoryLevel::Scarce, NOW.after(Span::from_millis(2500))));
    }

    #[test]
    fn nothing_is_limited_while_memory_is_ample_and_everything_when_it_is_full() {
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
