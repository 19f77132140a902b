//! Admissions over time, and by how much they exceed a limit.

/// Admissions of one bucket by all nodes, each between two readings of one clock.
#[derive(Clone, Debug, Default)]
pub struct AdmissionLog {
    before: Vec<u64>,
    after: Vec<u64>,
    /// Decisions in all, admissions included.
    pub decisions: u64,
    /// Decisions without the store.
    pub errors: u64,
}

impl AdmissionLog {
    /// Records an admission that was requested and answered at these times, in nanoseconds.
    pub fn admit(&mut self, before: u64, after: u64) {
        self.before.push(before);
        self.after.push(after);
    }

    /// Units admitted between two times.
    pub fn admitted(&self, from: u64, to: u64) -> u64 {
        self.after.iter().filter(|at| (from..to).contains(at)).count() as u64
    }

    /// The most that any stretch of time admitted beyond `per_second`: a bucket that keeps its promise never exceeds
    /// its burst. A stretch reaches from before the first of its admissions was asked for until the last was told, so
    /// that a slow answer is never mistaken for a broken promise.
    pub fn excess(&self, per_second: f64) -> f64 {
        let (mut before, mut after) = (self.before.clone(), self.after.clone());
        before.sort_unstable();
        after.sort_unstable();
        let Some(zero) = before.first().copied() else { return 0.0 };
        let due = |at: u64| at.saturating_sub(zero) as f64 / 1e9 * per_second;
        let mut begins = before.iter().enumerate().peekable();
        let (mut best_begin, mut most) = (f64::NEG_INFINITY, 0.0_f64);
        for (earlier, end) in after.iter().enumerate() {
            while let Some((place, begin)) = begins.next_if(|(_, begin)| *begin <= end) {
                best_begin = best_begin.max(due(*begin) - place as f64);
            }
            most = most.max((earlier + 1) as f64 - due(*end) + best_begin);
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_keeps_to_the_rate_exceeds_it_by_one() {
        let mut history = AdmissionLog::default();
        (0..100).for_each(|number| history.admit(number * 10 * MS, number * 10 * MS)); // 100 a second
        assert!((history.excess(100.0) - 1.0).abs() < 1e-6);
        assert_eq!(history.admitted(0, 500 * MS), 50);
    }

    #[test]
    fn a_burst_in_the_middle_is_found() {
        let mut history = AdmissionLog::default();
        (0..100).for_each(|number| history.admit(number * 10 * MS, number * 10 * MS));
        (0..20).for_each(|_| history.admit(505 * MS, 505 * MS));
        let excess = history.excess(100.0);
        assert!((20.0..22.0).contains(&excess), "{excess}");
    }

    #[test]
    fn slow_answers_are_no_burst() {
        let mut history = AdmissionLog::default();
        (0..100).for_each(|number| history.admit(number * 10 * MS, 2_000 * MS)); // all told at once
        assert!(history.excess(100.0) <= 1.0);
    }
}
