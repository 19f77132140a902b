//! Which program a server is, and where it is found.

use std::env;
use std::path::{Path, PathBuf};

/// Where script/setup puts what no package of Debian has.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/bin");

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
        let path = env::var_os("PATH").unwrap_or_default();
        let mut places = std::iter::once(PathBuf::from(TOOLS)).chain(env::split_paths(&path));
        let program = places.find_map(|place| Some(place.join(self.name())).filter(|program| program.is_file()));
        program.unwrap_or_else(|| panic!("{} is not here: script/setup installs it", self.name()))
    }

    /// Whether a program of this name would be found.
    pub fn is_here(self) -> bool {
        let path = env::var_os("PATH").unwrap_or_default();
        Path::new(TOOLS).join(self.name()).is_file()
            || env::split_paths(&path).any(|place| place.join(self.name()).is_file())
    }
}
