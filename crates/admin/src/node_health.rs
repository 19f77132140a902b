//! How what a node depends on is: its database, and the servers of a shared store.

/// The state of a store server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreServer {
    /// Its address.
    pub address: String,
    /// `up`, `recovering` or `down`.
    pub state: &'static str,
}

/// The state of the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DatabaseHealth {
    /// No database is configured.
    #[default]
    Off,
    /// The last access succeeded.
    Up,
    /// The last access failed with this error.
    Away(String),
}

impl DatabaseHealth {
    /// Its name in responses.
    pub const fn name(&self) -> &'static str {
        match self {
            DatabaseHealth::Off => "off",
            DatabaseHealth::Up => "up",
            DatabaseHealth::Away(_) => "away",
        }
    }
}
