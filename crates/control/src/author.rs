//! Who changes something.

/// Whoever is behind a change, as authentication says; never taken from a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The token's id, `cli` for somebody at the database itself, `node` for a server by itself.
    pub id: String,
    /// The token's name, for people.
    pub name: String,
}
