//! Which program a server is, and where it is found.

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

    /// What its program is called.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Redis => "redis-server",
            Flavour::Valkey => "valkey-server",
        }
    }

    /// Where its program is. Panics when it is nowhere: a test without its server has nothing to say.
    pub fn program(self) -> PathBuf {
        program::named(self.name())
    }

    /// Whether a program of this name would be found.
    pub fn is_here(self) -> bool {
        program::find(self.name()).is_some()
    }
}
