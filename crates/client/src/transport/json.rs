//! Requests as JSON, and answers read from it.

use serde_json::{Map, Value, json};
use tollgate_core::{Attribute, Purpose, Request};

use super::DecisionAnswer;
use crate::failure::RequestRejected;
use crate::reservation::RemoteSettlement;
use crate::{RemoteDecision, Span};

/// The object of a request.
pub(super) fn request(request: &Request<'_>) -> Value {
    let mut object = Map::new();
    for attribute in Attribute::ALL {
        if let Some(value) = request.get(attribute) {
            object.insert(attribute.name().to_owned(), Value::from(value));
        }
    }
    if request.namespace != Request::DEFAULT_NAMESPACE {
        object.insert("namespace".to_owned(), Value::from(request.namespace));
    }
    if request.cost != 1 {
        object.insert("cost".to_owned(), Value::from(request.cost));
    }
    if !request.costs.is_empty() {
        object.insert("costs".to_owned(), amounts(request.costs));
    }
    if request.purpose == Purpose::Peek {
        object.insert("peek".to_owned(), Value::Bool(true));
    }
    if !request.custom.is_empty() {
        let custom = request.custom.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
        object.insert("attributes".to_owned(), Value::Object(custom.collect()));
    }
    Value::Object(object)
}

pub(super) fn amounts(costs: &[(&str, u64)]) -> Value {
    Value::Object(costs.iter().map(|(meter, amount)| ((*meter).to_owned(), Value::from(*amount))).collect())
}

/// The object about a receipt; without amounts everything keeps its estimate.
pub(super) fn receipt(name: &str, receipt: &str, costs: &[(&str, u64)]) -> Value {
    match costs.is_empty() {
        true => json!({ name: receipt }),
        false => json!({ name: receipt, "costs": amounts(costs) }),
    }
}

/// The answer with a decision, and what came with it.
pub(super) fn decision(object: &Map<String, Value>) -> Option<DecisionAnswer> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(DecisionAnswer {
        decision: RemoteDecision::read(object)?,
        receipt: text("reservation").or_else(|| text("slot")),
        ttl: ttl(object),
        slot_lost: object.get("slot_lost").and_then(Value::as_bool).unwrap_or(false),
        answer: None,
    })
}

pub(super) fn ttl(object: &Map<String, Value>) -> Option<Span> {
    object.get("ttl_ms").and_then(Value::as_u64).map(Span::from_millis)
}

/// The results of a batch: decisions, and problems in their places.
pub(super) fn batch(object: &Map<String, Value>) -> Option<Vec<Result<RemoteDecision, RequestRejected>>> {
    let results = object.get("results")?.as_array()?;
    let read = |result: &Value| {
        let object = result.as_object()?;
        RemoteDecision::read(object).map(Ok).or_else(|| rejected(object).map(Err))
    };
    results.iter().map(read).collect()
}

pub(super) fn settled(object: &Map<String, Value>) -> Option<RemoteSettlement> {
    let number = |name: &str| object.get(name).and_then(Value::as_u64).unwrap_or(0);
    let above = object.get("above").and_then(Value::as_object).into_iter().flatten();
    let uncharged = object.get("uncharged").and_then(Value::as_array).into_iter().flatten();
    Some(RemoteSettlement {
        settled: object.get("settled")?.as_bool()?,
        refunded: number("refunded"),
        extended: number("extended"),
        above: above.filter_map(|(meter, amount)| Some((meter.clone(), amount.as_u64()?))).collect(),
        uncharged: uncharged
            .filter_map(|one| Some((one.get("rule")?.as_str()?.to_owned(), one.get("units")?.as_u64()?)))
            .collect(),
    })
}

/// A problem with a code, as the server writes errors of requests.
pub(super) fn rejected(object: &Map<String, Value>) -> Option<RequestRejected> {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let detail = text("detail").unwrap_or_default();
    let detail = match text("field") {
        Some(field) => format!("{field}: {detail}"),
        None => detail.to_owned(),
    };
    Some(RequestRejected { code: text("code")?.to_owned(), detail })
}
