//! Builds JSON Schema values.

use serde_json::{Map, Value, json};

/// An object with these members, some of them required, and no others.
pub(crate) fn object(members: Value, needed: &[&str]) -> Value {
    json!({ "type": "object", "properties": members, "required": needed, "additionalProperties": false })
}

/// A request body: optional members may also be `null`.
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

/// A response: every member is present.
pub(crate) fn answer(members: Value) -> Value {
    let names: Vec<String> = members.as_object().map(|members| members.keys().cloned().collect()).unwrap_or_default();
    json!({ "type": "object", "properties": members, "required": names })
}

/// A merge patch: nothing is required, and `null` deletes.
pub(crate) fn patch(members: &Value) -> Value {
    input(members, &[])
}

/// A merge patch of a map: `null` deletes an entry.
pub(crate) fn patch_entries(mut schema: Value) -> Value {
    if let Some(entries) = schema.get_mut("additionalProperties") {
        *entries = nullable(entries);
    }
    schema
}

/// A page of a list, and the cursor of the next.
pub(crate) fn list(name: &str, of: &str) -> Value {
    answer(json!({
        name: { "type": "array", "items": reference(of) },
        "next_cursor": described(json!({ "type": ["string", "null"] }), "Where the next piece begins; null at the end."),
    }))
}

/// A reference to a schema.
pub fn reference(name: &str) -> Value {
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

/// A label: it appears in headers and metrics.
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

/// A client key.
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

/// Members that every record has.
pub(crate) fn stamps() -> Value {
    json!({
        "namespace": { "type": "string", "description": "Whose it is." },
        "created_at": maybe_time("When it was made."),
        "updated_at": maybe_time("When it was changed."),
        "version": { "type": ["integer", "null"], "format": "int64", "description": "The generation that changed it last; its ETag." },
    })
}

/// Warnings, where there are any.
pub(crate) fn warnings() -> Value {
    json!({
        "type": "array",
        "items": reference("Warning"),
        "description": "What is valid and probably not meant; absent if there is nothing to say.",
    })
}

/// Merges the members of several objects.
pub(crate) fn together(parts: &[&Value]) -> Value {
    let members = parts.iter().filter_map(|part| part.as_object()).flatten();
    Value::Object(members.map(|(name, schema)| (name.clone(), schema.clone())).collect())
}
