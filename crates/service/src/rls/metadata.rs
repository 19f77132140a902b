//! Dynamic metadata of a response, for later filters of Envoy: the request, and the metadata of limits that passed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use tollgate_proto::RateLimitDescriptor;
use tollgate_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use tollgate_proto::rls::RateLimitRequest;
use tollgate_proto::rls::rate_limit_response::rate_limit::Unit;
use tollgate_rules::envoy::Metadata;

/// The domain, the descriptors, the hits, and the metadata of passing limits in the order of their descriptors.
pub(super) fn of<'r>(message: &RateLimitRequest, passing: impl Iterator<Item = &'r Metadata>) -> Struct {
    let mut fields = BTreeMap::from([
        ("domain".to_owned(), text(message.domain.clone())),
        ("descriptors".to_owned(), list(message.descriptors.iter().map(descriptor))),
    ]);
    if message.hits_addend > 0 {
        fields.insert("hitsAddend".to_owned(), number(f64::from(message.hits_addend)));
    }
    let mut merged = BTreeMap::new();
    passing.for_each(|metadata| merge(&mut merged, metadata));
    if !merged.is_empty() {
        fields.insert("metadata".to_owned(), map(merged));
    }
    Struct { fields }
}

fn descriptor(descriptor: &RateLimitDescriptor) -> Value {
    let entries = descriptor.entries.iter().map(|entry| text(format!("{}={}", entry.key, entry.value)));
    let mut fields = BTreeMap::from([("entries".to_owned(), list(entries))]);
    if let Some(limit) = &descriptor.limit {
        fields.insert("limit".to_owned(), text(shown(limit)));
    }
    if let Some(hits) = descriptor.hits_addend {
        fields.insert("hitsAddend".to_owned(), number(hits as f64)); // JSON has nothing better
    }
    map(fields)
}

/// A limit as protobuf prints it: what is zero is left out.
fn shown(limit: &RateLimitOverride) -> String {
    let mut shown = String::new();
    if limit.requests_per_unit > 0 {
        let _ = write!(shown, "requests_per_unit:{}", limit.requests_per_unit); // a String takes everything
    }
    if limit.unit != 0 {
        let name =
            Unit::try_from(limit.unit).map_or_else(|_| limit.unit.to_string(), |unit| unit.as_str_name().to_owned());
        let space = if shown.is_empty() { "" } else { " " };
        let _ = write!(shown, "{space}unit:{name}");
    }
    shown
}

/// Merges maps recursively; existing values win. Metadata other than a map is ignored.
fn merge(into: &mut BTreeMap<String, Value>, metadata: &Metadata) {
    let Metadata::Map(members) = metadata else { return };
    for (name, member) in members {
        match into.entry(name.clone()) {
            Entry::Vacant(free) => _ = free.insert(value_of(member)),
            Entry::Occupied(mut taken) => {
                if let Some(Kind::StructValue(own)) = &mut taken.get_mut().kind {
                    merge(&mut own.fields, member);
                }
            }
        }
    }
}

fn value_of(metadata: &Metadata) -> Value {
    match metadata {
        Metadata::Null => value(Kind::NullValue(0)),
        Metadata::Bool(flag) => value(Kind::BoolValue(*flag)),
        Metadata::Number(count) => number(*count),
        Metadata::Text(own) => text(own.clone()),
        Metadata::List(items) => list(items.iter().map(value_of)),
        Metadata::Map(members) => map(members.iter().map(|(name, own)| (name.clone(), value_of(own))).collect()),
    }
}

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

fn text(text: String) -> Value {
    value(Kind::StringValue(text))
}

fn number(number: f64) -> Value {
    value(Kind::NumberValue(number))
}

fn list(values: impl Iterator<Item = Value>) -> Value {
    value(Kind::ListValue(ListValue { values: values.collect() }))
}

fn map(fields: BTreeMap<String, Value>) -> Value {
    value(Kind::StructValue(Struct { fields }))
}
