//! Authors of changes.

/// The author of a change, from authentication; never from a request body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The token's id, `cli` for the command line, `node` for a server, `sql` for a direct write to the tables.
    pub id: String,
    /// The token's name, to be read by people.
    pub name: String,
}
