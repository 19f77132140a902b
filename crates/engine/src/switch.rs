//! The kill switch: what a node does with its limits, whatever the rules say.

use std::sync::atomic::{AtomicU8, Ordering};

/// What an engine does with the limits that its rules set. Turning it needs neither store nor database, and holds from
/// the next decision on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Switch {
    /// Rules are enforced.
    #[default]
    Enforce,
    /// Every rule is taken for a shadow rule: it decides and is counted, and never denies. Who is exempt from what stays
    /// as the rules have it, so that what is counted is what would have been enforced.
    Shadow,
    /// No rule is asked, nothing is charged, the store is left alone. Whatever can be read is allowed.
    Off,
}

impl Switch {
    /// Every position.
    pub const ALL: [Switch; 3] = [Switch::Enforce, Switch::Shadow, Switch::Off];

    /// Its name in answers, rows and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Switch::Enforce => "enforce",
            Switch::Shadow => "shadow",
            Switch::Off => "off",
        }
    }

    /// The position of that name.
    pub fn named(name: &str) -> Option<Switch> {
        Switch::ALL.into_iter().find(|switch| switch.name() == name)
    }
}

/// The position of one engine. Nothing else hangs on it, so no decision waits for anything but the byte.
#[derive(Debug, Default)]
pub(crate) struct Lever(AtomicU8);

impl Lever {
    #[inline]
    pub(crate) fn get(&self) -> Switch {
        match self.0.load(Ordering::Relaxed) {
            0 => Switch::Enforce,
            1 => Switch::Shadow,
            _ => Switch::Off,
        }
    }

    pub(crate) fn set(&self, switch: Switch) {
        self.0.store(switch as u8, Ordering::Relaxed);
    }
}
