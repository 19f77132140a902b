//! Runs the steps of a case in order and compares each outcome with the expected one.

use serde_json::{Map, Value, json};
use tollgate_core::{Ask, Charge, KeyHasher, Limit, Outcome, Secret, SlotId, Time};

use super::file::{VectorCase, VectorRule};
use super::{Difference, VectorFile, VectorReport};
use crate::{SpecOutcome, Subject};

/// Runs every case on a subject of its own.
pub fn run(file: &VectorFile, mut open: impl FnMut() -> Box<dyn Subject>) -> VectorReport {
    let mut report = VectorReport::default();
    for case in &file.cases {
        Run { case, rules: case.rules.clone(), subject: open() }.all(&mut report);
    }
    for (place, rule) in file.refused.iter().enumerate() {
        let differences = rule.limit().is_ok().then(|| Difference {
            case: "config_errors".to_owned(),
            step: place,
            field: "config".to_owned(),
            expected: json!("an error"),
            got: Value::Object(rule.config.clone()),
        });
        report.add(differences.into_iter().collect());
    }
    report
}

impl VectorReport {
    fn add(&mut self, differences: Vec<Difference>) {
        match differences.is_empty() {
            true => self.passed += 1,
            false => self.failed += 1,
        }
        self.differences.extend(differences);
    }
}

type Step = Map<String, Value>;

struct Run<'a> {
    case: &'a VectorCase,
    /// With the changes of `reconfigure` so far.
    rules: Vec<VectorRule>,
    subject: Box<dyn Subject>,
}

impl Run<'_> {
    fn all(mut self, report: &mut VectorReport) {
        if let Err(problem) = self.begin() {
            let (case, field, expected) = (self.case.name.clone(), "config.leases".to_owned(), json!("a state"));
            return report.add(vec![Difference { case, step: 0, field, expected, got: json!(problem) }]);
        }
        for (place, step) in self.case.steps.iter().enumerate() {
            self.reconfigure(step);
            let expected = step.get("gcra_expect").or_else(|| step.get("expect"));
            let Some(expected) = expected else { continue };
            let mut differences = Vec::new();
            match self.step(step) {
                Ok(got) => compare("", expected, &got, &mut differences),
                Err(problem) => differences.push(("step".to_owned(), Value::Object(step.clone()), json!(problem))),
            }
            let case = &self.case.name;
            let named = differences.into_iter().map(|(field, expected, got)| Difference {
                case: case.clone(),
                step: place,
                field,
                expected,
                got,
            });
            report.add(named.collect());
        }
    }

    /// Brings the buckets into the state that the case begins with.
    fn begin(&mut self) -> Result<(), String> {
        let Some(first) = self.case.steps.first() else { return Ok(()) };
        let now = number(first, "now_ns")?;
        for place in 0..self.rules.len() {
            for lease in self.rules[place].leases(now)? {
                let charge = Charge { limit: lease.limit, ..self.charge(place, Ask::Hold(slot_id(&lease.holder)))? };
                if !self.take(lease.since, &charge).allowed {
                    return Err(format!("{} cannot hold a slot", lease.holder));
                }
            }
        }
        Ok(())
    }

    /// Replaces numbers and keeps the state: an object for the first rule, a list for all of them.
    fn reconfigure(&mut self, step: &Step) {
        let changes = match step.get("reconfigure") {
            Some(Value::Array(changes)) => changes.as_slice(),
            Some(change) => std::slice::from_ref(change),
            None => &[],
        };
        for (rule, change) in self.rules.iter_mut().zip(changes) {
            rule.config.extend(change.as_object().cloned().unwrap_or_default());
        }
    }

    fn step(&mut self, step: &Step) -> Result<Value, String> {
        let now = Time::from_nanos(number(step, "now_ns")?);
        if let Some(op) = step.get("op").and_then(Value::as_str) {
            return self.slot(now, op, slot_id(step.get("id").unwrap_or(&Value::Null)));
        }
        let mode = step.get("mode").and_then(Value::as_str).unwrap_or("consume");
        if let Some(costs) = step.get("costs").and_then(Value::as_array) {
            let costs: Option<Vec<u64>> = costs.iter().map(Value::as_u64).collect();
            return self.together(now, mode, &costs.ok_or("a cost is not an unsigned integer")?);
        }
        let cost = if step.contains_key("cost") { number(step, "cost")? } else { 1 };
        if mode == "refund" {
            return self.refund(now, cost);
        }
        let charge = self.charge(0, ask(mode, cost)?)?;
        Ok(told(&self.take(now, &charge)))
    }

    fn slot(&mut self, now: Time, op: &str, id: SlotId) -> Result<Value, String> {
        match op {
            "acquire" => {
                let charge = self.charge(0, Ask::Hold(id))?;
                let outcome = self.take(now, &charge);
                let mut got = told(&outcome);
                got["renewed"] = json!(outcome.allowed && outcome.granted == 0);
                Ok(got)
            }
            "renew" => {
                let charge = self.charge(0, Ask::Renew(id))?;
                let outcome = self.take(now, &charge);
                Ok(json!({ "ok": outcome.allowed, "in_use": outcome.used }))
            }
            "release" => {
                let charge = self.charge(0, Ask::Peek(0))?;
                let ok = self.subject.release(now, &charge, id);
                Ok(json!({ "ok": ok, "in_use": self.take(now, &charge).used }))
            }
            other => Err(format!("unknown op {other:?}")),
        }
    }

    /// A refund is not a decision: it is always allowed, and reports what is left.
    fn refund(&mut self, now: Time, units: u64) -> Result<Value, String> {
        let charge = self.charge(0, Ask::Peek(0))?;
        self.subject.refund(now, &charge, units, None);
        let mut got = told(&self.take(now, &charge));
        got["allowed"] = json!(true);
        got["retry_after_ns"] = json!(0);
        Ok(got)
    }

    fn together(&mut self, now: Time, mode: &str, costs: &[u64]) -> Result<Value, String> {
        if costs.len() != self.rules.len() {
            return Err(format!("{} costs for {} rules", costs.len(), self.rules.len()));
        }
        let charges = costs.iter().enumerate().map(|(place, cost)| self.charge(place, ask(mode, *cost)?));
        let charges = charges.collect::<Result<Vec<Charge>, String>>()?;
        let answers: Vec<Outcome> = self.subject.take(now, &charges);
        let waits: Option<Vec<u64>> = answers.iter().map(|outcome| SpecOutcome::from(outcome).retry_after).collect();
        Ok(json!({
            "allowed": answers.iter().all(|outcome| outcome.allowed),
            "retry_after_ns": waits.and_then(|waits| waits.into_iter().max()),
            "remaining": answers.iter().map(|outcome| outcome.remaining).min(),
            "rules": answers.iter().map(told).collect::<Vec<Value>>(),
        }))
    }

    fn charge(&self, place: usize, ask: Ask) -> Result<Charge, String> {
        let rule = &self.rules[place];
        let limit: Limit = rule.limit()?;
        let mut hasher = KeyHasher::new(Secret::new(*b"test vector keys"));
        hasher.part(self.case.name.as_bytes());
        hasher.word(place as u64);
        Ok(Charge { ask, count_denied: rule.count_denied(), ..Charge::new(hasher.finish(), limit, 0) })
    }

    fn take(&mut self, now: Time, charge: &Charge) -> Outcome {
        self.subject.take(now, std::slice::from_ref(charge))[0]
    }
}

fn ask(mode: &str, cost: u64) -> Result<Ask, String> {
    match mode {
        "consume" => Ok(Ask::Consume(cost)),
        "peek" => Ok(Ask::Peek(cost)),
        "force" => Ok(Ask::Force(cost)),
        other => Err(format!("unknown mode {other:?}")),
    }
}

fn number(step: &Step, field: &str) -> Result<u64, String> {
    let value = step.get(field).ok_or_else(|| format!("no {field:?}"))?;
    value.as_u64().ok_or_else(|| format!("{field:?} is {value}, not an unsigned integer"))
}

/// The slot of a holder: a digest of its name in the file.
fn slot_id(holder: &Value) -> SlotId {
    let mut hasher = KeyHasher::new(Secret::new(*b"test vector slot"));
    hasher.part(holder.to_string().as_bytes());
    let [a, b] = hasher.finish().0;
    SlotId(u128::from(a) << 64 | u128::from(b))
}

/// An outcome in the fields of the vectors.
fn told(outcome: &Outcome) -> Value {
    let answer = SpecOutcome::from(outcome);
    json!({
        "allowed": answer.allowed,
        "limit": answer.limit,
        "remaining": answer.remaining,
        "retry_after_ns": answer.retry_after,
        "reset_after_ns": answer.reset_after,
        "next_unit_ns": answer.next_unit,
        "delay_ns": answer.delay,
        "in_use": answer.in_use,
    })
}

/// Compares every expected field; one that the subject does not report is a difference.
fn compare(path: &str, expected: &Value, got: &Value, differences: &mut Vec<(String, Value, Value)>) {
    match (expected, got) {
        (Value::Object(fields), Value::Object(_)) => {
            for (name, expected) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match got.get(name) {
                    Some(got) => compare(&path, expected, got, differences),
                    None => differences.push((path, expected.clone(), json!("no such field"))),
                }
            }
        }
        (Value::Array(expected), Value::Array(got)) if expected.len() == got.len() => {
            for (place, (expected, got)) in expected.iter().zip(got).enumerate() {
                compare(&format!("{path}[{place}]"), expected, got, differences);
            }
        }
        (expected, got) if expected != got => differences.push((path.to_owned(), expected.clone(), got.clone())),
        _ => {}
    }
}
