//! Query parameters that endpoints accept.

/// A query parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The values that it accepts.
    pub takes: ParameterKind,
    /// Its description.
    pub help: &'static str,
    /// True if it is required.
    pub is_required: bool,
}

impl Parameter {
    /// Makes it required.
    pub const fn required(self) -> Parameter {
        Parameter { is_required: true, ..self }
    }
}

/// An optional parameter.
pub const fn parameter(name: &'static str, takes: ParameterKind, help: &'static str) -> Parameter {
    Parameter { name, takes, help, is_required: false }
}

/// An optional parameter with a non-empty string.
pub const fn text(name: &'static str, help: &'static str) -> Parameter {
    parameter(name, ParameterKind::Text, help)
}

/// The values that a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A non-empty string.
    Text,
    /// `true` or `false`.
    Flag,
    /// A number of entries, 1 to 1000.
    Count,
    /// The number of a generation.
    Generation,
    /// `next_cursor` of the page before.
    Cursor,
    /// A timestamp.
    Time,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// The namespace of a call about one.
pub const NAMESPACE: Parameter =
    text("namespace", "Of which namespace. Default: the only one the token is for, or else `default`.");
/// The namespace of a call about several.
pub const NAMESPACES: Parameter = text("namespace", "Of which namespace. Default: all that the token is for.");
/// The size of a page.
pub const LIMIT: Parameter = parameter("limit", ParameterKind::Count, "Most entries; default 100.");
/// The start of a page.
pub const CURSOR: Parameter = parameter("cursor", ParameterKind::Cursor, "`next_cursor` of the piece before.");
/// Reports the changes without making them.
pub const DRY_RUN: Parameter =
    parameter("dry_run", ParameterKind::Flag, "Do everything but change it; answers what would change.");
/// Start of a time range.
pub const FROM: Parameter = parameter("from", ParameterKind::Time, "Not before, such as 2026-12-01T00:00:00Z.");
/// End of a time range.
pub const TO: Parameter = parameter("to", ParameterKind::Time, "Before, such as 2026-12-02T00:00:00Z.");
