//! What one finished request says about the upstream, and windows of such samples.

use tollgate_core::{Span, Time};

/// One finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// How long it took.
    pub rtt: Span,
    /// Requests in flight when it started, itself included.
    pub in_flight: u32,
    /// The upstream refused it for load, or did not answer in time.
    pub dropped: bool,
}

/// How samples are merged before an algorithm sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// Fewest samples of a window.
    pub samples_min: u32,
    /// Shortest window.
    pub length: Span,
    /// Samples below this are no answers of the upstream: they are discarded.
    pub rtt_min: Span,
}

impl Default for WindowConfig {
    fn default() -> WindowConfig {
        WindowConfig { samples_min: 10, length: Span::SECOND, rtt_min: Span::from_nanos(100_000) }
    }
}

/// Merges samples: one slow request is noise, the mean of a second is a measurement.
#[derive(Clone, Debug)]
pub struct SampleWindow {
    config: WindowConfig,
    until: Option<Time>,
    count: u32,
    sum: u128,
    in_flight: u32,
    dropped: bool,
}

impl SampleWindow {
    /// An empty window.
    pub fn new(config: WindowConfig) -> SampleWindow {
        SampleWindow { config, until: None, count: 0, sum: 0, in_flight: 0, dropped: false }
    }

    /// Adds a sample; returns the mean time, the largest number in flight and whether any was dropped, when the window
    /// is over.
    pub fn add(&mut self, now: Time, sample: RttSample) -> Option<RttSample> {
        if sample.rtt < self.config.rtt_min {
            return None;
        }
        let until = *self.until.get_or_insert(now.after(self.config.length));
        self.count = self.count.saturating_add(1);
        self.sum += u128::from(sample.rtt.nanos());
        self.in_flight = self.in_flight.max(sample.in_flight);
        self.dropped |= sample.dropped;
        if now < until || self.count < self.config.samples_min {
            return None;
        }
        let mean = self.sum / u128::from(self.count);
        let rtt = Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX));
        let merged = RttSample { rtt, in_flight: self.in_flight, dropped: self.dropped };
        *self = SampleWindow::new(self.config);
        self.until = Some(now.after(self.config.length));
        Some(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(millis: u64, in_flight: u32) -> RttSample {
        RttSample { rtt: Span::from_millis(millis), in_flight, dropped: false }
    }

    #[test]
    fn a_window_needs_a_second_and_ten_samples() {
        let mut window = SampleWindow::new(WindowConfig::default());
        let start = Time::from_secs(100);
        for step in 0..9 {
            assert_eq!(window.add(start.after(Span::from_millis(step)), sample(10, 3)), None);
        }
        assert_eq!(window.add(start.after(Span::from_millis(999)), sample(10, 7)), None, "too early");
        let merged = window.add(start.after(Span::SECOND), RttSample { dropped: true, ..sample(21, 5) });
        assert_eq!(merged, Some(RttSample { rtt: Span::from_millis(11), in_flight: 7, dropped: true }));
        let late = start.after(Span::from_secs(5));
        for _ in 0..9 {
            assert_eq!(window.add(late, sample(10, 1)), None, "too few");
        }
        assert_eq!(window.add(late, sample(10, 1)), Some(sample(10, 1)), "the drop was of the last window");
    }

    #[test]
    fn very_short_times_are_not_samples() {
        let config = WindowConfig { samples_min: 1, length: Span::ZERO, ..WindowConfig::default() };
        let mut window = SampleWindow::new(config);
        let short = RttSample { rtt: Span::from_nanos(99_999), in_flight: 1, dropped: false };
        assert_eq!(window.add(Time::from_secs(1), short), None);
        assert_eq!(window.add(Time::from_secs(1), sample(1, 1)), Some(sample(1, 1)));
    }
}
