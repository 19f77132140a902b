//! A counter for many threads.
//!
//! Each thread counts in its own stripe, on its own cache line, so that cores never contend; only a scrape sums them.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// As many stripes as cores, a power of two, at most 16.
pub(super) static STRIPES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from).next_power_of_two().min(16));

/// The stripe of this thread.
#[inline]
pub(super) fn stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! { static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) }; }
    STRIPE.with(|stripe| match stripe.get() {
        usize::MAX => {
            stripe.set(NEXT.fetch_add(1, Ordering::Relaxed) % *STRIPES);
            stripe.get()
        }
        known => known,
    })
}

/// A monotonic counter.
#[derive(Debug)]
pub struct Counter(Box<[Stripe]>);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

impl Default for Counter {
    fn default() -> Counter {
        Counter((0..*STRIPES).map(|_| Stripe::default()).collect())
    }
}

impl Counter {
    /// Adds one.
    #[inline]
    pub fn add_one(&self) {
        self.add(1);
    }

    /// Adds `count`.
    #[inline]
    pub fn add(&self, count: u64) {
        if let Some(stripe) = self.0.get(stripe()) {
            stripe.0.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// The current value.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loses_nothing_between_threads() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..1000).for_each(|_| counter.add_one()));
            }
        });
        assert_eq!(counter.sum(), 20_000);
    }
}
