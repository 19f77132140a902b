//! Masks client keys for callers that may not see them: `key:#1a2b3c4d5e6f` instead of `key:abc`. The keyed digest is
//! the same wherever the key appears, and cannot be reversed without the secret.

use serde_json::Value;
use tollgate_core::{KeyHasher, Secret};

/// How client keys are shown.
#[derive(Clone, Copy)]
pub enum Mask<'a> {
    /// As they are.
    Plain,
    /// As digests under a secret.
    Under(&'a Secret),
    /// Not at all: `key:#`.
    Hidden,
}

/// Kinds of clients, which stay readable.
const KINDS: &[&str] = &["user", "key", "ip", "org"];
/// Members of documents that hold client keys, wherever they stand: conditions of rules included.
const MEMBERS: &[&str] = &["client_key", "api_key", "user_id"];

impl<'a> Mask<'a> {
    /// True if keys are not shown as they are.
    pub const fn hides(&self) -> bool {
        !matches!(self, Mask::Plain)
    }

    /// Masks a client key.
    pub fn key(&self, key: &str) -> String {
        let kind = || key.split(':').next().filter(|kind| KINDS.contains(kind)).unwrap_or("key");
        match self {
            _ if key == "*" => key.to_owned(),
            Mask::Plain => key.to_owned(),
            Mask::Hidden => format!("{}:#", kind()),
            Mask::Under(secret) => {
                let mut hasher = KeyHasher::new(**secret);
                hasher.part(key.as_bytes());
                let [digest, _] = hasher.finish().0;
                format!("{}:#{:012x}", kind(), digest >> 16)
            }
        }
    }

    /// Masks the client keys of other clients in an explanation: in the conditions of rules, and in the reasons why
    /// they do not apply.
    pub fn conditions(&self, explanation: &mut Value) {
        if !self.hides() {
            return;
        }
        for rule in explanation.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
            for name in ["match", "cost"] {
                rule.get_mut(name).into_iter().for_each(|conditions| self.walk(conditions));
            }
            if let Some(Value::String(because)) = rule.get_mut("because")
                && let Some(name) = MEMBERS.iter().find(|name| because.starts_with(&format!("{name} should be ")))
            {
                *because = format!("{name} should be another one");
            }
        }
    }

    /// Masks every client key in a document.
    #[must_use]
    pub fn value(&self, mut value: Value) -> Value {
        if self.hides() {
            self.walk(&mut value);
        }
        value
    }

    fn walk(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match MEMBERS.contains(&name.as_str()) {
                        true => self.texts(value),
                        false => self.walk(value),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item)),
            _ => {}
        }
    }

    fn texts(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.key(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.texts(item)),
            other => self.walk(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_hidden_wherever_they_stand_and_alike() {
        let secret = Secret::new([7; 16]);
        let mask = Mask::Under(&secret);
        let hidden = mask.key("key:abc");
        assert!(hidden.starts_with("key:#") && hidden.len() == 17, "{hidden}");
        assert_eq!(mask.key("key:abc"), hidden);
        assert_ne!(Mask::Under(&Secret::new([8; 16])).key("key:abc"), hidden);
        assert!(mask.key("user:42").starts_with("user:#") && mask.key("raw-secret").starts_with("key:#"));
        let shown = mask.value(json!({
            "client_key": "key:abc",
            "match": { "client_key": ["key:abc", "*"], "api_key": "abc", "tier": "free" },
            "cost": [{ "match": { "client_key": "key:abc" }, "cost": 2 }],
        }));
        assert_eq!(shown["client_key"], json!(hidden));
        assert_eq!(shown["match"]["client_key"], json!([hidden, "*"]));
        assert_eq!(shown["cost"][0]["match"]["client_key"], json!(hidden));
        assert_eq!(shown["match"]["tier"], "free");
        assert!(!shown.to_string().contains("abc"));
        let mut explained = json!({ "rules": [
            { "match": { "api_key": ["abc"] }, "because": "api_key should be abc, the request has none" },
            { "match": { "tier": ["free"] }, "because": "tier should be free, is paid", "cost": 1 },
        ] });
        for mask in [mask, Mask::Hidden] {
            mask.conditions(&mut explained);
            assert!(!explained.to_string().contains("abc"), "{explained}");
        }
        assert_eq!(explained["rules"][1]["because"], "tier should be free, is paid");
        assert_eq!(Mask::Plain.value(json!({ "client_key": "key:abc" })), json!({ "client_key": "key:abc" }));
    }
}
