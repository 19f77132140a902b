//! Tokens of the admin API.

use std::fmt;

use serde_json::{Value, json};

use crate::Instant;

/// The permissions of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Only request decisions from the data API.
    Check,
    /// Read, without raw client keys.
    Viewer,
    /// Also switch rules, or all of them, between shadow and enforce; no other changes.
    OnCall,
    /// Read with raw client keys, and change rules, overrides and clients.
    Operator,
    /// Also change tokens, settings and the mode `off`.
    Admin,
}

impl Role {
    /// All roles, the weakest first.
    pub const ALL: [Role; 5] = [Role::Check, Role::Viewer, Role::OnCall, Role::Operator, Role::Admin];

    /// True if this role includes the needed one. Each role includes the weaker ones, except `check`: the data API has
    /// tokens of its own, which permit nothing else.
    pub fn may(self, needed: Role) -> bool {
        match needed {
            Role::Check => self == Role::Check,
            Role::Viewer | Role::OnCall | Role::Operator | Role::Admin => self >= needed,
        }
    }

    /// The name in rows and responses.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Check => "check",
            Role::Viewer => "viewer",
            Role::OnCall => "on-call",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    /// The role of that name.
    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// A stored token: `tg_<token_id>_<secret>`, of which only a hash is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its public half.
    pub token_id: String,
    /// Its name, to be read by people.
    pub name: String,
    /// Its permissions.
    pub role: Role,
    /// Its namespaces; `None` for all.
    pub namespaces: Option<Vec<String>>,
    /// SHA-256 of the secret half.
    pub hash: [u8; 32],
    /// When it was created.
    pub created_at: Instant,
    /// The id of the token that created it.
    pub created_by: String,
    /// First instant at which it is invalid.
    pub expires_at: Option<Instant>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Instant>,
}

impl TokenRecord {
    /// The representation in the audit, without hash and last use.
    pub(crate) fn json(&self) -> Value {
        json!({
            "token_id": self.token_id,
            "name": self.name,
            "role": self.role.name(),
            "namespaces": self.namespaces,
            "created_at": self.created_at.to_string(),
            "created_by": self.created_by,
            "expires_at": self.expires_at.map(|end| end.to_string()),
        })
    }
}

impl fmt::Debug for TokenRecord {
    /// Omits the hash: the text may be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRecord")
            .field("token_id", &self.token_id)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}
