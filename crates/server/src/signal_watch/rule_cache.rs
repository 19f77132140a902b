//! How many decisions were made by rules that are known to be the latest.
//!
//! Decisions never read a database or a file: the rules are in memory. That copy is a cache of the sources of rules. A
//! decision is a hit while the copy matches all of them, as far as is known: the content of every file is in force, and
//! the database answered last time. It is a miss while a source cannot be read or its content is refused: the decision is
//! made all the same, by the last good rules.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_telemetry::{MetricFamilies, MetricsPage};

/// Counts hits and misses.
#[derive(Debug, Default)]
pub(crate) struct RuleCacheMetrics {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl RuleCacheMetrics {
    /// Notes that there are so many decisions by now, and whether the rules are the latest.
    pub(super) fn note(&self, decisions: u64, are_latest: bool) {
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        let new = decisions.saturating_sub(hits + misses);
        let counter = if are_latest { &self.hits } else { &self.misses };
        counter.fetch_add(new, Ordering::Relaxed);
    }
}

impl MetricFamilies for RuleCacheMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        let ratio = if hits + misses == 0 { 1.0 } else { hits as f64 / (hits + misses) as f64 };
        let help = "Decisions by rules in memory that matched all their sources, of all decisions";
        page.gauge("tollgate_rule_cache_hit_ratio", help, ratio)?;
        let outcomes = [("hit", hits), ("miss", misses)];
        let counted = outcomes.into_iter().map(|(outcome, count)| ([("outcome", outcome)], count));
        page.counters(
            "tollgate_rule_cache_decisions",
            "Decisions by rules in memory; a miss: a source was unreadable",
            counted,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_count_once_by_what_was_known_when_they_were_made() {
        let cache = RuleCacheMetrics::default();
        for (decisions, are_latest) in [(10, true), (10, false), (14, false), (20, true)] {
            cache.note(decisions, are_latest);
        }
        assert_eq!((cache.hits.into_inner(), cache.misses.into_inner()), (16, 4));
    }
}
