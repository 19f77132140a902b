//! Query parameters that endpoints accept.

/// One parameter of a query.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: ParameterKind,
    /// What it is for.
    pub help: &'static str,
    /// True if it cannot be left out.
    pub is_required: bool,
}

impl Parameter {
    /// The same, if it cannot be left out.
    pub const fn required(self) -> Parameter {
        Parameter { is_required: true, ..self }
    }
}

/// A parameter that may be left out.
pub const fn parameter(name: &'static str, takes: ParameterKind, help: &'static str) -> Parameter {
    Parameter { name, takes, help, is_required: false }
}

/// The same for any text.
pub const fn text(name: &'static str, help: &'static str) -> Parameter {
    parameter(name, ParameterKind::Text, help)
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// Any text but none.
    Text,
    /// `true` or `false`.
    Flag,
    /// How many entries, 1 to 1000.
    Count,
    /// The number of a generation.
    Generation,
    /// Where the last piece of a list ended.
    Cursor,
    /// A point in time.
    Time,
    /// One of a few words.
    OneOf(&'static [&'static str]),
}

/// The namespace of a call about one.
pub const NAMESPACE: Parameter =
    text("namespace", "Of which namespace. Default: the only one the token is for, or else `default`.");
/// The namespace of a call about several.
pub const NAMESPACES: Parameter = text("namespace", "Of which namespace. Default: all that the token is for.");
/// How much of a list.
pub const LIMIT: Parameter = parameter("limit", ParameterKind::Count, "Most entries; default 100.");
/// Where in a list.
pub const CURSOR: Parameter = parameter("cursor", ParameterKind::Cursor, "`next_cursor` of the piece before.");
/// Only look.
pub const DRY_RUN: Parameter =
    parameter("dry_run", ParameterKind::Flag, "Do everything but change it; answers what would change.");
/// Not before.
pub const FROM: Parameter = parameter("from", ParameterKind::Time, "Not before, such as 2026-12-01T00:00:00Z.");
/// Before.
pub const TO: Parameter = parameter("to", ParameterKind::Time, "Before, such as 2026-12-02T00:00:00Z.");
