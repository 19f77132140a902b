//! Builds JSON Schema values.

use serde_json::{Map, Value, json};

/// An object: its members, and which of them are always there. Nothing else is taken.
pub(crate) fn object(members: Value, needed: &[&str]) -> Value {
    json!({ "type": "object", "properties": members, "required": needed, "additionalProperties": false })
}

/// The same for a body: what need not be there may also be `null`.
pub(crate) fn input(members: &Value, needed: &[&str]) -> Value {
    let member = |(name, schema): (&String, &Value)| match needed.contains(&name.as_str()) {
        true => (name.clone(), schema.clone()),
        false => (name.clone(), nullable(schema)),
    };
    let members: Map<String, Value> = members.as_object().into_iter().flatten().map(member).collect();
    object(Value::Object(members), needed)
}

pub(crate) fn nullable(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

/// The same, with every member always there.
pub(crate) fn answer(members: Value) -> Value {
    let names: Vec<String> = members.as_object().map(|members| members.keys().cloned().collect()).unwrap_or_default();
    json!({ "type": "object", "properties": members, "required": names })
}

/// The same for a merge patch: nothing is needed, and `null` takes things away.
pub(crate) fn patch(members: &Value) -> Value {
    input(members, &[])
}

/// The same for an object of anything: what is `null` in it goes.
pub(crate) fn patch_entries(mut schema: Value) -> Value {
    if let Some(entries) = schema.get_mut("additionalProperties") {
        *entries = nullable(entries);
    }
    schema
}

/// A list under a name, and where it goes on.
pub(crate) fn list(name: &str, of: &str) -> Value {
    answer(json!({
        name: { "type": "array", "items": reference(of) },
        "next_cursor": described(json!({ "type": ["string", "null"] }), "Where the next piece begins; null at the end."),
    }))
}

/// Another shape.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

pub(crate) fn described(mut schema: Value, text: &str) -> Value {
    if let Value::Object(members) = &mut schema {
        members.insert("description".to_owned(), text.into());
    }
    schema
}

pub(crate) fn time(text: &str) -> Value {
    json!({ "type": "string", "format": "date-time", "description": text, "examples": ["2026-12-01T00:00:00.000000Z"] })
}

pub(crate) fn maybe_time(text: &str) -> Value {
    json!({ "type": ["string", "null"], "format": "date-time", "description": text })
}

pub(crate) fn word(words: &[&str], text: &str) -> Value {
    json!({ "type": "string", "enum": words, "description": text })
}

/// Text that names something: it ends up in headers and metrics.
pub(crate) fn label(text: &str) -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 128,
        "pattern": r#"^[!#-\[\]-~]([ !#-\[\]-~]*[!#-\[\]-~])?$"#,
        "description": text,
    })
}

/// The name of a rule.
pub(crate) fn rule_name(text: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9._-]+$", "description": text })
}

/// Text that says who somebody is.
pub(crate) fn client_key() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 1024,
        "pattern": r"^[^\u0000-\u001f\u007f-\u009f]+$",
        "description": "Who it is: `key:abc`, `user:42`, `ip:192.0.2.1`, `org:acme`. Shown as a digest to viewers.",
        "examples": ["user:42"],
    })
}

pub(crate) fn text(text: &str) -> Value {
    json!({ "type": "string", "description": text })
}

pub(crate) fn count(text: &str, max_bytes: u64) -> Value {
    json!({ "type": "integer", "format": "int64", "minimum": 0, "maximum": max_bytes, "description": text })
}

pub(crate) fn number(text: &str) -> Value {
    json!({ "type": "integer", "format": "int64", "description": text })
}

pub(crate) fn flag(text: &str) -> Value {
    json!({ "type": "boolean", "description": text })
}

/// What every record carries.
pub(crate) fn stamps() -> Value {
    json!({
        "namespace": { "type": "string", "description": "Whose it is." },
        "created_at": maybe_time("When it was made."),
        "updated_at": maybe_time("When it was changed."),
        "version": { "type": ["integer", "null"], "format": "int64", "description": "The generation that changed it last; its ETag." },
    })
}

/// Members of several objects as one.
pub(crate) fn together(parts: &[&Value]) -> Value {
    let members = parts.iter().filter_map(|part| part.as_object()).flatten();
    Value::Object(members.map(|(name, schema)| (name.clone(), schema.clone())).collect())
}
