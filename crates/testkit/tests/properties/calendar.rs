//! Quotas of nodes whose clocks differ, against a ledger and a table of periods.

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_testkit::SubjectKind;
use tollgate_testkit::oracle::{CalendarRun, play_calendar};

use crate::holds;

#[test]
fn nodes_whose_clocks_differ_share_one_calendar() {
    let runs = (any::<[u8; 3]>(), any::<[u8; 5]>(), vec(any::<[u8; 4]>(), 0..=120));
    holds("proptest-regressions/calendar.txt", runs, |(numbers, lengths, steps)| {
        let run = CalendarRun { numbers, lengths, steps };
        SubjectKind::ALL.into_iter().try_for_each(|kind| play_calendar(&run, &mut *kind.open()))
    });
}
