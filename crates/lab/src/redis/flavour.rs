//! The two programs: Redis and Valkey.

use std::path::PathBuf;

use crate::program;

/// The program behind a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// `redis-server`.
    #[default]
    Redis,
    /// `valkey-server`.
    Valkey,
}

impl Flavour {
    /// Both.
    pub const ALL: [Flavour; 2] = [Flavour::Redis, Flavour::Valkey];

    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Redis => "redis-server",
            Flavour::Valkey => "valkey-server",
        }
    }

    /// The path of its program. Panics if it is missing: a test cannot run without its server.
    pub fn program(self) -> PathBuf {
        program::named(self.name())
    }

    /// Whether its program is installed.
    pub fn is_here(self) -> bool {
        program::find(self.name()).is_some()
    }
}
