//! Whether limits are enforced.

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
