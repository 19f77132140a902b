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
