//! A decision as the server made it, or as the fail policy did.

use std::borrow::Cow;

use serde_json::{Map, Value};
use tollgate_core::Span;

/// A decision about one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct RemoteDecision {
    /// Whether the request may pass.
    pub allowed: bool,
    /// Capacity of the deciding rule; `None` if no rule limits the request.
    pub limit: Option<u64>,
    /// What is left of it; `None` also where the state is unknown.
    pub remaining: Option<u64>,
    /// When the bucket of that rule equals an unused one, in seconds since 1970.
    pub reset_at: Option<u64>,
    /// How long to wait; `None` if allowed, and if waiting does not help.
    pub retry_after: Option<Span>,
    /// The cost exceeds the limit: waiting does not help.
    pub never: bool,
    /// The deciding rule.
    pub rule: Option<String>,
    /// What decided: `store` and the other modes of the server; `open`, `closed` or `fallback` if the fail policy of this
    /// client did; `lease` if it came from units taken in advance.
    pub mode: Cow<'static, str>,
    /// The generation of the rules; 0 if the server was not asked.
    pub generation: u64,
    /// How long an admitted caller of a queue waits before it goes on.
    pub delay: Span,
    /// Why no rule decided.
    pub reason: Option<String>,
    /// Why it was refused, where that is no limit of the caller: `store_unavailable`, `limiter_unavailable`.
    pub error_code: Option<String>,
    /// Denied: more about the deciding rule.
    pub violated_rule: Option<ViolatedRule>,
    /// If several rules apply, the outcome of each.
    pub rules: Vec<RuleResult>,
}

/// The rule that refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViolatedRule {
    /// Its name.
    pub name: String,
    /// The attributes that its key is made of.
    pub scope: String,
    /// Its limit.
    pub limit: u64,
    /// Its window in seconds, where that is a whole number.
    pub window_seconds: Option<u64>,
}

/// The outcome of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleResult {
    /// The rule.
    pub rule: String,
    /// Whether it admitted the request.
    pub allowed: bool,
    /// Its capacity.
    pub limit: Option<u64>,
    /// What is left of it.
    pub remaining: Option<u64>,
    /// A shadow rule: its refusal denies nothing.
    pub shadow: bool,
}

/// The modes that there are; others become text of their own.
const MODES: [&str; 10] =
    ["store", "lease", "async", "local", "overflow", "open", "fallback", "closed", "off", "prefetch"];

pub(crate) fn mode_of(text: &str) -> Cow<'static, str> {
    match MODES.iter().find(|mode| **mode == text) {
        Some(mode) => Cow::Borrowed(mode),
        None => Cow::Owned(text.to_owned()),
    }
}

impl RemoteDecision {
    /// A decision that was made without the server.
    pub(crate) fn made_here(allowed: bool, mode: &'static str) -> RemoteDecision {
        RemoteDecision { allowed, mode: Cow::Borrowed(mode), ..RemoteDecision::default() }
    }

    /// Reads the object of a decision; `None` if it is none.
    pub(crate) fn read(object: &Map<String, Value>) -> Option<RemoteDecision> {
        let allowed = object.get("allowed")?.as_bool()?;
        let number = |name: &str| object.get(name).and_then(Value::as_u64);
        let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
        let rules = object.get("rules").and_then(Value::as_array);
        Some(RemoteDecision {
            allowed,
            limit: number("limit"),
            remaining: number("remaining"),
            reset_at: number("reset_at"),
            retry_after: number("retry_after_ms").filter(|_| !allowed).map(Span::from_millis),
            never: object.get("never").and_then(Value::as_bool).unwrap_or(false),
            rule: text("rule"),
            mode: mode_of(object.get("mode").and_then(Value::as_str).unwrap_or_default()),
            generation: number("generation").unwrap_or(0),
            delay: number("delay_ms").map_or(Span::ZERO, Span::from_millis),
            reason: text("reason"),
            error_code: text("error_code"),
            violated_rule: object.get("violated_rule").and_then(Value::as_object).map(ViolatedRule::read),
            rules: rules.into_iter().flatten().filter_map(|rule| RuleResult::read(rule.as_object()?)).collect(),
        })
    }

    /// How long a courteous caller pauses before its next call, if this decision is the last it knows: nothing while a
    /// tenth of the limit is left, then the time to the reset divided by the calls that are left. `wall` is the time of
    /// the calendar, in seconds since 1970.
    pub fn courtesy_pause(&self, wall: u64) -> Span {
        let (Some(limit), Some(remaining), Some(reset)) = (self.limit, self.remaining, self.reset_at) else {
            return Span::ZERO;
        };
        match u128::from(remaining) * 10 < u128::from(limit) {
            true => Span::from_nanos(Span::from_secs(reset.saturating_sub(wall)).nanos() / (remaining + 1)),
            false => Span::ZERO,
        }
    }
}

impl ViolatedRule {
    fn read(object: &Map<String, Value>) -> ViolatedRule {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |name: &str| object.get(name).and_then(Value::as_u64);
        ViolatedRule {
            name: text("name"),
            scope: text("scope"),
            limit: number("limit").unwrap_or(0),
            window_seconds: number("window_seconds"),
        }
    }
}

impl RuleResult {
    fn read(object: &Map<String, Value>) -> Option<RuleResult> {
        let flag = |name: &str| object.get(name).and_then(Value::as_bool);
        let number = |name: &str| object.get(name).and_then(Value::as_u64);
        Some(RuleResult {
            rule: object.get("rule")?.as_str()?.to_owned(),
            allowed: flag("allowed")?,
            limit: number("limit"),
            remaining: number("remaining"),
            shadow: flag("shadow").unwrap_or(false),
        })
    }
}
