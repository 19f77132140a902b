//! The history checker: were the promises kept (RELIABILITY 5.7)?
//!
//! It knows nothing of how decisions are made. It reads what was admitted, when and in which mode, from the decision logs
//! of all nodes and from the clients' own notes, and searches for an interval in which more was admitted than the mode
//! promises. Modes are checked apart, which is stricter than their sum: what the shared store admitted keeps the limit
//! (P1 to P4, with leases P5 and P6), what each node admitted by itself keeps its share (P13), what overflowed keeps the
//! overflow limit, and what was refused by policy was refused (P14). A loss of data buys one more limit (P17).

mod admission;
mod inflight;
mod log;
mod notes;
mod promise;
mod report;
mod scan;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use admission::{Admission, Mode};
pub use inflight::{Held, inflight};
pub use log::{Entry, read, read_line};
pub use notes::{Note, as_admissions};
pub use promise::{Keyed, Loss, Promise};
pub use report::{Report, Violation};
pub use scan::scan;
pub use sweep::{Flow, Piece, sweep};

use crate::Config;

/// Checks what was admitted, as the store timed it: aligned windows are known, so is every interval.
pub fn check_log(promises: &[Promise], entries: &[Entry]) -> Report {
    let mut report = Report::default();
    for entry in entries {
        report.decisions += 1;
        if !entry.allowed {
            continue;
        }
        for admission in entry.admissions() {
            report.count(&admission);
        }
    }
    for promise in promises {
        let admitted = entries.iter().filter(|entry| entry.allowed).flat_map(Entry::admissions);
        let admitted = admitted.filter(|admission| admission.rule == promise.rule).collect();
        check(promise, admitted, Times::Exact, &mut report);
    }
    report
}

/// Checks what clients were told, without trust in any clock but theirs: a request was decided somewhere between asking
/// and hearing, so only requests that lie wholly inside an interval count for it.
pub fn check_notes(promises: &[Promise], notes: &[Note]) -> Report {
    let mut report = Report { decisions: notes.len() as u64, ..Report::default() };
    for promise in promises {
        let admitted: Vec<Admission> =
            as_admissions(notes).filter(|admission| admission.rule == promise.rule).collect();
        admitted.iter().for_each(|admission| report.count(admission));
        check(promise, admitted, Times::Between, &mut report);
    }
    report
}

/// What is known about when an admission was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Times {
    /// The store's own time.
    Exact,
    /// Somewhere between two times of the client.
    Between,
}

fn check(promise: &Promise, admitted: Vec<Admission>, times: Times, report: &mut Report) {
    let mut buckets: BTreeMap<(Mode, String), Vec<Piece>> = BTreeMap::new();
    for admission in admitted {
        let place = match admission.mode {
            Mode::Open | Mode::Async | Mode::Off => continue, // no bound was promised
            Mode::Closed => {
                report.violate(promise, "P14: admitted in mode closed", &admission.key, 1, 0);
                continue;
            }
            Mode::Store | Mode::Lease => (Mode::Store, promise.bucket(&admission.key)),
            Mode::Fallback | Mode::Local => {
                (Mode::Fallback, format!("{} at node {}", promise.bucket(&admission.key), admission.node))
            }
            Mode::Overflow => (Mode::Overflow, "overflow".to_owned()),
        };
        let Admission { from, to, units, .. } = admission;
        let leased = admission.mode == Mode::Lease;
        buckets.entry(place).or_default().push(Piece { from, to, units, leased });
    }
    for ((mode, bucket), pieces) in &mut buckets {
        let limit = match mode {
            Mode::Fallback => promise.share(),
            Mode::Overflow => promise.overflow(),
            _ => promise.limit,
        };
        let leased = if pieces.iter().any(|piece| piece.leased) { promise.leased } else { 0 };
        let losses = if *mode == Mode::Fallback { &[][..] } else { &promise.losses };
        let case = Case { promise, bucket, limit, leased, losses };
        case.any_interval(pieces, report);
        if times == Times::Exact {
            case.aligned_windows(pieces, report);
        }
    }
}

/// One bucket, and what bounds it.
struct Case<'a> {
    promise: &'a Promise,
    bucket: &'a str,
    limit: Config,
    leased: u64,
    losses: &'a [Loss],
}

impl Case<'_> {
    fn any_interval(&self, pieces: &mut [Piece], report: &mut Report) {
        for (name, flow) in Flow::of(&self.limit, self.leased) {
            if let Some((sum, most)) = sweep(pieces, &flow, self.losses) {
                report.violate(self.promise, name, self.bucket, sum, most);
            }
        }
    }

    /// P1 and P6: what an aligned window admits.
    fn aligned_windows(&self, pieces: &[Piece], report: &mut Report) {
        let Config::FixedWindow { limit, window, offset } = self.limit else { return };
        let mut windows: BTreeMap<u64, Vec<Piece>> = BTreeMap::new();
        for piece in pieces {
            windows.entry(piece.from.saturating_sub(offset) / window.max(1)).or_default().push(*piece);
        }
        let flow = Flow { weight: 1, drain: 0, capacity: limit, window: None };
        for mut pieces in windows.into_values() {
            if let Some((sum, most)) = sweep(&mut pieces, &flow, self.losses) {
                report.violate(self.promise, "P1: aligned window", self.bucket, sum, most);
            }
        }
    }
}
