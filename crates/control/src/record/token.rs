//! Tokens of those who use the admin API.

use std::fmt;

use serde_json::{Value, json};

use crate::Instant;

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Only ask the data API for decisions.
    Check,
    /// Read, without raw client keys.
    Viewer,
    /// Also switch rules, or all of them, to shadow and back, and change nothing else.
    OnCall,
    /// Read with raw client keys, and change rules, overrides and clients.
    Operator,
    /// Also tokens, settings and the mode `off`.
    Admin,
}

impl Role {
    /// Every role, the weakest first.
    pub const ALL: [Role; 5] = [Role::Check, Role::Viewer, Role::OnCall, Role::Operator, Role::Admin];

    /// Whether it may do what that role is needed for. Each role may do what the weaker ones may, but for `check`: the data
    /// API is for tokens of its own, which open nothing else.
    pub fn may(self, needed: Role) -> bool {
        match needed {
            Role::Check => self == Role::Check,
            Role::Viewer | Role::OnCall | Role::Operator | Role::Admin => self >= needed,
        }
    }

    /// Its name in rows and answers.
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

/// A token as it is stored: `tg_<token_id>_<secret>`, of which only a hash is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its public half.
    pub token_id: String,
    /// For people.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// In which namespaces; `None` for all.
    pub namespaces: Option<Vec<String>>,
    /// SHA-256 of the secret half.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_at: Instant,
    /// Who made it: a token's id.
    pub created_by: String,
    /// First instant it opens nothing any more.
    pub expires_at: Option<Instant>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Instant>,
}

impl TokenRecord {
    /// What the audit says of it: not the hash, and not when it was used.
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
    /// Without the hash: logs are read by many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRecord")
            .field("token_id", &self.token_id)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}
