//! The operator who asks for a page: a client of the API with the operator's token, and what the API tells of it.

use serde_json::Value;

use crate::api::OperatorClient;
use crate::json::{list, text};

/// The operator who asks for a page.
pub(crate) struct Operator<'a> {
    pub(crate) api: OperatorClient<'a>,
    pub(crate) form_token: &'a str,
    /// Role, name and namespaces, as the API tells them.
    pub(crate) whoami: Value,
}

impl Operator<'_> {
    /// The name of the role.
    pub(crate) fn role(&self) -> &str {
        text(&self.whoami, "role")
    }

    /// True if the role is at least this one: hides what the API would refuse.
    pub(crate) fn may(&self, role: &str) -> bool {
        let rank = |name: &str| ["viewer", "on-call", "operator", "admin"].iter().position(|known| *known == name);
        rank(self.role()) >= rank(role)
    }

    /// True if the token is for all namespaces.
    pub(crate) fn sees_all(&self) -> bool {
        self.whoami.get("namespaces").is_none_or(Value::is_null)
    }

    /// The namespace that a page shows when its URL names none.
    pub(crate) fn home(&self) -> &str {
        match list(&self.whoami, "namespaces") {
            [] => "default",
            names if names.iter().any(|name| name == "default") => "default",
            [first, ..] => first.as_str().unwrap_or("default"),
        }
    }
}
