//! Rules.

use serde_json::{Map, Value};

use crate::Instant;

/// What a rule shall be.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleDraft {
    /// What people and callers call it, if not by its id; empty for the id.
    pub name: String,
    /// The rule as a rules file has it (`match`, `key_by`, `limit`, …), without `name`.
    pub document: Map<String, Value>,
    /// False keeps it and leaves it out of decisions.
    pub enabled: bool,
}

/// A rule as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleRecord {
    /// Whose.
    pub namespace: String,
    /// Its id: its name in decisions, in metrics and in rules files.
    pub rule_id: String,
    /// What it is.
    pub draft: RuleDraft,
    /// When it was made.
    pub created_at: Instant,
    /// When it was changed.
    pub updated_at: Instant,
    /// The generation that changed it last: never used twice, not even after it was deleted and made again.
    pub version: i64,
}
