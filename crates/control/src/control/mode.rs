//! The switch that all nodes of a fleet follow, and where the tables stand.

use super::{Control, not_yet};
use crate::{Author, Instant, Result};

/// Whether limits are enforced at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// As the rules say.
    #[default]
    Enforce,
    /// Every rule is a shadow rule: counted, logged, never denies.
    Shadow,
    /// Everything is allowed, and nothing is counted.
    Off,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 3] = [Mode::Enforce, Mode::Shadow, Mode::Off];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Enforce => "enforce",
            Mode::Shadow => "shadow",
            Mode::Off => "off",
        }
    }

    /// The mode of that name.
    pub fn named(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// Where the tables stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The last generation.
    pub generation: i64,
    /// The mode that all nodes should follow.
    pub mode: Mode,
    /// When it was set.
    pub mode_since: Instant,
}

impl Control {
    /// Where the tables stand; one small read.
    pub async fn state(&self) -> Result<State> {
        not_yet()
    }

    /// Sets the mode of the fleet, with an audit row. `since` is when somebody said so: an older word never replaces a
    /// newer one.
    pub async fn set_mode(&self, _mode: Mode, _since: Instant, _author: &Author) -> Result<State> {
        not_yet()
    }
}
