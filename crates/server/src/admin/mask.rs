//! Client keys, for those who may not see them: `key:#1a2b3c4d5e6f` instead of `key:abc`. The digest is keyed, so it is the
//! same wherever the key appears and tells nothing about it to who does not know it already.

use serde_json::Value;
use tollgate_core::{KeyHasher, Secret};

/// How client keys are shown.
#[derive(Clone, Copy)]
pub struct Mask<'a>(Option<&'a Secret>);

/// Kinds of clients, which stay readable.
const KINDS: &[&str] = &["user", "key", "ip", "org"];
/// Members of documents that hold client keys, wherever they stand: conditions of rules included.
const MEMBERS: &[&str] = &["client_key", "api_key", "user_id"];

impl<'a> Mask<'a> {
    /// As they are.
    pub const fn none() -> Mask<'a> {
        Mask(None)
    }

    /// As digests under a secret.
    pub const fn under(secret: &'a Secret) -> Mask<'a> {
        Mask(Some(secret))
    }

    /// True if keys are not shown as they are.
    pub const fn hides(&self) -> bool {
        self.0.is_some()
    }

    /// A client key.
    pub fn key(&self, key: &str) -> String {
        let Some(secret) = self.0.filter(|_| key != "*") else { return key.to_owned() };
        let mut hasher = KeyHasher::new(*secret);
        hasher.part(key.as_bytes());
        let [digest, _] = hasher.finish().0;
        let kind = key.split(':').next().filter(|kind| KINDS.contains(kind)).unwrap_or("key");
        format!("{kind}:#{:012x}", digest >> 16)
    }

    /// A document, with every client key in it.
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
        let mask = Mask::under(&secret);
        let hidden = mask.key("key:abc");
        assert!(hidden.starts_with("key:#") && hidden.len() == 17, "{hidden}");
        assert_eq!(mask.key("key:abc"), hidden);
        assert_ne!(Mask::under(&Secret::new([8; 16])).key("key:abc"), hidden);
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
        assert_eq!(Mask::none().value(json!({ "client_key": "key:abc" })), json!({ "client_key": "key:abc" }));
    }
}
