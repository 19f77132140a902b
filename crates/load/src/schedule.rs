//! The open loop: when requests are due, and which of them come too late to be sent.

use crate::clock::SECOND;

/// Requests due at a fixed rate. Pure: it is told the time.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: u64,
    /// Nanoseconds from one to the next.
    gap: f64,
    /// Requests taken or given up so far: the number of the next.
    next: u64,
}

impl Schedule {
    /// The first request is due at `start`.
    pub fn new(start: u64, per_second: f64) -> Schedule {
        Schedule { start, gap: SECOND as f64 / per_second, next: 0 }
    }

    /// Requests that are due and not taken yet.
    pub fn due(&self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.start) as f64 / self.gap;
        let begun = if now < self.start { 0 } else { passed as u64 + 1 };
        begun.saturating_sub(self.next)
    }

    /// When the next one is or was due.
    pub fn next_at(&self) -> u64 {
        self.at(self.next)
    }

    /// Takes the next one: the time from which its latency counts.
    pub fn take(&mut self) -> u64 {
        self.next += 1;
        self.at(self.next - 1)
    }

    /// Gives up what was due before `limit`, and tells how many those were: the backlog stays bounded.
    pub fn give_up_before(&mut self, limit: u64) -> u64 {
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
    fn a_late_request_counts_from_when_it_was_due() {
        let mut schedule = Schedule::new(0, 1_000.0);
        assert_eq!(schedule.due(SECOND), 1_001);
        assert_eq!(schedule.take(), 0, "a second late, and it shows");
    }

    #[test]
    fn what_is_too_late_is_given_up_and_counted() {
        let mut schedule = Schedule::new(0, 1_000.0);
        assert_eq!(schedule.give_up_before(SECOND / 2), 500);
        assert_eq!(schedule.give_up_before(SECOND / 2), 0);
        assert_eq!((schedule.take(), schedule.due(SECOND)), (SECOND / 2, 500));
    }
}
