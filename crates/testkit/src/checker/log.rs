//! Decision logs, as nodes write them.

use std::path::Path;

use serde_json::Value;

use super::{Admission, AdmissionMode};

/// One line: a request and its decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedDecision {
    /// The node.
    pub node: String,
    /// The digest of the caller's key.
    pub key: String,
    /// The generation of rules.
    pub generation: u64,
    /// Whether it passed.
    pub allowed: bool,
    /// When, by the clock of the store or the node that decided.
    pub time_ns: u64,
    /// What each rule recorded, by its name.
    pub charged: Vec<(String, AdmissionMode, u64)>,
}

impl LoggedDecision {
    /// What the request was charged, rule by rule. A rule that was not evaluated is not listed.
    pub fn admissions(&self) -> impl Iterator<Item = Admission> + '_ {
        self.charged.iter().map(|(rule, mode, units)| Admission {
            rule: rule.clone(),
            key: self.key.clone(),
            node: self.node.clone(),
            mode: *mode,
            units: *units,
            from: self.time_ns,
            to: self.time_ns,
        })
    }
}

/// Reads all decisions of a file, or fails on the first malformed line. Lines about settlements, which decide nothing, are
/// left out. A last line without a newline was cut off by a crash
/// and is left out: its decision never reached a caller.
pub fn read(path: &Path) -> Result<Vec<LoggedDecision>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let lines = whole.lines().enumerate();
    let decisions = lines.filter(|(_, line)| !line.contains(",\"settlement\":") && !line.contains(",\"unanswered\":"));
    decisions
        .map(|(number, line)| read_line(line).map_err(|what| format!("line {}: {what}: {line}", number + 1)))
        .collect()
}

/// One line.
pub fn read_line(line: &str) -> Result<LoggedDecision, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| value.get(name).and_then(Value::as_u64).ok_or_else(|| format!("no {name}"));
    let charged = value.get("charged").and_then(Value::as_array).ok_or("no charged")?;
    Ok(LoggedDecision {
        node: text("node").ok_or("no node")?,
        key: text("key").unwrap_or_default(),
        generation: number("generation")?,
        allowed: value.get("allowed").and_then(Value::as_bool).ok_or("no allowed")?,
        time_ns: number("time_ns")?,
        charged: charged.iter().map(charge).collect::<Option<_>>().ok_or("malformed charge")?,
    })
}

fn charge(value: &Value) -> Option<(String, AdmissionMode, u64)> {
    let mode = AdmissionMode::named(value.get("mode")?.as_str()?)?;
    Some((value.get("rule")?.as_str()?.to_owned(), mode, value.get("units")?.as_u64()?))
}
