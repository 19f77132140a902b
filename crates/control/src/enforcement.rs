//! Whether limits are enforced.

/// Whether limits are enforced.
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
    /// All values.
    pub const ALL: [Enforcement; 3] = [Enforcement::Enforce, Enforcement::Shadow, Enforcement::Off];

    /// The name in rows and responses.
    pub const fn name(self) -> &'static str {
        match self {
            Enforcement::Enforce => "enforce",
            Enforcement::Shadow => "shadow",
            Enforcement::Off => "off",
        }
    }

    /// The value of that name.
    pub fn named(name: &str) -> Option<Enforcement> {
        Enforcement::ALL.into_iter().find(|mode| mode.name() == name)
    }
}
