//! Vectors of calendars: the period of a quota at an instant, played as rules.
//!
//! Each case becomes one rule with a quota, and each of its steps a few charges by a client of its own: at the end of the
//! period before, at the start, at the instant of the step, and around the end. The caller of this runner sets the clock,
//! makes the charge and compares the answer.

use serde_json::{Map, Value, json};
use tollgate_core::{Quota, Span, Time};
use tollgate_rules::datetime;

use super::VectorFileError;
use super::fields::{CALENDAR_CASE, CALENDAR_FILE, CALENDAR_STEP};

/// Units that a quota of these rules has.
pub const CALENDAR_AMOUNT: u64 = 10;

/// A whole file.
#[derive(Clone, Debug, PartialEq)]
pub struct CalendarVectors {
    /// One rule per case, which counts the clients of requests whose attribute `case` is the name of the case.
    pub rules: String,
    /// The steps of all cases, in the order of the file.
    pub steps: Vec<CalendarStep>,
}

/// An instant, and the period that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarStep {
    /// The name of its case.
    pub case: String,
    /// The client that its charges are of.
    pub client: String,
    /// The instant.
    pub at: Time,
    /// The first moment of the period.
    pub start: Time,
    /// The first moment after it; none if it never ends.
    pub end: Option<Time>,
}

/// A charge to be made, and the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarCharge {
    /// When.
    pub now: Time,
    /// Units.
    pub cost: u64,
    /// Whether it is allowed.
    pub allowed: bool,
    /// What is left of the period after it.
    pub remaining: u64,
    /// Whether it is made in the period of the step, and not in the one before or after.
    pub within: bool,
}

impl CalendarVectors {
    /// Reads the text of a file. Unknown fields are errors.
    pub fn parse(text: &str) -> Result<CalendarVectors, VectorFileError> {
        let root: Value = serde_json::from_str(text).map_err(|error| VectorFileError(error.to_string()))?;
        let (mut rules, mut steps) = (Vec::new(), Vec::new());
        for case in list(CALENDAR_FILE.of(&root)?, "cases")? {
            let case = CALENDAR_CASE.of(case)?;
            let name = text_of(case, "name")?;
            rules.push(rule(name, case));
            for (number, step) in list(case, "steps")?.iter().enumerate() {
                let client = format!("{name}:{number}");
                let step = CalendarStep::parse(name, client, step);
                steps.push(step.map_err(|problem| problem.within(&format!("case {name}: step {number}")))?);
            }
        }
        let rules = json!({ "key_by": "client_key", "rules": rules }).to_string();
        Ok(CalendarVectors { rules, steps })
    }

    /// The steps at instants that a store can be at: its periods end in 2262, with 63 bits of nanoseconds.
    pub fn within_reach(&self) -> impl Iterator<Item = &CalendarStep> {
        self.steps.iter().filter(|step| step.at < Quota::FOREVER)
    }
}

impl CalendarStep {
    fn parse(case: &str, client: String, step: &Value) -> Result<CalendarStep, VectorFileError> {
        let fields = CALENDAR_STEP.of(step)?;
        let end = match fields.get("end") {
            Some(Value::Null) | None => None,
            Some(_) => Some(time(fields, "end")?),
        };
        let (at, start) = (time(fields, "at")?, time(fields, "start")?);
        Ok(CalendarStep { case: case.to_owned(), client, at, start, end })
    }

    /// The charges of this step, in the order of time.
    pub fn charges(&self) -> Vec<CalendarCharge> {
        let charge = |now, cost, allowed, remaining, within| CalendarCharge { now, cost, allowed, remaining, within };
        let before = self.start.before(Span::SECOND);
        let spent = (self.start > Time::ZERO).then(|| charge(before, CALENDAR_AMOUNT, true, 0, false));
        let last = self.end.map_or(self.at, |end| end.before(Span::SECOND));
        let renewed = self.end.map(|end| charge(end, 4, true, 6, false));
        let within = [(self.start, 4, true, 6), (self.at, 3, true, 3), (last, 4, false, 3)];
        let within = within.map(|(now, cost, allowed, remaining)| charge(now, cost, allowed, remaining, true));
        spent.into_iter().chain(within).chain(renewed).collect()
    }
}

fn rule(name: &str, case: &Map<String, Value>) -> Value {
    let mut quota = Map::new();
    quota.insert("amount".to_owned(), json!(CALENDAR_AMOUNT));
    quota.insert("every".to_owned(), case.get("every").cloned().unwrap_or_default());
    let is_renewed = case.get("every").is_some_and(|every| every != "never");
    for (field, own) in [("time_zone", "zone"), ("anchor", "anchor")] {
        if let Some(value) = case.get(own).filter(|value| is_renewed && !value.is_null()) {
            quota.insert(field.to_owned(), value.clone());
        }
    }
    json!({ "name": name, "match": { "case": name }, "quota": quota })
}

fn list<'a>(fields: &'a Map<String, Value>, field: &str) -> Result<&'a [Value], VectorFileError> {
    let found = fields.get(field).and_then(Value::as_array).map(Vec::as_slice);
    found.ok_or_else(|| VectorFileError(format!("no list {field:?}")))
}

fn text_of<'a>(fields: &'a Map<String, Value>, field: &str) -> Result<&'a str, VectorFileError> {
    fields.get(field).and_then(Value::as_str).ok_or_else(|| VectorFileError(format!("no text {field:?}")))
}

fn time(fields: &Map<String, Value>, field: &str) -> Result<Time, VectorFileError> {
    let nanos = datetime::parse(text_of(fields, field)?);
    nanos.map(Time::from_nanos).map_err(|error| VectorFileError(format!("{field}: {error:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_refused() {
        let case = |case: &str| format!(r#"{{"cases":[{{"name":"c","every":"day","zone":"UTC",{case}}}]}}"#);
        for (text, problem) in [
            (r#"{"cases":[],"colour":1}"#.to_owned(), "unknown field \"colour\"; known are: "),
            (case(r#""steps":[],"tat":1"#), "unknown field \"tat\""),
            (case(r#""steps":[{"at":"2026-01-01T00:00:00Z","begin":1}]"#), "case c: step 0: unknown field \"begin\""),
            (case(r#""steps":[{"at":"soon"}]"#), "case c: step 0: at: "),
        ] {
            let error = CalendarVectors::parse(&text).expect_err(&text);
            assert!(error.to_string().starts_with(problem), "{error}");
        }
    }
}
