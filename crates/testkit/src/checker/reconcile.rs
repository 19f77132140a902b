//! Sums up what quotas were charged, from decision logs or from what callers know, and compares it with usage.
//!
//! Usage is billed, so it must be right to the unit. A call that was answered counts exactly. A call without an answer
//! counts between two bounds: a charge may have been made or not, a refund likewise. Without such calls the bounds are
//! equal, and so must be the usage.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

/// A bucket and the end of a period; `None` for a period that never ends.
pub type BucketPeriod = (String, Option<u64>);

/// The usage that is possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageBounds {
    /// If no call without an answer charged, and all that refund did.
    pub low: i128,
    /// If every one of them charged, and none refunded.
    pub high: i128,
}

impl UsageBounds {
    /// Adds a change that was answered; negative for a refund.
    pub fn certain(&mut self, units: i128) {
        self.low += units;
        self.high += units;
    }

    /// Adds a change that may have happened.
    pub fn possible(&mut self, units: i128) {
        self.low += units.min(0);
        self.high += units.max(0);
    }

    /// True if the usage is one of those that are possible.
    pub fn admit(&self, used: u64) -> bool {
        (self.low..=self.high).contains(&i128::from(used))
    }

    /// True if only one usage is possible.
    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }
}

/// What the logs of all nodes of a fleet say of quotas.
#[derive(Clone, Debug, Default)]
pub struct UsageLedger {
    /// The usage of every bucket and period.
    pub usage: BTreeMap<BucketPeriod, UsageBounds>,
    /// Refunds that were counted: a settlement that is repeated after an error names them again.
    refunds: BTreeSet<(String, BucketPeriod)>,
    /// Refunds of settlements without an answer, until a repeated one is answered.
    open: BTreeMap<(String, BucketPeriod), i128>,
}

/// How near to the end of its period a refund is uncertain: the store may have made it after.
const NEAR_END_NS: u64 = 1_000_000_000;

impl UsageLedger {
    /// Reads the logs of all nodes. A last line without a newline was cut off by a crash and is left out.
    pub fn of_logs<'a>(logs: impl IntoIterator<Item = &'a Path>) -> Result<UsageLedger, String> {
        let mut ledger = UsageLedger::default();
        for path in logs {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
            for (number, line) in whole.lines().enumerate() {
                let value = serde_json::from_str(line).map_err(|error| error.to_string());
                let added = value.and_then(|value| ledger.add(&value));
                added.map_err(|what| format!("{}, line {}: {what}: {line}", path.display(), number + 1))?;
            }
        }
        Ok(ledger.concluded())
    }

    /// Adds one line.
    pub fn add(&mut self, line: &Value) -> Result<(), String> {
        if line.get("settlement").is_some() {
            return self.add_settlement(line);
        }
        let (name, is_answered) =
            if line.get("unanswered").is_some() { ("unanswered", false) } else { ("charged", true) };
        for charge in line.get(name).and_then(Value::as_array).ok_or("no charges")? {
            let Some(place) = place(charge) else { continue };
            let units = i128::from(charge.get("units").and_then(Value::as_u64).ok_or("no units")?);
            let bounds = self.usage.entry(place).or_default();
            if is_answered { bounds.certain(units) } else { bounds.possible(units) }
        }
        Ok(())
    }

    fn add_settlement(&mut self, line: &Value) -> Result<(), String> {
        if line.get("mode").and_then(Value::as_str) != Some("store") {
            return Ok(()); // in the buckets of one node, which are no usage
        }
        let id = line.get("settlement").and_then(Value::as_str).unwrap_or_default();
        let now = line.get("time_ns").and_then(Value::as_u64).ok_or("no time_ns")?;
        for correction in line.get("corrections").and_then(Value::as_array).ok_or("no corrections")? {
            let Some(place) = place(correction) else { continue };
            let is_certain = correction.get("certain").and_then(Value::as_bool).unwrap_or(true);
            let units = |name: &str| correction.get(name).and_then(Value::as_u64).map(i128::from);
            match (units("charged"), units("refunded")) {
                (Some(units), _) => {
                    let bounds = self.usage.entry(place).or_default();
                    if is_certain { bounds.certain(units) } else { bounds.possible(units) }
                }
                (None, Some(units)) => self.add_refund(id, place, -units, (now, is_certain)),
                (None, None) => return Err("a correction without units".to_owned()),
            }
        }
        Ok(())
    }

    fn add_refund(&mut self, id: &str, place: BucketPeriod, units: i128, (now, is_certain): (u64, bool)) {
        let end = place.1.unwrap_or(u64::MAX);
        if now >= end {
            return; // that period was over: nothing is given back
        }
        let key = (id.to_owned(), place.clone());
        match is_certain && end - now > NEAR_END_NS {
            true if id.is_empty() || self.refunds.insert(key.clone()) => {
                self.open.remove(&key);
                self.usage.entry(place).or_default().certain(units);
            }
            true => {}
            false if id.is_empty() => self.usage.entry(place).or_default().possible(units),
            false if self.refunds.contains(&key) => {}
            false => drop(self.open.insert(key, units)),
        }
    }

    /// Counts what was never answered.
    #[must_use]
    pub fn concluded(mut self) -> UsageLedger {
        for ((_, place), units) in std::mem::take(&mut self.open) {
            self.usage.entry(place).or_default().possible(units);
        }
        self
    }

    /// The differences between these sums and the usage of buckets and periods: none, if both are right. A bucket without
    /// usage must have none.
    pub fn differences(&self, found: &BTreeMap<BucketPeriod, u64>) -> Vec<String> {
        let mut differences = Vec::new();
        let all: BTreeSet<&BucketPeriod> = self.usage.keys().chain(found.keys()).collect();
        for place in all {
            let bounds = self.usage.get(place).copied().unwrap_or_default();
            let used = found.get(place).copied().unwrap_or(0);
            if !bounds.admit(used) {
                let (UsageBounds { low, high }, (bucket, end)) = (bounds, place);
                differences.push(format!("bucket {bucket} until {end:?}: {used} used, {low} to {high} charged"));
            }
        }
        differences
    }
}

/// The bucket and period of a charge on a quota; `None` for a charge on another limit, or without the store.
fn place(charge: &Value) -> Option<BucketPeriod> {
    let bucket = charge.get("bucket")?.as_str()?;
    Some((bucket.to_owned(), charge.get("period_end_ns").and_then(Value::as_u64)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const END: u64 = 100_000_000_000;

    fn ledger(lines: &[Value]) -> BTreeMap<BucketPeriod, UsageBounds> {
        let mut ledger = UsageLedger::default();
        lines.iter().for_each(|line| ledger.add(line).unwrap());
        ledger.concluded().usage
    }

    fn bounds(low: i128, high: i128) -> UsageBounds {
        UsageBounds { low, high }
    }

    fn charged(units: u64) -> Value {
        let other = json!({ "rule": "limit", "mode": "store", "units": 99 });
        let alone = json!({ "rule": "quota", "mode": "fallback", "units": 99 });
        let quota = json!({ "rule": "quota", "mode": "store", "units": units, "bucket": "b", "period_end_ns": END });
        json!({ "allowed": true, "charged": [other, alone, quota] })
    }

    fn settled(id: &str, name: &str, units: u64, now: u64, certain: bool) -> Value {
        let correction = json!({ name: units, "bucket": "b", "period_end_ns": END, "certain": certain });
        json!({ "settlement": id, "mode": "store", "time_ns": now, "corrections": [correction] })
    }

    #[test]
    fn answered_calls_add_up_to_the_unit() {
        let place = ("b".to_owned(), Some(END));
        let lines =
            [charged(10), charged(5), settled("1", "refunded", 4, 5, true), settled("2", "charged", 3, 5, true)];
        assert_eq!(ledger(&lines), BTreeMap::from([(place.clone(), bounds(14, 14))]));
        let mut all = UsageLedger::default();
        lines.iter().for_each(|line| all.add(line).unwrap());
        assert_eq!(all.differences(&BTreeMap::from([(place.clone(), 14)])), [""; 0]);
        assert_eq!(all.differences(&BTreeMap::from([(place, 15)])).len(), 1);
        assert_eq!(all.differences(&BTreeMap::new()).len(), 1);
    }

    #[test]
    fn calls_without_an_answer_are_bounds() {
        let place = ("b".to_owned(), Some(END));
        let unanswered = json!({ "unanswered": [{ "units": 7, "bucket": "b", "period_end_ns": END }] });
        let lines =
            [charged(10), unanswered, settled("1", "refunded", 4, 5, false), settled("2", "charged", 2, 5, false)];
        assert_eq!(ledger(&lines), BTreeMap::from([(place.clone(), bounds(6, 19))]));
        let repeated = [charged(10), settled("1", "refunded", 4, 5, false), settled("1", "refunded", 4, 6, true)];
        assert_eq!(ledger(&repeated), BTreeMap::from([(place.clone(), bounds(6, 6))]), "its repetition was answered");
        let twice = [charged(10), settled("1", "refunded", 4, 5, true), settled("1", "refunded", 4, 6, true)];
        assert_eq!(ledger(&twice), BTreeMap::from([(place.clone(), bounds(6, 6))]), "a refund is made once");
        let late = [charged(10), settled("1", "refunded", 4, END, true), settled("2", "refunded", 2, END - 9, true)];
        assert_eq!(ledger(&late), BTreeMap::from([(place, bounds(8, 10))]), "a period that is over gives nothing back");
    }

    #[test]
    fn malformed_lines_are_errors() {
        let mut ledger = UsageLedger::default();
        for line in [json!({}), json!({ "settlement": "1", "mode": "store", "corrections": [] })] {
            assert!(ledger.add(&line).is_err(), "{line}");
        }
        let without = json!({ "settlement": "1", "mode": "store", "time_ns": 1, "corrections": [{ "bucket": "b" }] });
        assert!(ledger.add(&without).is_err());
    }
}
