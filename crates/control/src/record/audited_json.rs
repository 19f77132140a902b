//! Reads records from their representation in the audit.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Error, Instant, Result};

/// A record as JSON.
pub(super) struct AuditedJson<'a>(pub(super) &'a Value);

impl AuditedJson<'_> {
    pub(super) fn text(&self, name: &str) -> Result<String> {
        self.maybe_text(name)?.ok_or_else(|| bad(name))
    }

    pub(super) fn maybe_text(&self, name: &str) -> Result<Option<String>> {
        self.maybe(name, |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn number(&self, name: &str) -> Result<i64> {
        self.maybe_number(name)?.ok_or_else(|| bad(name))
    }

    pub(super) fn maybe_number(&self, name: &str) -> Result<Option<i64>> {
        self.maybe(name, Value::as_i64)
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        self.maybe(name, Value::as_bool)?.ok_or_else(|| bad(name))
    }

    pub(super) fn instant(&self, name: &str) -> Result<Instant> {
        self.maybe_instant(name)?.ok_or_else(|| bad(name))
    }

    pub(super) fn maybe_instant(&self, name: &str) -> Result<Option<Instant>> {
        self.maybe(name, |value| Instant::parse(value.as_str()?).ok())
    }

    pub(super) fn texts(&self, name: &str) -> Result<BTreeMap<String, String>> {
        self.maybe(name, texts)?.ok_or_else(|| bad(name))
    }

    fn maybe<T>(&self, name: &str, read: impl FnOnce(&Value) -> Option<T>) -> Result<Option<T>> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| bad(name)),
        }
    }
}

/// An object whose values are all text.
pub(super) fn texts(json: &Value) -> Option<BTreeMap<String, String>> {
    json.as_object()?.iter().map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
}

fn bad(name: &str) -> Error {
    Error::Unexpected(format!("the audit holds a record whose `{name}` cannot be read"))
}
