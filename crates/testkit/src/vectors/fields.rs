//! The fields that each object of a vector file may have.
//!
//! A file with another field is refused: if the runner ignored it, the case would pass or fail for a reason that its
//! author did not mean.

use serde_json::{Map, Value};

use super::VectorFileError;

/// Fields of one kind of object.
pub(super) struct VectorFields {
    /// Read by the runner.
    read: &'static [&'static str],
    /// For people only.
    informative: &'static [&'static str],
}

pub(super) const FILE: VectorFields = VectorFields {
    read: &["algorithm", "time_unit", "cases", "config_errors"],
    informative: &["note", "semantics", "identity"],
};

pub(super) const CALENDAR_FILE: VectorFields =
    VectorFields { read: &["cases"], informative: &["tzdata", "made_by", "steps"] };

pub(super) const CALENDAR_CASE: VectorFields =
    VectorFields { read: &["name", "every", "zone", "anchor", "steps"], informative: &["note"] };

pub(super) const CALENDAR_STEP: VectorFields =
    VectorFields { read: &["at", "start", "end"], informative: &["by_hand"] };

pub(super) const RESERVATION_FILE: VectorFields =
    VectorFields { read: &["rules", "cases"], informative: &["semantics"] };

pub(super) const RESERVATION_CASE: VectorFields = VectorFields { read: &["name", "steps"], informative: &["note"] };

pub(super) const RESERVATION_STEP: VectorFields =
    VectorFields { read: &["op", "receipt", "as", "cost", "costs", "expect", "left"], informative: &[] };

pub(super) const CASE: VectorFields =
    VectorFields { read: &["name", "algorithm", "config", "rules", "steps"], informative: &["note", "interval_ns"] };

/// A rule of several, or a configuration that must be refused.
pub(super) const RULE: VectorFields = VectorFields { read: &["algorithm", "config"], informative: &["note", "error"] };

pub(super) const STEP: VectorFields = VectorFields {
    read: &["now_ns", "op", "id", "mode", "cost", "costs", "reconfigure", "expect", "gcra_expect"],
    informative: &["note", "state_after", "leases_after", "tokens_after", "leaky_meter_level_after", "gcra_tat_after"],
};

impl VectorFields {
    /// The fields of an object, if all of them are known.
    pub fn of<'a>(&self, value: &'a Value) -> Result<&'a Map<String, Value>, VectorFileError> {
        let fields = value.as_object().ok_or_else(|| VectorFileError(format!("{value} is not an object")))?;
        let known: Vec<&str> = self.read.iter().chain(self.informative).copied().collect();
        refuse_others(fields, &known)?;
        Ok(fields)
    }
}

/// Fails on the first field that is not listed.
pub(super) fn refuse_others(fields: &Map<String, Value>, known: &[&str]) -> Result<(), VectorFileError> {
    match fields.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) => Err(VectorFileError(format!("unknown field {field:?}; known are: {}", known.join(", ")))),
        None => Ok(()),
    }
}

/// The algorithms of the vector files that this runner knows.
pub(super) const ALGORITHMS: &[&str] =
    &["gcra", "token_bucket", "leaky_queue", "fixed_window", "sliding_log", "sliding_counter", "concurrency", "quota"];

/// The numbers of an algorithm, in `config` and in `reconfigure`.
pub(super) fn numbers(algorithm: &str) -> &'static [&'static str] {
    match algorithm {
        "gcra" => &["count", "period_ns", "burst", "max_debt", "clamp", "count_denied"],
        "token_bucket" => &["interval_ns", "capacity", "count_denied"],
        "leaky_queue" => &["count", "period_ns", "max_delay_ns", "count_denied"],
        "fixed_window" | "sliding_counter" => &["limit", "window_ns", "offset_ns", "count_denied"],
        "sliding_log" => &["limit", "window_ns", "count_denied"],
        "quota" => &["amount", "overdraft", "rollover", "grant", "start_ns", "end_ns", "next_end_ns", "count_denied"],
        _ => &["limit", "ttl_ns"],
    }
}

/// Fields of `config` beyond the numbers: the initial state of a case.
pub(super) fn state(algorithm: &str) -> &'static [&'static str] {
    if algorithm == "concurrency" { &["leases"] } else { &[] }
}
