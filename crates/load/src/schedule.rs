//! The open loop: when requests fall due, and which are too late to be sent.

use crate::clock::SECOND;

/// Requests that fall due at a fixed rate. Receives the time as a value.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: u64,
    /// Nanoseconds between two requests.
    gap: f64,
    /// Number of the next request: those before were taken or dropped.
    next: u64,
}

impl Schedule {
    /// The first request is due at `start`.
    pub fn new(start: u64, per_second: f64) -> Schedule {
        Schedule { start, gap: SECOND as f64 / per_second, next: 0 }
    }

    /// Number of requests that are due and not taken yet.
    pub fn due(&self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.start) as f64 / self.gap;
        let begun = if now < self.start { 0 } else { passed as u64 + 1 };
        begun.saturating_sub(self.next)
    }

    /// Due time of the next request.
    pub fn next_at(&self) -> u64 {
        self.at(self.next)
    }

    /// Takes the next request, and returns its due time, from which its latency counts.
    pub fn take(&mut self) -> u64 {
        self.next += 1;
        self.at(self.next - 1)
    }

    /// Drops the requests that were due before `limit`, and returns their number: the backlog stays bounded.
    pub fn drop_before(&mut self, limit: u64) -> u64 {
        let due = self.due(limit.saturating_sub(1));
        self.next += due;
        due
    }

    fn at(&self, number: u64) -> u64 {
        self.start + (number as f64 * self.gap) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_fall_due_one_by_one() {
        let mut schedule = Schedule::new(1_000, 1e6); // one per microsecond
        assert_eq!(schedule.due(999), 0);
        assert_eq!(schedule.due(1_000), 1);
        assert_eq!(schedule.due(3_999), 3);
        assert_eq!([schedule.take(), schedule.take()], [1_000, 2_000]);
        assert_eq!((schedule.due(3_999), schedule.next_at()), (1, 3_000));
    }

    #[test]
    fn the_latency_of_a_late_request_counts_from_its_due_time() {
        let mut schedule = Schedule::new(0, 1_000.0);
        assert_eq!(schedule.due(SECOND), 1_001);
        assert_eq!(schedule.take(), 0, "a second late");
    }

    #[test]
    fn requests_that_are_too_late_are_dropped_and_counted() {
        let mut schedule = Schedule::new(0, 1_000.0);
        assert_eq!(schedule.drop_before(SECOND / 2), 500);
        assert_eq!(schedule.drop_before(SECOND / 2), 0);
        assert_eq!((schedule.take(), schedule.due(SECOND)), (SECOND / 2, 500));
    }
}
