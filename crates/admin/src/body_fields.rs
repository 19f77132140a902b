//! Reads the fields of a JSON body and collects all faults, so that one response reports every one of them.

use serde_json::{Map, Value};
use tollgate_control::{FieldError, Instant};
use tollgate_rules::nearest;
use tollgate_rules::problem::quote;

use super::problem::{AdminProblem, fault};
use super::query::instant;

/// The fields of an object, and the faults so far.
#[derive(Debug)]
pub struct BodyFields {
    members: Map<String, Value>,
    faults: Vec<FieldError>,
}

impl BodyFields {
    /// An object with these known fields; others are faults. `null` counts as absent.
    pub fn of(mut members: Map<String, Value>, known: &[&str]) -> BodyFields {
        let mut faults = Vec::new();
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            let help = match nearest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`? allowed: {}", known.join(", ")),
                None => format!("allowed: {}", known.join(", ")),
            };
            faults.push(fault(name, "unknown-field", format!("unknown field {}", quote(name)), &help));
        }
        members.retain(|_, value| !value.is_null());
        BodyFields { members, faults }
    }

    /// An object whose other fields the caller reads.
    pub fn open(members: Map<String, Value>) -> BodyFields {
        BodyFields { members, faults: Vec::new() }
    }

    /// Takes a field of any type.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name).filter(|value| !value.is_null())
    }

    /// Records a fault.
    pub fn refuse(&mut self, name: &str, code: &str, message: impl Into<String>, help: &str) {
        self.faults.push(fault(name, code, message, help));
    }

    fn wrong(&mut self, name: &str, wanted: &str, help: &str) {
        self.refuse(name, "wrong-type", format!("{name} should be {wanted}"), help);
    }

    fn missing(&mut self, name: &str, help: &str) {
        self.refuse(name, "missing-field", format!("{name} is missing"), help);
    }

    /// An optional string.
    pub fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            _ => {
                self.wrong(name, "text", "");
                None
            }
        }
    }

    /// A required, non-empty string; empty after a fault.
    pub fn required_text(&mut self, name: &str, help: &str) -> String {
        if !self.members.contains_key(name) {
            self.missing(name, help);
            return String::new();
        }
        let text = self.text(name);
        if text.as_deref() == Some("") {
            self.refuse(name, "blank", format!("{name} is empty"), help);
        }
        text.unwrap_or_default()
    }

    /// An optional integer from 0. The control plane checks its upper bound.
    pub fn count(&mut self, name: &str) -> Option<i64> {
        match self.take(name)? {
            Value::Number(number) if number.is_u64() => Some(number.as_i64().unwrap_or(i64::MAX)),
            Value::Number(_) => {
                let message = format!("{name} is out of range");
                self.refuse(name, "out-of-range", message, "a whole number from 0 on, without a dot or an exponent");
                None
            }
            _ => {
                self.wrong(name, "a whole number", "digits, without quotes");
                None
            }
        }
    }

    /// A required integer from 0; 0 after a fault.
    pub fn required_count(&mut self, name: &str, help: &str) -> i64 {
        if !self.members.contains_key(name) {
            self.missing(name, help);
        }
        self.count(name).unwrap_or_default()
    }

    /// An optional boolean.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        match self.take(name)? {
            Value::Bool(flag) => Some(flag),
            _ => {
                self.wrong(name, "true or false", "without quotes");
                None
            }
        }
    }

    /// An optional timestamp.
    pub fn time(&mut self, name: &str) -> Option<Instant> {
        const HELP: &str = "write it like 2026-12-01T00:00:00Z";
        match self.take(name)? {
            Value::String(text) => {
                let read = instant(&text);
                if read.is_none() {
                    self.refuse(
                        name,
                        "bad-time",
                        format!("{name} is {}, which is no point in time", quote(&text)),
                        HELP,
                    );
                }
                read
            }
            _ => {
                self.wrong(name, "a point in time", HELP);
                None
            }
        }
    }

    /// A required timestamp.
    pub fn required_time(&mut self, name: &str, help: &str) -> Instant {
        if !self.members.contains_key(name) {
            self.missing(name, help);
        }
        self.time(name).unwrap_or_default()
    }

    /// A required word out of a fixed set.
    pub fn required_word<T>(&mut self, name: &str, words: &[&str], read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let help = format!("one of {}", words.join(", "));
        let text = self.required_text(name, &help);
        let word = read(&text);
        if word.is_none() && !text.is_empty() {
            self.refuse(name, "unknown-value", format!("{name} is {}", quote(&text)), &help);
        }
        word
    }

    /// An optional list of strings.
    pub fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let value = self.take(name)?;
        let texts =
            value.as_array().and_then(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        if texts.is_none() {
            self.wrong(name, "a list of texts", "");
        }
        texts
    }

    /// A field that may only repeat what the path says. Another value is a fault: the body was sent to the wrong path.
    pub fn same(&mut self, name: &str, expected: &str) {
        match self.take(name) {
            None => {}
            Some(Value::String(text)) if text == expected => {}
            Some(_) => {
                let message = format!("{name} is not that of the path");
                self.refuse(name, "other-thing", message, "leave it out, or send it to where it belongs");
            }
        }
    }

    /// The fields that were not taken, or all faults.
    pub fn rest(self) -> Result<Map<String, Value>, AdminProblem> {
        match self.faults.is_empty() {
            true => Ok(self.members),
            false => Err(AdminProblem::of_faults(self.faults)),
        }
    }
}
