//! The result of a check.

use std::collections::BTreeMap;
use std::fmt;

use super::{Admission, AdmissionMode, Promise};

/// Totals and violations.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Decisions read, refusals included.
    pub decisions: u64,
    /// Units admitted, by mode.
    pub admitted: BTreeMap<AdmissionMode, u64>,
    /// The worst interval of every bucket that exceeded its bound.
    pub violations: Vec<PromiseViolation>,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromiseViolation {
    /// The rule.
    pub rule: String,
    /// Which promise.
    pub promise: String,
    /// Of which bucket.
    pub bucket: String,
    /// Units admitted.
    pub admitted: u64,
    /// The bound.
    pub bound: u64,
}

impl CheckReport {
    /// Everything admitted.
    pub fn total(&self) -> u64 {
        self.admitted.values().sum()
    }

    /// Units admitted in a mode.
    pub fn in_mode(&self, mode: AdmissionMode) -> u64 {
        self.admitted.get(&mode).copied().unwrap_or(0)
    }

    /// Merges two reports.
    pub fn and(mut self, other: CheckReport) -> CheckReport {
        self.decisions += other.decisions;
        for (mode, units) in other.admitted {
            *self.admitted.entry(mode).or_default() += units;
        }
        self.violations.extend(other.violations);
        self
    }

    pub(super) fn count(&mut self, admission: &Admission) {
        *self.admitted.entry(admission.mode).or_default() += admission.units;
    }

    pub(super) fn violate(&mut self, promise: &Promise, name: &str, bucket: &str, admitted: u64, bound: u64) {
        let (rule, name, bucket) = (promise.rule.clone(), name.to_owned(), bucket.to_owned());
        self.violations.push(PromiseViolation { rule, promise: name, bucket, admitted, bound });
    }
}

impl fmt::Display for PromiseViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PromiseViolation { rule, promise, bucket, admitted, bound } = self;
        write!(f, "rule {rule}, bucket {bucket}: {admitted} admitted, at most {bound} ({promise})")
    }
}
