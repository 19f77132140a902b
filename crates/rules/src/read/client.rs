//! Reads `clients` and `overrides`.

use tollgate_calendar::{Anchor, TimeZone};

use super::field::{FieldPath, FieldValue};
use super::plan::read_schedule;
use super::quota::calendar_problem;
use super::rule::flag;
use crate::check;
use crate::datetime;
use crate::key::{attribute_fault, is_attribute};
use crate::problem::{Problem, Problems};
use crate::spec::{ANCHOR, ClientSpec, OverrideSpec, PLAN, TIME_ZONE};
use crate::yaml::YamlKind;

/// Fields of a client, in canonical order.
pub(crate) const CLIENT_FIELDS: &[&str] = &["client_key", "plan", "tier", "org", "time_zone", "anchor", "attributes"];

/// Fields of an override, in canonical order.
pub(crate) const OVERRIDE_FIELDS: &[&str] =
    &["client_key", "rule", "requests", "burst", "unlimited", "valid_from", "valid_until", "reason"];

pub(crate) fn read_client(value: FieldValue<'_>, problems: &mut Problems) -> ClientSpec {
    let fields = value.fields(CLIENT_FIELDS, "- { client_key: \"user:42\", tier: free }", problems);
    let key = fields.required("client_key", "name the client, such as `client_key: \"user:42\"`", problems);
    let mut text = |value: Option<FieldValue<'_>>| value.and_then(|value| value.text(problems).map(str::to_owned));
    let mut client = ClientSpec {
        client_key: text(key).unwrap_or_default(),
        at: value.position(),
        tier: text(fields.get("tier")),
        org: text(fields.get("org")),
        plan: None,
        attributes: Vec::new(),
    };
    client.plan = fields.get(PLAN).and_then(|value| read_schedule(&value, problems));
    if let Some(value) = fields.get("attributes") {
        client.attributes = read_attributes(&value, problems);
    }
    if client.plan.is_some() {
        // Files of earlier versions may have an attribute of this name; the field says more.
        client.attributes.retain(|(name, _)| name != PLAN);
    }
    for name in [TIME_ZONE, ANCHOR] {
        let Some(value) = fields.get(name).and_then(|value| read_attribute(name, &value, problems)) else { continue };
        client.attributes.retain(|(other, _)| other != name);
        client.attributes.push((name.to_owned(), value.to_owned()));
    }
    client
}

fn read_attributes(value: &FieldValue<'_>, problems: &mut Problems) -> Vec<(String, String)> {
    let YamlKind::Map(entries) = &value.node.kind else {
        problems.push(value.mismatch("a map", "write `attributes: { region: eu }`"));
        return Vec::new();
    };
    let mut attributes = Vec::new();
    for (key, node) in entries {
        let entry = FieldValue { node, path: FieldPath::Field(&value.path, &key.text) };
        let fixed =
            matches!(key.text.as_str(), "tier" | "org" | "client_key" | "endpoint" | "method" | "path" | "namespace");
        if fixed {
            let message = format!("{} cannot be set here", entry.path);
            let help = "`tier` and `org` are fields of the client itself; the others come with the request";
            problems.push(Problem::error("misplaced-field", key.position(), entry.path, message).help(help));
        } else if !is_attribute(&key.text) {
            let fault = attribute_fault(&key.text);
            problems.push(Problem::error("bad-attribute", key.position(), entry.path, fault.message).help(fault.help));
        } else if let Some(text) = read_attribute(&key.text, &entry, problems) {
            attributes.push((key.text.clone(), text.to_owned()));
        }
    }
    attributes
}

/// The value of an attribute. The calendar of a client is refused here: a rule cannot refuse it when a request comes.
fn read_attribute<'a>(name: &str, value: &FieldValue<'a>, problems: &mut Problems) -> Option<&'a str> {
    let text = value.text(problems)?;
    let checked = match name {
        TIME_ZONE => TimeZone::parse(text).map(drop),
        ANCHOR => Anchor::check(text),
        _ => Ok(()),
    };
    checked.map_err(|error| problems.push(calendar_problem(value, &error))).ok().map(|()| text)
}

pub(crate) fn read_override(value: FieldValue<'_>, problems: &mut Problems) -> OverrideSpec {
    let fields = value.fields(OVERRIDE_FIELDS, "- { client_key: \"user:42\", rule: name, requests: 100 }", problems);
    let key = fields.required("client_key", "name the client, such as `client_key: \"user:42\"`", problems);
    let rule = fields.required("rule", "name the rule it changes", problems);
    let mut text = |value: Option<FieldValue<'_>>| value.and_then(|value| value.text(problems).map(str::to_owned));
    let mut change = OverrideSpec {
        client_key: text(key).unwrap_or_default(),
        at: value.position(),
        rule: text(rule).unwrap_or_default(),
        reason: text(fields.get("reason")),
        ..OverrideSpec::default()
    };
    change.requests = fields.get("requests").and_then(|value| value.integer(0..=check::REQUESTS_MAX, problems));
    change.burst =
        fields.get("burst").and_then(|value| value.integer(0..=check::BURST_MAX, problems)).filter(|burst| *burst > 0);
    change.unlimited = flag(&fields, "unlimited", problems);
    change.valid_from_ns = fields.get("valid_from").and_then(|value| read_time(&value, problems));
    change.valid_until_ns = fields.get("valid_until").and_then(|value| read_time(&value, problems));
    change
}

pub(super) fn read_time(value: &FieldValue<'_>, problems: &mut Problems) -> Option<u64> {
    let text = value.text(problems)?;
    datetime::parse(text).map_err(|fault| problems.push(value.fault("bad-time", fault))).ok()
}
