//! The environment variables of envoyproxy/ratelimit.

use std::collections::BTreeMap;

/// Access to the variables; an empty one counts as unset.
pub(super) struct RatelimitEnv<'a>(&'a BTreeMap<String, String>);

impl<'v> RatelimitEnv<'v> {
    pub(super) fn new(variables: &'v BTreeMap<String, String>) -> RatelimitEnv<'v> {
        RatelimitEnv(variables)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn or<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.get(name).unwrap_or(default)
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name).and_then(boolean).unwrap_or_default()
    }
}

/// Parses a boolean as Go does.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
