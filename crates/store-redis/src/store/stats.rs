//! Counters of one primary, and of requests that span several slots.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::Span;

use crate::client::breaker::Phase;
use crate::client::failure::ErrorCode;

/// Upper bounds of the buckets of [`Histogram`] for times, in microseconds; one more bucket counts longer times.
pub const LATENCY_BOUNDS: [u64; 15] =
    [50, 100, 200, 300, 500, 750, 1_000, 2_000, 3_000, 5_000, 10_000, 15_000, 20_000, 25_000, 50_000];
/// Upper bounds of the buckets for requests per script call; one more bucket counts larger calls.
pub const BATCH_BOUNDS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// A histogram.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    bounds: [u64; N],
    counts: [AtomicU64; N],
    above: AtomicU64,
    sum: AtomicU64,
}

/// A snapshot of a [`Histogram`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Upper bound of each bucket and its count (not cumulative).
    pub buckets: Vec<(u64, u64)>,
    /// Count above the last bound.
    pub above: u64,
    /// Sum of all values.
    pub sum: u64,
    /// Number of values.
    pub count: u64,
}

impl<const N: usize> Histogram<N> {
    fn new(bounds: [u64; N]) -> Histogram<N> {
        Histogram { bounds, counts: [const { AtomicU64::new(0) }; N], above: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    fn count(&self, value: u64) {
        let place = self.bounds.iter().position(|bound| value <= *bound);
        let counter = place.and_then(|place| self.counts.get(place)).unwrap_or(&self.above);
        counter.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    fn distribution(&self) -> Distribution {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(u64, u64)> = self.bounds.iter().copied().zip(counts).collect();
        let above = self.above.load(Ordering::Relaxed);
        let count = above + buckets.iter().map(|(_, count)| count).sum::<u64>();
        Distribution { buckets, above, sum: self.sum.load(Ordering::Relaxed), count }
    }
}

/// Declares the counters and their snapshot once.
macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// The counters of one primary.
        #[derive(Debug)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)+
            errors: [AtomicU64; ErrorCode::ALL.len()],
            latency: Histogram<{ LATENCY_BOUNDS.len() }>,
            batches: Histogram<{ BATCH_BOUNDS.len() }>,
        }

        /// A snapshot of the counters of one primary.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct PrimaryStats {
            $($(#[$doc])+ pub $name: u64,)+
            /// Errors of the server by code, in the order of [`ErrorCode::ALL`].
            pub errors: Vec<(&'static str, u64)>,
            /// Time from writing a call to reading its reply, in microseconds.
            pub latency: Distribution,
            /// Requests per script call.
            pub batches: Distribution,
            /// Calls that wait in the queue.
            pub waiting: u64,
            /// The phase of the breaker.
            pub phase: Option<Phase>,
            /// How often each phase of the breaker began, in the order of [`Phase::ALL`].
            pub transitions: [u64; 3],
        }

        impl Counters {
            pub(crate) fn new() -> Counters {
                Counters {
                    $($name: AtomicU64::new(0),)+
                    errors: [const { AtomicU64::new(0) }; ErrorCode::ALL.len()],
                    latency: Histogram::new(LATENCY_BOUNDS),
                    batches: Histogram::new(BATCH_BOUNDS),
                }
            }

            /// A snapshot.
            pub(crate) fn snapshot(&self, waiting: usize, phase: Phase, transitions: [u64; 3]) -> PrimaryStats {
                let errors = ErrorCode::ALL.iter().zip(&self.errors);
                PrimaryStats {
                    $($name: self.$name.load(Ordering::Relaxed),)+
                    errors: errors.map(|(word, count)| (word.name(), count.load(Ordering::Relaxed))).collect(),
                    latency: self.latency.distribution(),
                    batches: self.batches.distribution(),
                    waiting: waiting as u64,
                    phase: Some(phase),
                    transitions,
                }
            }
        }

        impl PrimaryStats {
            /// The sum, for several primaries; the worse phase of the two.
            pub fn and(mut self, other: &PrimaryStats) -> PrimaryStats {
                $(self.$name += other.$name;)+
                add_counts(&mut self.errors, &other.errors);
                self.latency.add(&other.latency);
                self.batches.add(&other.batches);
                self.waiting += other.waiting;
                self.phase = self.phase.max(other.phase);
                self.transitions.iter_mut().zip(other.transitions).for_each(|(sum, count)| *sum += count);
                self
            }
        }
    };
}

counters! {
    /// Script calls.
    script_calls,
    /// Requests in them.
    requests,
    /// Calls that gave receipts back.
    returns,
    /// Plain commands; a pipeline counts once.
    commands,
    /// Writes to a connection, each with all waiting calls.
    flushes,
    /// Scripts sent as text because the server did not know them.
    reloads,
    /// Requests sent again after a reply that proved that nothing was executed.
    resent,
    /// Calls that reached the store after their deadline and charged nothing.
    expired,
    /// Requests rejected because the queue was full.
    saturated,
    /// Requests that may or may not have been charged.
    indeterminate,
    /// Requests withdrawn before they were sent.
    withdrawn,
    /// Late replies and connections attributed to this node, whose own timers were late.
    own_delays,
    /// Requests that the open breaker turned away.
    turned_away,
    /// How often the breaker opened.
    openings,
    /// Probes of an open breaker.
    probes,
    /// Attempts to connect.
    connects,
    /// Attempts that failed.
    connect_failures,
    /// Connections closed after a malformed, unexpected or missing reply.
    broken,
    /// Data losses: the store was emptied, replaced or restarted.
    epoch_changes,
    /// How often the store's clock was set.
    clock_steps,
    /// Buckets that had lost their expiry and got one again.
    mended,
    /// Verdicts of a script that differ from this node's replay: a bug in one of the two.
    disagreed,
}

/// Adds one to a counter.
pub(crate) fn increment(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

impl Counters {
    /// Counts an error and returns how many of its code there were.
    pub(crate) fn count_error(&self, code: ErrorCode) -> u64 {
        self.errors.get(code.index()).map_or(0, |counter| counter.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn record_latency(&self, span: Span) {
        self.latency.count(span.nanos().div_ceil(1000));
    }

    pub(crate) fn record_batch(&self, requests: usize) {
        self.batches.count(requests as u64);
    }
}

impl PrimaryStats {
    /// Number of errors of this kind.
    pub fn errors_of(&self, code: ErrorCode) -> u64 {
        self.errors.get(code.index()).map_or(0, |(_, count)| *count)
    }
}

impl Distribution {
    fn add(&mut self, other: &Distribution) {
        add_counts(&mut self.buckets, &other.buckets);
        self.above += other.above;
        self.sum += other.sum;
        self.count += other.count;
    }
}

/// Adds counts with the same keys.
fn add_counts<K: Copy>(to: &mut Vec<(K, u64)>, from: &[(K, u64)]) {
    if to.is_empty() {
        to.extend_from_slice(from);
        return;
    }
    for ((_, sum), (_, more)) in to.iter_mut().zip(from) {
        *sum += more;
    }
}

/// Counters of the store as a whole; each primary has its own besides.
#[derive(Debug, Default)]
pub(crate) struct SlotCounters {
    overflowed: AtomicU64,
    split: AtomicU64,
    undone: AtomicU64,
    overcharged: AtomicU64,
}

/// A snapshot of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotStats {
    /// Charges moved to an overflow bucket because their namespace had created too many buckets.
    pub overflowed: u64,
    /// Requests that one slot denied after another had charged them.
    pub split: u64,
    /// Charges given back for them.
    pub undone: u64,
    /// Charges that could not be given back: clients got that much less than their limit.
    pub overcharged: u64,
}

impl SlotCounters {
    pub(crate) fn overflowed(&self, charges: usize) {
        self.overflowed.fetch_add(charges as u64, Ordering::Relaxed);
    }

    /// A denial by the group at this index, after the groups before it had charged.
    pub(crate) fn split(&self, index: usize) {
        self.split.fetch_add(u64::from(index > 0), Ordering::Relaxed);
    }

    pub(crate) fn undone(&self, charges: usize) {
        self.undone.fetch_add(charges as u64, Ordering::Relaxed);
    }

    pub(crate) fn overcharged(&self, charges: usize) {
        self.overcharged.fetch_add(charges as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> SlotStats {
        let SlotCounters { overflowed, split, undone, overcharged } = self;
        let [overflowed, split, undone, overcharged] =
            [overflowed, split, undone, overcharged].map(|counter| counter.load(Ordering::Relaxed));
        SlotStats { overflowed, split, undone, overcharged }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_where_they_belong() {
        let counters = Counters::new();
        for micros in [1, 50, 51, 60_000] {
            counters.record_latency(Span::from_nanos(micros * 1000));
        }
        counters.record_batch(3);
        counters.count_error(ErrorCode::Busy);
        increment(&counters.expired);
        let stats = counters.snapshot(5, Phase::Open, [1, 0, 2]);
        assert_eq!(stats.latency.buckets[..2], [(50, 2), (100, 1)]);
        assert_eq!((stats.latency.above, stats.latency.count, stats.latency.sum), (1, 4, 60_102));
        assert_eq!(stats.batches.buckets[2], (4, 1));
        assert_eq!((stats.errors_of(ErrorCode::Busy), stats.errors_of(ErrorCode::Loading)), (1, 0));
        assert_eq!((stats.expired, stats.waiting, stats.phase), (1, 5, Some(Phase::Open)));
    }

    #[test]
    fn the_figures_of_several_primaries_add_up() {
        let counters = Counters::new();
        counters.record_latency(Span::from_millis(1));
        increment(&counters.requests);
        let (one, none) = (counters.snapshot(1, Phase::Closed, [1, 2, 3]), PrimaryStats::default());
        let both = none.clone().and(&one).and(&counters.snapshot(2, Phase::Open, [0, 0, 1])).and(&none);
        assert_eq!((both.requests, both.waiting, both.latency.count), (2, 3, 2));
        assert_eq!(both.phase, Some(Phase::Open));
    }
}
