//! Marks of quotas that this node reported already.
//!
//! Usage may fall below a mark and reach it again, where a reservation is settled lower: that is no second event. What
//! was reported is remembered until its place is needed, those whose period ends first being forgotten first.

use std::collections::BTreeSet;

use tollgate_core::{Digest, Time};

/// Most marks that are remembered, in about 8 MiB. Beyond, a mark may be reported twice in a period, never lost.
const REMEMBERED_MAX: usize = 100_000;

/// A mark of one bucket in one period. In the order in which periods end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReachedMark {
    /// The end of the period.
    pub(crate) end: Time,
    /// The bucket.
    pub(crate) bucket: Digest,
    /// The percentage.
    pub(crate) percent: u32,
    /// The usage that reaches it: under another limit, a percentage is another mark.
    pub(crate) units: u64,
}

/// The marks that were reported.
#[derive(Debug, Default)]
pub(crate) struct ReportedMarks(BTreeSet<ReachedMark>);

impl ReportedMarks {
    /// Remembers a mark; true if it was not reported before.
    pub(crate) fn is_first(&mut self, mark: ReachedMark) -> bool {
        let is_first = self.0.insert(mark);
        if self.0.len() > REMEMBERED_MAX {
            self.0.pop_first();
        }
        is_first
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_periods_that_end_first_are_forgotten_first() {
        let mark = |number: u64| ReachedMark {
            end: Time::from_secs(1 + number % 2),
            bucket: Digest([number, 0]),
            percent: 80,
            units: 8,
        };
        let mut reported = ReportedMarks::default();
        let most = REMEMBERED_MAX as u64;
        assert!((0..=most).all(|number| reported.is_first(mark(number))));
        assert_eq!(reported.len(), REMEMBERED_MAX);
        assert!(!reported.is_first(mark(1)) && !reported.is_first(mark(most)), "the last and a later period are kept");
        assert!(reported.is_first(mark(0)), "the first of the earlier period made room");
        assert!(reported.is_first(ReachedMark { units: 9, ..mark(1) }), "under another limit it is another mark");
    }
}
