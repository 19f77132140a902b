//! Order of the fields of a map, by the kind of map.

use crate::read::{
    CLIENT_FIELDS, COST_FIELDS, FILE_FIELDS, GRANT_FIELDS, LIMIT_FIELDS, OVERRIDE_FIELDS, PENALTY_FIELDS, PLAN_FIELDS,
    RULE_FIELDS, STEP_FIELDS,
};

/// Kind of a map; a list has the kind of its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldOrder {
    File,
    Rule,
    Limit,
    Cost,
    Penalty,
    /// Plans by name, as written.
    Plans,
    Plan,
    Client,
    /// A step of a client's plans.
    Step,
    Override,
    Grant,
    /// As written.
    Source,
}

impl FieldOrder {
    /// The order of the map below a key.
    pub(super) fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::File, "rules") => Self::Rule,
            (Self::File, "plans") => Self::Plans,
            (Self::Plans, _) => Self::Plan,
            (Self::Plan, "limits") => Self::Rule,
            (Self::File, "clients") => Self::Client,
            (Self::Client, "plan") => Self::Step,
            (Self::File, "overrides") => Self::Override,
            (Self::File, "grants") => Self::Grant,
            (Self::Rule, "limit") => Self::Limit,
            (Self::Rule, "cost") => Self::Cost,
            (Self::Rule, "penalty") => Self::Penalty,
            _ => Self::Source,
        }
    }

    /// Rank of a key; unknown keys come last.
    pub(super) fn rank(self, key: &str) -> usize {
        let fields = match self {
            Self::File => FILE_FIELDS,
            Self::Rule => RULE_FIELDS,
            Self::Limit => LIMIT_FIELDS,
            Self::Cost => COST_FIELDS,
            Self::Penalty => PENALTY_FIELDS,
            Self::Plan => PLAN_FIELDS,
            Self::Client => CLIENT_FIELDS,
            Self::Step => STEP_FIELDS,
            Self::Override => OVERRIDE_FIELDS,
            Self::Grant => GRANT_FIELDS,
            Self::Plans | Self::Source => &[],
        };
        fields.iter().position(|field| *field == key).unwrap_or(fields.len())
    }
}
