//! `/v1/usage`: what a client has used, for pages that show customers their own limits.

use serde_json::{Map, Value, json};
use tollgate_core::Span;
use tollgate_engine::{RuleUsage, UsageError};
use tollgate_rules::datetime;
use tollgate_ruleset::RequestError;

use crate::CheckRequest;
use crate::service::Service;

/// Why there is no answer.
#[derive(Debug)]
pub enum UsageRejection {
    /// The request cannot be read.
    Invalid(RequestError),
    /// The store did not answer.
    StoreUnavailable,
}

impl Service {
    /// The usage of every rule that may apply to the client of a request, as JSON. Charges nothing.
    pub async fn usage(&self, request: &CheckRequest<'_>) -> Result<Value, UsageRejection> {
        let lists = request.lists();
        let usage = self.engine.usage(&request.request(&lists)).await;
        let (rules, generation, wall) = usage.map_err(|error| match error {
            UsageError::Invalid(error) => UsageRejection::Invalid(error),
            UsageError::Store(_) => UsageRejection::StoreUnavailable,
        })?;
        let rules: Vec<Value> = rules.iter().map(|rule| rule_json(rule, wall)).collect();
        Ok(json!({ "namespace": request.namespace(), "generation": generation, "rules": rules }))
    }
}

fn rule_json(usage: &RuleUsage, wall: tollgate_core::Time) -> Value {
    let RuleUsage { rule, meter, used, limit, granted, remaining, reset_after, period, assumed, enforced } = usage;
    let meter = match meter.as_slice() {
        [(name, 1)] => json!(name),
        weighted => weighted.iter().map(|(name, weight)| (name.clone(), json!(weight))).collect(),
    };
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    set("rule", json!(rule));
    set("meter", meter);
    set("used", json!(used));
    set("limit", json!(limit));
    if *granted > 0 {
        set("granted", json!(granted));
    }
    set("remaining", json!(remaining));
    if *reset_after > Span::ZERO && period.is_none_or(|(_, end)| end.is_some()) {
        set("reset_at", json!(wall.after(*reset_after).secs_ceil()));
    }
    if let Some((start, end)) = period {
        let bounds = end.map(|end| [start.nanos(), end.nanos()].map(datetime::display));
        let [start, end] = bounds.map_or([None, None], |bounds| bounds.map(Some));
        set("period", json!({ "start": start, "end": end }));
    }
    if !assumed.is_empty() {
        set("assumed", json!(assumed));
    }
    if !enforced {
        set("shadow", json!(true));
    }
    fields.into()
}
