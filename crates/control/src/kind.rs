//! What can be changed.

/// Kinds of things that have an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
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

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 8] = [
        Kind::Rule,
        Kind::Override,
        Kind::RuleMode,
        Kind::Client,
        Kind::Namespace,
        Kind::Token,
        Kind::Mode,
        Kind::Everything,
    ];

    /// Its name in rows and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Rule => "rule",
            Kind::Override => "override",
            Kind::RuleMode => "rule_mode",
            Kind::Client => "client",
            Kind::Namespace => "namespace",
            Kind::Token => "token",
            Kind::Mode => "mode",
            Kind::Everything => "everything",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
