//! What can be changed.

/// Kinds of things that have an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// A rule.
    Rule,
    /// An override.
    Override,
    /// The mode that holds instead of a rule's own.
    RuleMode,
    /// A client.
    Client,
    /// Settings of a namespace.
    Namespace,
    /// A token.
    Token,
    /// The switch between off, shadow and enforce.
    Mode,
    /// Everything: somebody changed tables by hand and asks all nodes to read them anew.
    Everything,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [RecordKind; 8] = [
        RecordKind::Rule,
        RecordKind::Override,
        RecordKind::RuleMode,
        RecordKind::Client,
        RecordKind::Namespace,
        RecordKind::Token,
        RecordKind::Mode,
        RecordKind::Everything,
    ];

    /// Its name in rows and answers.
    pub const fn name(self) -> &'static str {
        match self {
            RecordKind::Rule => "rule",
            RecordKind::Override => "override",
            RecordKind::RuleMode => "rule_mode",
            RecordKind::Client => "client",
            RecordKind::Namespace => "namespace",
            RecordKind::Token => "token",
            RecordKind::Mode => "mode",
            RecordKind::Everything => "everything",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<RecordKind> {
        RecordKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
