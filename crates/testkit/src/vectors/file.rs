//! The shape of a vector file: cases of steps on one limiter, or on several rules at once.

use serde_json::{Map, Value};

use super::Unreadable;

/// A whole file.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    pub(super) cases: Vec<Case>,
    /// Configurations that must be refused.
    pub(super) refused: Vec<Rule>,
}

/// One limiter, or several, and what happens to it in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Case {
    pub name: String,
    pub rules: Vec<Rule>,
    pub steps: Vec<Map<String, Value>>,
}

/// An algorithm and its numbers, still as JSON: `reconfigure` merges into them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    pub algorithm: String,
    pub config: Map<String, Value>,
}

impl File {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<File, Unreadable> {
        let root: Value = serde_json::from_str(text).map_err(|error| Unreadable(error.to_string()))?;
        let algorithm = root.get("algorithm").and_then(Value::as_str);
        let cases = list(&root, "cases")?.iter().map(|case| Case::parse(case, algorithm));
        let refused = root.get("config_errors").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Ok(File {
            cases: cases.collect::<Result<_, _>>()?,
            refused: refused.iter().map(|entry| Rule::parse(entry, algorithm)).collect::<Result<_, _>>()?,
        })
    }
}

impl Case {
    fn parse(case: &Value, algorithm: Option<&str>) -> Result<Case, Unreadable> {
        let name = case.get("name").and_then(Value::as_str).unwrap_or("unnamed").to_owned();
        let rules = match case.get("rules").and_then(Value::as_array) {
            Some(rules) => rules.iter().map(|rule| Rule::parse(rule, algorithm)).collect::<Result<_, _>>()?,
            None => vec![Rule::parse(case, algorithm)?],
        };
        let steps = list(case, "steps")?.iter().map(|step| match step {
            Value::Object(fields) => Ok(fields.clone()),
            other => Err(Unreadable(format!("case {name}: a step is {other}, not an object"))),
        });
        let steps = steps.collect::<Result<_, _>>()?;
        Ok(Case { name, rules, steps })
    }
}

impl Rule {
    /// Algorithms that this runner does not know are the business of other runners: the file is not for it.
    fn parse(value: &Value, of_file: Option<&str>) -> Result<Rule, Unreadable> {
        let algorithm = value.get("algorithm").and_then(Value::as_str).or(of_file);
        let algorithm = algorithm.ok_or_else(|| Unreadable("no \"algorithm\" given".to_owned()))?;
        if !super::limits::ALGORITHMS.contains(&algorithm) {
            let known = super::limits::ALGORITHMS.join(", ");
            return Err(Unreadable(format!("unknown algorithm {algorithm:?}; known are: {known}")));
        }
        let config = value.get("config").and_then(Value::as_object).cloned();
        let config = config.ok_or_else(|| Unreadable("a rule without \"config\"".to_owned()))?;
        Ok(Rule { algorithm: algorithm.to_owned(), config })
    }
}

fn list<'a>(value: &'a Value, field: &str) -> Result<&'a [Value], Unreadable> {
    let found = value.get(field).and_then(Value::as_array).map(Vec::as_slice);
    found.ok_or_else(|| Unreadable(format!("no list {field:?}")))
}
