//! Whether limits are enforced.

/// Whether limits are enforced at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// As the rules say.
    #[default]
    Enforce,
    /// Every rule is a shadow rule: counted, logged, never denies.
    Shadow,
    /// Everything is allowed, and nothing is counted.
    Off,
}

impl Enforcement {
    /// Every mode.
    pub const ALL: [Enforcement; 3] = [Enforcement::Enforce, Enforcement::Shadow, Enforcement::Off];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Enforcement::Enforce => "enforce",
            Enforcement::Shadow => "shadow",
            Enforcement::Off => "off",
        }
    }

    /// The mode of that name.
    pub fn named(name: &str) -> Option<Enforcement> {
        Enforcement::ALL.into_iter().find(|mode| mode.name() == name)
    }
}
