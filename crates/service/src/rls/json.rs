//! Rate limit requests as JSON over HTTP: `POST /json` of envoyproxy/ratelimit.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_types::Struct;
use prost_types::value::Kind;
use serde_json::{Map, Value, json};
use tollgate_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{Entry, RateLimitOverride};
use tollgate_proto::rls::rate_limit_response::rate_limit::Unit;
use tollgate_proto::rls::rate_limit_response::{Code, DescriptorStatus};
use tollgate_proto::rls::{RateLimitRequest, RateLimitResponse};
use tollgate_proto::{HeaderValue, RateLimitDescriptor};

/// A malformed body: where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RlsJsonError {
    /// The path to the value.
    pub field: String,
    /// What it should be.
    pub detail: &'static str,
}

/// Reads a request. Field names are those of the proto, in camel case or snake case.
pub fn read(body: &[u8]) -> Result<RateLimitRequest, RlsJsonError> {
    let value: Value = serde_json::from_slice(body).map_err(|_| wrong("", "the body should be JSON"))?;
    let mut fields = Object::new(&value, "")?;
    let request = RateLimitRequest {
        domain: fields.take("domain", text)?.unwrap_or_default(),
        descriptors: fields.list("descriptors", descriptor)?,
        hits_addend: fields.take("hitsAddend", number)?.unwrap_or_default(),
    };
    fields.end()?;
    Ok(request)
}

fn descriptor(value: &Value, at: &str) -> Result<RateLimitDescriptor, RlsJsonError> {
    let mut fields = Object::new(value, at)?;
    let descriptor = RateLimitDescriptor {
        entries: fields.list("entries", entry)?,
        limit: fields.take("limit", limit)?,
        hits_addend: fields.take("hitsAddend", number)?,
        is_negative_hits: fields.take("isNegativeHits", flag)?.unwrap_or_default(),
    };
    fields.end()?;
    Ok(descriptor)
}

fn entry(value: &Value, at: &str) -> Result<Entry, RlsJsonError> {
    let mut fields = Object::new(value, at)?;
    let entry = Entry {
        key: fields.take("key", text)?.unwrap_or_default(),
        value: fields.take("value", text)?.unwrap_or_default(),
    };
    fields.end()?;
    Ok(entry)
}

fn limit(value: &Value, at: &str) -> Result<RateLimitOverride, RlsJsonError> {
    let mut fields = Object::new(value, at)?;
    let limit = RateLimitOverride {
        requests_per_unit: fields.take("requestsPerUnit", number)?.unwrap_or_default(),
        unit: fields.take("unit", unit)?.unwrap_or_default(),
    };
    fields.end()?;
    Ok(limit)
}

fn unit(value: &Value, at: &str) -> Result<i32, RlsJsonError> {
    let unit = match value {
        Value::String(name) => Unit::from_str_name(name).map(i32::from),
        value => value.as_i64().and_then(|number| i32::try_from(number).ok()),
    };
    unit.ok_or_else(|| wrong(at, "should be a unit of time such as MINUTE"))
}

fn text(value: &Value, at: &str) -> Result<String, RlsJsonError> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong(at, "should be a text"))
}

fn flag(value: &Value, at: &str) -> Result<bool, RlsJsonError> {
    value.as_bool().ok_or_else(|| wrong(at, "should be true or false"))
}

/// Protobuf JSON writes 64-bit numbers as strings; plain numbers are accepted too.
fn number<N: TryFrom<u64>>(value: &Value, at: &str) -> Result<N, RlsJsonError> {
    let number = match value {
        Value::String(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        value => value.as_u64().or_else(|| value.as_f64().and_then(whole)),
    };
    number.and_then(|number| N::try_from(number).ok()).ok_or_else(|| wrong(at, "should be a whole number from 0"))
}

/// `1.0` is a whole number too; beyond 2^53 a float is not exact.
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
}

fn wrong(field: &str, detail: &'static str) -> RlsJsonError {
    RlsJsonError { field: field.to_owned(), detail }
}

/// An object whose members are taken one by one; a remaining member is an error.
struct Object<'a> {
    members: Vec<(&'a str, &'a Value)>,
    at: String,
}

impl<'a> Object<'a> {
    fn new(value: &'a Value, at: &str) -> Result<Object<'a>, RlsJsonError> {
        let members = value.as_object().ok_or_else(|| wrong(at, "should be an object"))?;
        let members = members.iter().map(|(name, value)| (name.as_str(), value)).collect();
        Ok(Object { members, at: at.to_owned() })
    }

    fn path(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    fn take<T>(
        &mut self,
        name: &str,
        read: impl Fn(&Value, &str) -> Result<T, RlsJsonError>,
    ) -> Result<Option<T>, RlsJsonError> {
        let is_named = |(own, _): &(&str, &Value)| *own == name || *own == snake(name);
        let Some(index) = self.members.iter().position(is_named) else { return Ok(None) };
        let (name, value) = self.members.swap_remove(index);
        match value {
            Value::Null => Ok(None),
            value => read(value, &self.path(name)).map(Some),
        }
    }

    fn list<T>(
        &mut self,
        name: &str,
        read: impl Fn(&Value, &str) -> Result<T, RlsJsonError>,
    ) -> Result<Vec<T>, RlsJsonError> {
        let all = self.take(name, |value, at| {
            let items = value.as_array().ok_or_else(|| wrong(at, "should be a list"))?;
            items.iter().enumerate().map(|(number, item)| read(item, &format!("{at}[{number}]"))).collect()
        })?;
        Ok(all.unwrap_or_default())
    }

    fn end(self) -> Result<(), RlsJsonError> {
        match self.members.first() {
            Some((name, _)) => Err(wrong(&self.path(name), "there is no such field")),
            None => Ok(()),
        }
    }
}

/// `hits_addend` for `hitsAddend`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The response body and its HTTP status. Default values are omitted, as in proto3.
pub fn write(response: &RateLimitResponse) -> (u16, String) {
    let mut fields = Map::new();
    fields.insert("overallCode".to_owned(), response.overall_code().as_str_name().into());
    fields.insert("statuses".to_owned(), response.statuses.iter().map(status).collect());
    let header = |header: &HeaderValue| json!({ "key": header.key, "value": header.value });
    if !response.response_headers_to_add.is_empty() {
        let headers = response.response_headers_to_add.iter().map(header).collect();
        fields.insert("responseHeadersToAdd".to_owned(), headers);
    }
    if !response.raw_body.is_empty() {
        fields.insert("rawBody".to_owned(), STANDARD.encode(&response.raw_body).into());
    }
    if let Some(metadata) = &response.dynamic_metadata {
        fields.insert("dynamicMetadata".to_owned(), members(metadata));
    }
    let status = match response.overall_code() {
        Code::Ok => 200,
        Code::OverLimit => 429,
        Code::Unknown => 500,
    };
    (status, Value::Object(fields).to_string())
}

fn members(metadata: &Struct) -> Value {
    metadata.fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect::<Map<_, _>>().into()
}

fn plain(value: &prost_types::Value) -> Value {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(value)) => (*value).into(),
        Some(Kind::NumberValue(value)) => (*value).into(),
        Some(Kind::StringValue(text)) => text.as_str().into(),
        Some(Kind::ListValue(list)) => list.values.iter().map(plain).collect(),
        Some(Kind::StructValue(map)) => members(map),
    }
}

fn status(status: &DescriptorStatus) -> Value {
    let mut fields = Map::new();
    fields.insert("code".to_owned(), status.code().as_str_name().into());
    if let Some(limit) = &status.current_limit {
        let mut own = Map::new();
        if !limit.name.is_empty() {
            own.insert("name".to_owned(), limit.name.as_str().into());
        }
        own.insert("requestsPerUnit".to_owned(), limit.requests_per_unit.into());
        if limit.unit() != Unit::Unknown {
            own.insert("unit".to_owned(), limit.unit().as_str_name().into());
        }
        fields.insert("currentLimit".to_owned(), own.into());
    }
    if status.limit_remaining > 0 {
        fields.insert("limitRemaining".to_owned(), status.limit_remaining.into());
    }
    if let Some(until) = &status.duration_until_reset {
        fields.insert("durationUntilReset".to_owned(), format!("{}s", until.seconds).into());
    }
    fields.into()
}
