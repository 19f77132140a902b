//! Kinds of records.

/// Kinds of records that have an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// A rule.
    Rule,
    /// An override.
    Override,
    /// A grant.
    Grant,
    /// The mode set for a rule.
    RuleMode,
    /// A client.
    Client,
    /// A plan.
    Plan,
    /// Settings of a namespace.
    Namespace,
    /// A token.
    Token,
    /// An API key of a client.
    Key,
    /// A webhook.
    Webhook,
    /// A penalty.
    Penalty,
    /// The mode of the fleet: off, shadow or enforce.
    Mode,
    /// Counts of a client that were reset in the store.
    Counter,
    /// Everything: all nodes load the tables again.
    Everything,
}

impl RecordKind {
    /// All kinds.
    pub const ALL: [RecordKind; 14] = [
        RecordKind::Rule,
        RecordKind::Override,
        RecordKind::Grant,
        RecordKind::RuleMode,
        RecordKind::Client,
        RecordKind::Plan,
        RecordKind::Namespace,
        RecordKind::Token,
        RecordKind::Key,
        RecordKind::Webhook,
        RecordKind::Penalty,
        RecordKind::Mode,
        RecordKind::Counter,
        RecordKind::Everything,
    ];

    /// The name in rows and responses.
    pub const fn name(self) -> &'static str {
        match self {
            RecordKind::Rule => "rule",
            RecordKind::Override => "override",
            RecordKind::Grant => "grant",
            RecordKind::RuleMode => "rule_mode",
            RecordKind::Client => "client",
            RecordKind::Plan => "plan",
            RecordKind::Namespace => "namespace",
            RecordKind::Token => "token",
            RecordKind::Key => "key",
            RecordKind::Webhook => "webhook",
            RecordKind::Penalty => "penalty",
            RecordKind::Mode => "mode",
            RecordKind::Counter => "counter",
            RecordKind::Everything => "everything",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<RecordKind> {
        RecordKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
