//! Checks a history of decisions against the promises (RELIABILITY 5.7).
//!
//! It does not know how decisions are made. It reads what was admitted, when and in which mode, from the decision logs
//! of all nodes and from the clients' own observations, and searches for an interval in which more was admitted than the mode
//! promises. Modes are checked apart, which is stricter than their sum: what the shared store admitted keeps the limit
//! (P1 to P4, with leases P5 and P6), what each node admitted alone keeps its share (P13), what overflowed keeps the
//! overflow limit, and what was refused by policy was refused (P14). A loss of data buys one more limit (P17).

mod admission;
mod inflight;
mod log;
mod observation;
mod promise;
mod reconcile;
mod report;
mod scan;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use admission::{Admission, AdmissionMode};
pub use inflight::{HeldSlot, inflight};
pub use log::{LoggedDecision, read, read_line};
pub use observation::{ClientObservation, as_admissions};
pub use promise::{Keyed, Loss, Promise};
pub use reconcile::{BucketPeriod, UsageBounds, UsageLedger};
pub use report::{CheckReport, PromiseViolation};
pub use scan::scan;
pub use sweep::{Flow, Piece, sweep};

use crate::LimitConfig;

/// Checks decision logs, which have the store's time: aligned windows and all intervals are known exactly.
pub fn check_log(promises: &[Promise], entries: &[LoggedDecision]) -> CheckReport {
    let mut report = CheckReport::default();
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
        let admitted = entries.iter().filter(|entry| entry.allowed).flat_map(LoggedDecision::admissions);
        let admitted = admitted.filter(|admission| admission.rule == promise.rule).collect();
        check(promise, admitted, Times::Exact, &mut report);
    }
    report
}

/// Checks what clients observed, by their own clock: a request was decided at some time between sending and answer, so
/// only requests that lie wholly inside an interval count for it.
pub fn check_observations(promises: &[Promise], observations: &[ClientObservation]) -> CheckReport {
    let mut report = CheckReport { decisions: observations.len() as u64, ..CheckReport::default() };
    for promise in promises {
        let admitted: Vec<Admission> =
            as_admissions(observations).filter(|admission| admission.rule == promise.rule).collect();
        admitted.iter().for_each(|admission| report.count(admission));
        check(promise, admitted, Times::Between, &mut report);
    }
    report
}

/// How precisely the time of an admission is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Times {
    /// The store's own time.
    Exact,
    /// Somewhere between two times of the client.
    Between,
}

fn check(promise: &Promise, admitted: Vec<Admission>, times: Times, report: &mut CheckReport) {
    let mut buckets: BTreeMap<(AdmissionMode, String), Vec<Piece>> = BTreeMap::new();
    for admission in admitted {
        let place = match admission.mode {
            AdmissionMode::Open | AdmissionMode::Async | AdmissionMode::Off => continue, // no bound is promised
            AdmissionMode::Closed => {
                report.violate(promise, "P14: admitted in mode closed", &admission.key, 1, 0);
                continue;
            }
            AdmissionMode::Store | AdmissionMode::Lease => (AdmissionMode::Store, promise.bucket(&admission.key)),
            AdmissionMode::Fallback | AdmissionMode::Local => {
                (AdmissionMode::Fallback, format!("{} at node {}", promise.bucket(&admission.key), admission.node))
            }
            AdmissionMode::Overflow => (AdmissionMode::Overflow, "overflow".to_owned()),
        };
        let Admission { from, to, units, .. } = admission;
        let leased = admission.mode == AdmissionMode::Lease;
        buckets.entry(place).or_default().push(Piece { from, to, units, leased });
    }
    for ((mode, bucket), pieces) in &mut buckets {
        let limit = match mode {
            AdmissionMode::Fallback => promise.share(),
            AdmissionMode::Overflow => promise.overflow(),
            _ => promise.limit,
        };
        let leased = if pieces.iter().any(|piece| piece.leased) { promise.leased } else { 0 };
        let losses = if *mode == AdmissionMode::Fallback { &[][..] } else { &promise.losses };
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
    limit: LimitConfig,
    leased: u64,
    losses: &'a [Loss],
}

impl Case<'_> {
    fn any_interval(&self, pieces: &mut [Piece], report: &mut CheckReport) {
        for (name, flow) in Flow::of(&self.limit, self.leased) {
            if let Some((sum, most)) = sweep(pieces, &flow, self.losses) {
                report.violate(self.promise, name, self.bucket, sum, most);
            }
        }
    }

    /// P1 and P6: what an aligned window admits.
    fn aligned_windows(&self, pieces: &[Piece], report: &mut CheckReport) {
        let LimitConfig::FixedWindow { limit, window, offset } = self.limit else { return };
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
