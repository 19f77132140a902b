//! Parses a step of a table: its time, its requests, its expectations.

use tollgate_core::{Span, Time};
use tollgate_rules::position::SourcePosition;
use tollgate_rules::problem::Problems;
use tollgate_rules::yaml::{YamlKind, YamlNode};
use tollgate_rules::{check, duration};
use tollgate_ruleset::RuleSet;

use super::expect::{EXPECT_FIELDS, Expectation};
use super::field::{SuiteField, unknown_field};
use crate::request::OwnedRequest;

/// Maximum number of requests of one step.
const TIMES_MAX: u64 = 1_000_000;

/// A parsed step.
#[derive(Debug)]
pub struct TestStep {
    pub at: SourcePosition,
    /// Last line of the step, for quoting it.
    pub end_line: u32,
    pub name: Option<String>,
    /// Time of its first request.
    pub time: Time,
    pub action: StepAction,
}

/// The action of a step.
#[derive(Debug)]
pub enum StepAction {
    /// Decides requests.
    Request(Box<RequestStep>),
    /// Releases the slots of this name.
    Release(String),
    /// Renews the slots of this name.
    Renew {
        slot: String,
        /// True if all of them should still be held.
        held: bool,
    },
}

/// Requests and their expectations.
#[derive(Debug)]
pub struct RequestStep {
    pub request: OwnedRequest,
    pub times: u64,
    pub every: Span,
    /// Name of the slots that allowed requests hold.
    pub slot: Option<String>,
    pub expect: Expectation,
}

/// State of parsing: a step continues the time of the steps before, and may use their slots.
pub struct StepReader<'a> {
    pub rules: &'a RuleSet,
    pub namespace: &'a str,
    pub defaults: OwnedRequest,
    pub start: Time,
    /// End of the previous step.
    pub time: Time,
    pub slots: Vec<String>,
}

/// Fields of a request.
pub const REQUEST_FIELDS: [&str; 14] = [
    "client_key",
    "api_key",
    "user_id",
    "ip",
    "org",
    "tier",
    "plan",
    "endpoint",
    "namespace",
    "attributes",
    "cost",
    "costs",
    "peek",
    "in_flight",
];
const STEP_FIELDS: [&str; 8] = ["name", "at", "after", "times", "every", "slot", "release", "renew"];

/// Reads one field of a request; `None` for other fields.
pub fn read_request_field(
    request: &mut OwnedRequest,
    name: &str,
    value: &SuiteField<'_>,
    problems: &mut Problems,
) -> Option<()> {
    match name {
        "cost" => request.cost = value.integer(0..=u64::MAX, problems).unwrap_or(request.cost),
        "costs" => {
            for (key, value) in value.entries(problems) {
                let Some(amount) = value.integer(0..=check::COST_MAX, problems) else { continue };
                if let Err(message) = request.set_cost(&key.text, amount) {
                    problems.push(value.problem("bad-meter", message));
                }
            }
        }
        "peek" => request.peek = value.boolean(problems).unwrap_or(false),
        "in_flight" => request.in_flight = value.boolean(problems).unwrap_or(false),
        "attributes" => {
            for (key, value) in value.entries(problems) {
                set(request, &key.text, &value, problems);
            }
        }
        name if REQUEST_FIELDS.contains(&name) => set(request, name, value, problems),
        _ => return None,
    }
    Some(())
}

/// Sets an attribute; a blank value removes a default.
fn set(request: &mut OwnedRequest, name: &str, value: &SuiteField<'_>, problems: &mut Problems) {
    if value.is_blank() {
        return request.attributes.retain(|(other, _)| other != name);
    }
    let Some(text) = value.text(problems) else { return };
    if let Err(message) = request.set(name, text) {
        problems.push(value.problem("bad-attribute", message));
    }
}

impl StepReader<'_> {
    /// Reads a step, and advances the time to its end.
    pub fn step(&mut self, value: &SuiteField<'_>, problems: &mut Problems) -> Option<TestStep> {
        let before = problems.len();
        let mut request = self.defaults.clone();
        let mut expect = Expectation::default();
        let (mut times, mut every, mut slot, mut name) = (1, Span::ZERO, None, None);
        for (key, value) in value.entries(problems) {
            match key.text.as_str() {
                "name" => name = value.text(problems).map(str::to_owned),
                "at" | "after" => self.set_time(&key.text, &value, problems),
                "times" => times = value.integer(1..=TIMES_MAX, problems).unwrap_or(1),
                "every" => every = value.span(problems).unwrap_or(Span::ZERO),
                "slot" => slot = value.text(problems).map(str::to_owned),
                "release" | "renew" => {}
                field => {
                    let known = read_request_field(&mut request, field, &value, problems)
                        .or_else(|| expect.read_field(field, &value, self.rules, self.namespace, problems));
                    if known.is_none() {
                        let allowed = [&STEP_FIELDS[..], &REQUEST_FIELDS, &EXPECT_FIELDS].concat();
                        problems.push(unknown_field(key, &value.path, &allowed));
                    }
                }
            }
        }
        let time = self.time;
        let action = match self.slot_action(value, &expect, problems) {
            Some(action) => action,
            None => {
                expect.check(value, times, problems);
                if let Some(slot) = slot.as_ref().filter(|slot| !self.slots.contains(slot)) {
                    self.slots.push(slot.clone());
                }
                self.time = time.after(Span::from_nanos(every.nanos().saturating_mul(times - 1)));
                StepAction::Request(Box::new(RequestStep { request, times, every, slot, expect }))
            }
        };
        (problems.len() == before).then_some(TestStep {
            at: value.node.position(),
            end_line: value.node.span.end_line,
            name,
            time,
            action,
        })
    }

    fn set_time(&mut self, field: &str, value: &SuiteField<'_>, problems: &mut Problems) {
        let is_date = matches!(&value.node.kind, YamlKind::Scalar { text, .. } if text.contains('T'));
        let time = match field {
            "after" => value.span(problems).map(|span| self.time.after(span)),
            _ if is_date => value.time(problems),
            _ => value.span(problems).map(|span| self.start.after(span)),
        };
        match time {
            Some(time) if time < self.time => {
                let ended = offset(self.start, self.time);
                let problem =
                    value.problem("back-in-time", format!("{} lies before the end of the step before", value.path));
                problems.push(problem.help(format!("steps go forward; the one before ended at {ended}")));
            }
            Some(time) => self.time = time,
            None => {}
        }
    }

    /// The action of a step with `release` or `renew`, which has no other.
    fn slot_action(&self, step: &SuiteField<'_>, expect: &Expectation, problems: &mut Problems) -> Option<StepAction> {
        let named = |field: &str| step.node.get(field).map(|node| field_value(step, field, node));
        let (value, renew) = match (named("release"), named("renew")) {
            (Some(value), None) => (value, false),
            (None, Some(value)) => (value, true),
            (None, None) => return None,
            (Some(value), Some(_)) => {
                problems.push(value.problem("conflict", "a step either releases or renews"));
                return None;
            }
        };
        let allowed: &[&str] =
            if renew { &["name", "at", "after", "renew", "expect"] } else { &["name", "at", "after", "release"] };
        if let YamlKind::Map(entries) = &step.node.kind {
            let others = entries.iter().filter(|(key, _)| !allowed.contains(&key.text.as_str()));
            others.for_each(|(key, node)| {
                problems.push(unknown_field(key, &field_value(step, &key.text, node).path, allowed))
            });
        }
        let slot = value.text(problems).unwrap_or_default().to_owned();
        if !self.slots.contains(&slot) {
            let problem = value.problem("unknown-slot", format!("no step before this one holds a slot `{slot}`"));
            problems.push(problem.help(format!("let a request take it first: `- {{ slot: {slot}, expect: allow }}`")));
        }
        Some(if renew { StepAction::Renew { slot, held: !expect.denies() } } else { StepAction::Release(slot) })
    }
}

fn field_value<'a>(step: &SuiteField<'_>, field: &str, node: &'a YamlNode) -> SuiteField<'a> {
    SuiteField { node, path: format!("{}.{field}", step.path) }
}

/// Time since the start, in the format of tables.
pub fn offset(start: Time, time: Time) -> String {
    duration::display(time.since(start).nanos())
}
