//! Vectors of reservations: several meters and a slot, as callers of the API see them.
//!
//! A step is one call; receipts are named, and a step that gets one names it with `as`. The caller of this runner makes
//! the call and hands the answer back as JSON, with the fields of the HTTP API. After each step `left` is what remains
//! of every rule. Every case is about a client of its own.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fields::{RESERVATION_CASE, RESERVATION_FILE, RESERVATION_STEP};
use super::{Difference, VectorFileError, VectorReport};

const OPS: [&str; 7] = ["check", "reserve", "acquire", "extend", "settle", "renew", "release"];

/// A whole file.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationVectors {
    /// The rules, as the text of a rules file.
    pub rules: String,
    /// The cases.
    pub cases: Vec<ReservationCase>,
}

/// The steps of one client.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationCase {
    /// Its name, which is also that of the client.
    pub name: String,
    steps: Vec<Map<String, Value>>,
}

/// A call to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationCall {
    /// `check`, `reserve`, `acquire`, `extend`, `settle`, `renew` or `release`.
    pub op: String,
    /// The receipt to present, if the call is about one.
    pub receipt: Option<String>,
    /// The cost, if the step has one.
    pub cost: Option<u64>,
    /// Amounts by meter.
    pub costs: BTreeMap<String, u64>,
}

impl ReservationVectors {
    /// Reads the text of a file. Unknown fields are errors.
    pub fn parse(text: &str) -> Result<ReservationVectors, VectorFileError> {
        let root: Value = serde_json::from_str(text).map_err(|error| VectorFileError(error.to_string()))?;
        let fields = RESERVATION_FILE.of(&root)?;
        let rules = json!({ "key_by": "client_key", "rules": fields.get("rules") }).to_string();
        let cases = list(fields, "cases")?.iter().map(ReservationCase::parse).collect::<Result<_, _>>()?;
        Ok(ReservationVectors { rules, cases })
    }
}

impl ReservationCase {
    fn parse(case: &Value) -> Result<ReservationCase, VectorFileError> {
        let fields = RESERVATION_CASE.of(case)?;
        let name = fields.get("name").and_then(Value::as_str).unwrap_or("unnamed").to_owned();
        let parse = |(place, step): (usize, &Value)| {
            let checked = RESERVATION_STEP.of(step).and_then(|fields| check_op(fields).map(|()| fields.clone()));
            checked.map_err(|problem| problem.within(&format!("case {name}: step {place}")))
        };
        let steps = list(fields, "steps")?.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        Ok(ReservationCase { name, steps })
    }

    /// Runs the case: `call` makes a call and returns the answer, `left` what remains by rule.
    pub async fn run(
        &self,
        mut call: impl AsyncFnMut(ReservationCall) -> Value,
        mut left: impl AsyncFnMut() -> Value,
        report: &mut VectorReport,
    ) {
        let mut receipts: BTreeMap<&str, String> = BTreeMap::new();
        for (number, step) in self.steps.iter().enumerate() {
            let text = |name: &str| step.get(name).and_then(Value::as_str);
            let answer = call(call_of(step, &receipts)).await;
            if let Some(name) = text("as") {
                let receipt = ["reservation", "slot"].iter().find_map(|field| answer.get(field)?.as_str());
                receipts.insert(name, receipt.unwrap_or_default().to_owned());
            }
            let mut found = differences(step.get("expect"), &answer, "");
            found.extend(differences(step.get("left"), &left().await, "left."));
            match found.is_empty() {
                true => report.passed += 1,
                false => report.failed += 1,
            }
            let named = found.into_iter().map(|(field, expected, got)| {
                let case = self.name.clone();
                Difference { case, step: number, field, expected, got }
            });
            report.differences.extend(named);
        }
    }
}

fn call_of(step: &Map<String, Value>, receipts: &BTreeMap<&str, String>) -> ReservationCall {
    let text = |name: &str| step.get(name).and_then(Value::as_str);
    let costs = step.get("costs").and_then(Value::as_object).into_iter().flatten();
    ReservationCall {
        op: text("op").unwrap_or_default().to_owned(),
        // A receipt that no step got is sent as it is written.
        receipt: text("receipt").map(|name| receipts.get(name).cloned().unwrap_or_else(|| name.to_owned())),
        cost: step.get("cost").and_then(Value::as_u64),
        costs: costs.filter_map(|(meter, amount)| Some((meter.clone(), amount.as_u64()?))).collect(),
    }
}

fn differences(expected: Option<&Value>, got: &Value, prefix: &str) -> Vec<(String, Value, Value)> {
    let expected = expected.and_then(Value::as_object).into_iter().flatten();
    let differing = expected.filter_map(|(field, expected)| {
        let got = got.get(field).unwrap_or(&Value::Null);
        (got != expected).then(|| (format!("{prefix}{field}"), expected.clone(), got.clone()))
    });
    differing.collect()
}

fn check_op(step: &Map<String, Value>) -> Result<(), VectorFileError> {
    match step.get("op").and_then(Value::as_str) {
        Some(op) if OPS.contains(&op) => Ok(()),
        other => Err(VectorFileError(format!("unknown op {other:?}"))),
    }
}

fn list<'a>(fields: &'a Map<String, Value>, field: &str) -> Result<&'a [Value], VectorFileError> {
    let found = fields.get(field).and_then(Value::as_array).map(Vec::as_slice);
    found.ok_or_else(|| VectorFileError(format!("no list {field:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_and_ops_are_refused() {
        let step = |step: &str| format!(r#"{{"rules":[],"cases":[{{"name":"c","steps":[{step}]}}]}}"#);
        for (text, problem) in [
            (r#"{"rules":[],"cases":[],"colour":1}"#.to_owned(), "unknown field \"colour\"; known are: "),
            (r#"{"rules":[],"cases":[{"name":"c","steps":[],"tat":1}]}"#.to_owned(), "unknown field \"tat\""),
            (step(r#"{"op":"settle","amount":1}"#), "case c: step 0: unknown field \"amount\""),
            (step(r#"{"op":"steal"}"#), "case c: step 0: unknown op"),
        ] {
            let error = ReservationVectors::parse(&text).expect_err(&text);
            assert!(error.to_string().starts_with(problem), "{error}");
        }
    }
}
