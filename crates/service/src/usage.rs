//! `/v1/usage`: what a client has used, for pages that show customers their own limits.

use serde_json::{Value, json};
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
    let RuleUsage { rule, meter, used, limit, remaining, reset_after, period, assumed, enforced } = usage;
    let meter = match meter.as_slice() {
        [(name, 1)] => json!(name),
        weighted => weighted.iter().map(|(name, weight)| (name.clone(), json!(weight))).collect(),
    };
    let mut json = json!({ "rule": rule, "meter": meter, "used": used, "limit": limit, "remaining": remaining });
    let mut set = |name: &str, value: Value| json[name] = value;
    if *reset_after > Span::ZERO {
        set("reset_at", json!(wall.after(*reset_after).secs_ceil()));
    }
    if let Some((start, end)) = period {
        let end = end.map(|end| datetime::display(end.nanos()));
        set("period", json!({ "start": datetime::display(start.nanos()), "end": end }));
    }
    if !assumed.is_empty() {
        set("assumed", json!(assumed));
    }
    if !enforced {
        set("shadow", json!(true));
    }
    json
}
