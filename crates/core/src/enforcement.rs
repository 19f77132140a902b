//! Whether limits deny requests, only count them, or are ignored.

/// What a refusal by a limit means. Rules, the kill switch of a fleet and single charges share these values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// A refusal denies the request.
    #[default]
    Enforce,
    /// A refusal is counted and reported; the request passes.
    Shadow,
    /// Limits are not evaluated and nothing is charged.
    Off,
}

impl Enforcement {
    /// All values.
    pub const ALL: [Enforcement; 3] = [Enforcement::Enforce, Enforcement::Shadow, Enforcement::Off];

    /// The name in rules, responses, database rows and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Enforcement::Enforce => "enforce",
            Enforcement::Shadow => "shadow",
            Enforcement::Off => "off",
        }
    }

    /// The value of that name.
    pub fn named(name: &str) -> Option<Enforcement> {
        Enforcement::ALL.into_iter().find(|value| value.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_found_by_its_name() {
        for value in Enforcement::ALL {
            assert_eq!(Enforcement::named(value.name()), Some(value));
        }
        assert_eq!(Enforcement::named("on"), None);
    }
}
