//! The format of a vector file: cases of steps on one limiter, or on several rules at once.

use serde_json::{Map, Value};

use super::VectorFileError;
use super::fields::{self, CASE, FILE, RULE, STEP, refuse_others};

/// A whole file.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorFile {
    pub(super) cases: Vec<VectorCase>,
    /// Configurations that must be refused.
    pub(super) refused: Vec<VectorRule>,
}

/// One limiter, or several, and the steps in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VectorCase {
    pub name: String,
    pub rules: Vec<VectorRule>,
    pub steps: Vec<Map<String, Value>>,
}

/// An algorithm and its numbers, still as JSON: `reconfigure` merges into them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VectorRule {
    pub algorithm: String,
    pub config: Map<String, Value>,
}

impl VectorFile {
    /// Reads the text of a file. Unknown fields are errors, except in `expect`, where they are differences.
    pub fn parse(text: &str) -> Result<VectorFile, VectorFileError> {
        let root: Value = serde_json::from_str(text).map_err(|error| VectorFileError(error.to_string()))?;
        let fields = FILE.of(&root)?;
        let algorithm = fields.get("algorithm").and_then(Value::as_str);
        if let Some(unit) = fields.get("time_unit").filter(|unit| *unit != "ns") {
            return Err(VectorFileError(format!("times in {unit}; this runner reads nanoseconds, \"ns\"")));
        }
        let cases = list(fields, "cases")?.iter().map(|case| VectorCase::parse(case, algorithm));
        let cases = cases.collect::<Result<_, _>>()?;
        let refused = if fields.contains_key("config_errors") { list(fields, "config_errors")? } else { &[] };
        let refused = refused.iter().enumerate().map(|(place, entry)| {
            VectorRule::parse(entry, algorithm).map_err(|problem| problem.within(&format!("config_errors[{place}]")))
        });
        Ok(VectorFile { cases, refused: refused.collect::<Result<_, _>>()? })
    }
}

impl VectorCase {
    fn parse(case: &Value, algorithm: Option<&str>) -> Result<VectorCase, VectorFileError> {
        let name = case.get("name").and_then(Value::as_str).unwrap_or("unnamed").to_owned();
        let parsed = CASE.of(case).and_then(|fields| {
            let rules = match fields.get("rules") {
                Some(_) => list(fields, "rules")?.iter().map(|rule| VectorRule::parse(rule, algorithm)).collect(),
                None => VectorRule::from_fields(fields, algorithm).map(|rule| vec![rule]),
            }?;
            Ok((steps(fields, &rules)?, rules))
        });
        let (steps, rules) = parsed.map_err(|problem| problem.within(&format!("case {name}")))?;
        Ok(VectorCase { name, rules, steps })
    }
}

fn steps(case: &Map<String, Value>, rules: &[VectorRule]) -> Result<Vec<Map<String, Value>>, VectorFileError> {
    let parse = |(place, step)| {
        let fields = STEP.of(step).and_then(|fields| check_changes(fields, rules).map(|()| fields.clone()));
        fields.map_err(|problem| problem.within(&format!("step {place}")))
    };
    list(case, "steps")?.iter().enumerate().map(parse).collect()
}

/// Checks that `reconfigure` changes numbers of the rules only: one object for the first rule, or a list for all.
fn check_changes(step: &Map<String, Value>, rules: &[VectorRule]) -> Result<(), VectorFileError> {
    let changes = match step.get("reconfigure") {
        Some(Value::Array(changes)) if changes.len() == rules.len() => changes.as_slice(),
        Some(change @ Value::Object(_)) => std::slice::from_ref(change),
        Some(other) => return Err(VectorFileError(format!("\"reconfigure\" for {} rules is {other}", rules.len()))),
        None => &[],
    };
    changes.iter().zip(rules).try_for_each(|(change, rule)| {
        let change = change.as_object().ok_or_else(|| VectorFileError(format!("{change} is not an object")))?;
        refuse_others(change, fields::numbers(&rule.algorithm)).map_err(|problem| problem.within("reconfigure"))
    })
}

impl VectorRule {
    fn parse(value: &Value, of_file: Option<&str>) -> Result<VectorRule, VectorFileError> {
        VectorRule::from_fields(RULE.of(value)?, of_file)
    }

    /// Refuses algorithms that this runner does not know: such a file is for another runner.
    fn from_fields(fields: &Map<String, Value>, of_file: Option<&str>) -> Result<VectorRule, VectorFileError> {
        let algorithm = fields.get("algorithm").and_then(Value::as_str).or(of_file);
        let algorithm = algorithm.ok_or_else(|| VectorFileError("no \"algorithm\" given".to_owned()))?;
        if !fields::ALGORITHMS.contains(&algorithm) {
            let known = fields::ALGORITHMS.join(", ");
            return Err(VectorFileError(format!("unknown algorithm {algorithm:?}; known are: {known}")));
        }
        let config = fields.get("config").and_then(Value::as_object).cloned();
        let config = config.ok_or_else(|| VectorFileError("a rule without \"config\"".to_owned()))?;
        let known = [fields::numbers(algorithm), fields::state(algorithm)].concat();
        refuse_others(&config, &known).map_err(|problem| problem.within("config"))?;
        Ok(VectorRule { algorithm: algorithm.to_owned(), config })
    }
}

fn list<'a>(fields: &'a Map<String, Value>, field: &str) -> Result<&'a [Value], VectorFileError> {
    let found = fields.get(field).and_then(Value::as_array).map(Vec::as_slice);
    found.ok_or_else(|| VectorFileError(format!("no list {field:?}")))
}
