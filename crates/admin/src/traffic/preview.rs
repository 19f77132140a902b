//! What another limit would have done to the recorded traffic.

use serde_json::{Map, Value, json};
use tollgate_core::Span;
use tollgate_rules::duration;
use tollgate_service::traffic::{ClientEffect, LimitChange, WhatIf};

use super::series::range;
use super::shown::{ClientNames, monitor};
use crate::body_fields::BodyFields;
use crate::call::AdminCall;
use crate::json;
use crate::problem::AdminProblem;
use crate::response::AdminResponse;

/// Clients that are listed.
const LISTED: usize = 100;

pub(super) fn preview(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (traffic, clients) = (monitor(call)?, ClientNames::of(call));
    let mut fields = BodyFields::of(json::object(call.body)?, &["namespace", "rule", "limit", "range"]);
    let namespace = body_namespace(call, &mut fields)?;
    let rule = fields.required_text("rule", "name the rule");
    let name = fields.text("range");
    if name.as_deref().is_some_and(|name| !["1h", "1d", "30d"].contains(&name)) {
        fields.refuse("range", "bad-range", "there is no such range", "1h, 1d or 30d");
    }
    let limit = fields.take("limit").and_then(|limit| limit.as_object().cloned());
    if limit.is_none() {
        fields.refuse("limit", "missing", "is missing", "an object such as {\"requests\": 100, \"window\": \"1m\"}");
    }
    let present = traffic.limit_of(&namespace, &rule);
    let change = limit.and_then(|limit| read_change(&limit, present, &mut fields));
    fields.rest()?;
    let Some(present) = present else { return Err(AdminProblem::not_found("rule of that name with a limit in force")) };
    let Some(change) = change else { return Err(AdminProblem::of_faults(Vec::new())) };
    let (resolution, steps) = range(name.as_deref());
    let what_if = traffic.what_if(&namespace, &rule, change, resolution, steps);
    Ok(AdminResponse::json(&json!({
        "namespace": namespace,
        "rule": rule,
        "range": name.as_deref().unwrap_or("1h"),
        "step_seconds": resolution.seconds(),
        "limit_now": limit_json(present),
        "limit": limit_json(change),
        "requests": what_if.sum.requests,
        "refused_then": what_if.sum.refused_then,
        "refused_min": what_if.sum.refused_min,
        "refused_max": what_if.sum.refused_max,
        "clients": what_if.clients.len(),
        "refused_clients": what_if.refused_clients(),
        "unattributed": what_if.unattributed,
        "summary": summary(&what_if),
        "items": what_if.clients.iter().take(LISTED).map(|(_, client, effect)| item(&clients.shown(client), effect)).collect::<Value>(),
    })))
}

/// The namespace of a body: named, or the only one of the token, or `default`; one that the token is for.
pub(super) fn body_namespace(call: &AdminCall<'_>, fields: &mut BodyFields) -> Result<String, AdminProblem> {
    let only = call.identity().and_then(|identity| match identity.namespaces.as_deref() {
        Some([only]) => Some(only.clone()),
        _ => None,
    });
    let namespace = fields.text("namespace").or(only).unwrap_or_else(|| "default".to_owned());
    match call.identity().is_some_and(|identity| !identity.may_see(&namespace)) {
        true => Err(AdminProblem::new(403, "other_namespace", "This token is not for that namespace.")),
        false => Ok(namespace),
    }
}

/// The present limit with other numbers: what is left out stays.
fn read_change(
    limit: &Map<String, Value>,
    present: Option<LimitChange>,
    fields: &mut BodyFields,
) -> Option<LimitChange> {
    let present = present?;
    let mut change = LimitChange { burst: present.burst, ..present };
    for (name, value) in limit {
        let number = value.as_u64();
        match (name.as_str(), number) {
            ("requests", Some(units)) => change.units = units,
            ("burst", Some(burst)) => change.burst = Some(burst),
            ("window", _) => match value.as_str().and_then(|text| duration::parse(text).ok()) {
                Some(nanos) if nanos > 0 => change.window = Span::from_nanos(nanos),
                _ => fields.refuse("limit.window", "bad-duration", "is no duration", "such as 1s, 5m, 1h"),
            },
            ("requests" | "burst", None) => {
                fields.refuse(&format!("limit.{name}"), "bad-number", "is no whole number", "such as 100");
            }
            _ => {
                fields.refuse(&format!("limit.{name}"), "unknown-field", "is not known here", "requests, window, burst")
            }
        }
    }
    // A bucket whose burst was as large as its rate keeps that.
    if let (Some(burst), true) = (present.burst, !limit.contains_key("burst"))
        && burst == present.units
    {
        change.burst = Some(change.units);
    }
    Some(change)
}

fn limit_json(limit: LimitChange) -> Value {
    json!({ "requests": limit.units, "window_ms": limit.window.millis_ceil(), "burst": limit.burst })
}

fn item(client: &str, effect: &ClientEffect) -> Value {
    let ClientEffect { requests, refused_then, refused_min, refused_max } = effect;
    json!({
        "client": client,
        "requests": requests,
        "refused_then": refused_then,
        "refused_min": refused_min,
        "refused_max": refused_max,
    })
}

fn summary(what_if: &WhatIf) -> String {
    let ClientEffect { requests, refused_then, refused_min, refused_max } = what_if.sum;
    let refused =
        if refused_min == refused_max { refused_max.to_string() } else { format!("{refused_min} to {refused_max}") };
    let clients = what_if.refused_clients();
    let rest = match what_if.unattributed {
        0 => String::new(),
        rest => format!("; {rest} requests of clients that are not known by name are left out"),
    };
    format!(
        "would have refused {refused} of {requests} requests, of {clients} clients; {refused_then} were refused{rest}"
    )
}
