//! One immutable version of the rules, replaced as a whole.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use tollgate_ruleset::RuleSet;

/// A rule set and its number. Numbers grow with every swap.
#[derive(Debug)]
pub struct Generation {
    /// Starts at 1; always higher than the one before.
    pub number: u64,
    /// The rules.
    pub rules: RuleSet,
}

/// The current generation, and the only way to replace it.
pub(crate) struct Generations {
    current: ArcSwap<Generation>,
    /// The highest number used.
    last: AtomicU64,
}

/// A generation kept alive by the decision that uses it. Cheap to take, also from many threads at once.
pub struct Pinned(Guard<Arc<Generation>>);

impl Generations {
    pub(crate) fn new(rules: RuleSet) -> Generations {
        let first = Generation { number: 1, rules };
        Generations { current: ArcSwap::from_pointee(first), last: AtomicU64::new(1) }
    }

    /// No rules yet: the first ones swapped in are the first generation.
    pub(crate) fn awaited() -> Generations {
        let none = Generation { number: 0, rules: RuleSet::empty() };
        Generations { current: ArcSwap::from_pointee(none), last: AtomicU64::new(0) }
    }

    #[inline]
    pub(crate) fn pin(&self) -> Pinned {
        Pinned(self.current.load())
    }

    /// Replaces the rules; requests under way finish under the old ones. Of two swaps at once the one with the higher
    /// number stays.
    pub(crate) fn swap(&self, rules: RuleSet, at_least: u64) -> u64 {
        let next = |last: u64| last.saturating_add(1).max(at_least);
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        let (Ok(last) | Err(last)) = last;
        let number = next(last);
        let new = Arc::new(Generation { number, rules });
        self.current.rcu(|current| if current.number < number { new.clone() } else { current.clone() });
        number
    }
}

impl Pinned {
    /// Another pin of the same generation.
    pub(crate) fn again(&self) -> Pinned {
        Pinned(Guard::from_inner(Arc::clone(&self.0)))
    }
}

impl Deref for Pinned {
    type Target = Generation;

    #[inline]
    fn deref(&self) -> &Generation {
        &self.0
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({})", self.number)
    }
}
