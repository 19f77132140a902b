//! The demand for a bucket, which determines the size of its lease.

use tollgate_core::{Digest, Span, Time};

/// The period over which the rate is measured.
const PERIOD: Span = Span::from_millis(100);

/// The current period counts as at least this long, and only with some units in it: two simultaneous requests are no
/// trend.
const BEGUN: Span = Span::from_millis(25);
const BEGUN_UNITS: u64 = 4;

/// Two requests within this span start the demand for a lease.
const SPAN: Span = Span::from_millis(500);

/// The rate at which units are requested, granted or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// Start of the current period.
    since: Time,
    /// Units requested in it.
    units: u64,
    /// Units per second, over the previous periods.
    rate: u64,
}

impl Demand {
    /// Demand that began `gap` ago.
    pub(super) fn begun(now: Time, gap: Span) -> Demand {
        let gap = gap.max(BEGUN);
        Demand { since: now, units: 0, rate: per_second(1, gap) }
    }

    #[inline]
    pub(super) fn note(&mut self, now: Time, units: u64) {
        self.units = self.units.saturating_add(units);
        if now.since(self.since) >= PERIOD {
            self.roll(now);
        }
    }

    /// Growth counts at once, decline by half per period: a lease that is too small costs calls, one that is too large
    /// is given back.
    fn roll(&mut self, now: Time) {
        let sample = per_second(self.units, now.since(self.since));
        let rate = if sample > self.rate { sample } else { self.rate.midpoint(sample) };
        *self = Demand { since: now, units: 0, rate };
    }

    /// Units per second.
    pub(super) fn rate(&self, now: Time) -> u64 {
        match self.units < BEGUN_UNITS {
            true => self.rate,
            false => self.rate.max(per_second(self.units, now.since(self.since).max(BEGUN))),
        }
    }

    /// Units expected in that span.
    pub(super) fn over(&self, span: Span) -> u64 {
        let units = u128::from(self.rate) * u128::from(span.nanos()) / u128::from(Span::SECOND.nanos());
        u64::try_from(units).unwrap_or(u64::MAX)
    }

    /// How long without a request before a lease counts as idle: two periods, or six times the usual gap.
    pub(super) fn patience(&self) -> Span {
        let gap = Span::SECOND.nanos() / self.rate.max(1);
        Span::from_nanos(gap.saturating_mul(6)).max(PERIOD.plus(PERIOD))
    }
}

fn per_second(units: u64, over: Span) -> u64 {
    let wide = u128::from(units) * u128::from(Span::SECOND.nanos()) / u128::from(over.nanos().max(1));
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// Remembers recently used buckets in bounded memory: collisions overwrite each other.
#[derive(Debug)]
pub(super) struct RecentBuckets(Box<[(u32, u32)]>);

impl RecentBuckets {
    pub(super) fn new(places: usize) -> RecentBuckets {
        RecentBuckets(vec![(0, 0); places.max(1)].into_boxed_slice())
    }

    /// Notes a use of the bucket. Returns how long ago it was last used, if that was recently.
    pub(super) fn touch(&mut self, bucket: Digest, now: Time) -> Option<Span> {
        let [_, bits] = bucket.0;
        let (tag, millis) = (bits as u32 | 1, (now.nanos() / 1_000_000) as u32);
        let index = ((u128::from(bits) * self.0.len() as u128) >> 64) as usize;
        let place = self.0.get_mut(index)?;
        let (was, at) = std::mem::replace(place, (tag, millis));
        let gap = Span::from_millis(u64::from(millis.wrapping_sub(at)));
        (was == tag && gap <= SPAN).then_some(gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_secs(100);

    #[test]
    fn the_rate_follows_growth_at_once_and_decline_by_half() {
        let mut demand = Demand::begun(START, Span::from_millis(100));
        assert_eq!(demand.rate(START), 10);
        for step in 1..=100 {
            demand.note(START.after(Span::from_millis(step)), 4);
        }
        assert_eq!(demand.rate(START.after(Span::from_millis(100))), 4_000);
        demand.note(START.after(Span::from_millis(200)), 100);
        assert_eq!(demand.rate(START.after(Span::from_millis(200))), 2_500);
    }

    #[test]
    fn a_burst_counts_before_its_period_is_over() {
        let mut demand = Demand::begun(START, Span::from_millis(500));
        (0..100).for_each(|_| demand.note(START, 1));
        assert_eq!(demand.rate(START), 4_000);
    }

    #[test]
    fn a_bucket_is_remembered_for_a_short_time() {
        let mut recent = RecentBuckets::new(16);
        let bucket = Digest([1, 2 << 40 | 3]);
        assert_eq!(recent.touch(bucket, START), None);
        assert_eq!(recent.touch(bucket, START.after(Span::from_millis(7))), Some(Span::from_millis(7)));
        assert_eq!(recent.touch(bucket, START.after(Span::from_secs(7))), None);
        assert_eq!(recent.touch(Digest([1, 2 << 40 | 9]), START.after(Span::from_secs(7))), None, "overwrites");
        assert_eq!(recent.touch(bucket, START.after(Span::from_secs(7))), None);
    }
}
