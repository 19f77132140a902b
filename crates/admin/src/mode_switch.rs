//! The switch between off, shadow and enforce. It takes effect on this node at once, independently of store and database.

use std::fmt;

use parking_lot::Mutex;
use tollgate_control::{Enforcement, Instant};

/// The current mode, and the function that applies it.
pub struct ModeSwitch {
    apply: Box<dyn Fn(Enforcement) + Send + Sync>,
    setting: Mutex<ModeState>,
}

/// A mode, with its time and scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeState {
    /// The mode.
    pub mode: Enforcement,
    /// When it was set.
    pub since: Instant,
    /// Which nodes have it.
    pub scope: ModeScope,
}

/// The nodes that a mode holds for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModeScope {
    /// All nodes on the same database.
    #[default]
    Fleet,
    /// This node only: the database could not be reached.
    Node,
}

impl ModeScope {
    /// Its name in responses.
    pub const fn name(self) -> &'static str {
        match self {
            ModeScope::Fleet => "fleet",
            ModeScope::Node => "node",
        }
    }
}

impl ModeSwitch {
    /// A switch in `enforce`; `apply` is called with every new mode.
    pub fn new(apply: impl Fn(Enforcement) + Send + Sync + 'static) -> ModeSwitch {
        let setting = ModeState { mode: Enforcement::Enforce, since: Instant(0), scope: ModeScope::Fleet };
        ModeSwitch { apply: Box::new(apply), setting: Mutex::new(setting) }
    }

    /// The current setting.
    pub fn setting(&self) -> ModeState {
        *self.setting.lock()
    }

    /// Replaces our own setting by the one that the database stored for it, even if that has an earlier time or is a newer
    /// one of another node.
    pub fn confirm(&self, ours: ModeState, theirs: ModeState) -> ModeState {
        let mut setting = self.setting.lock();
        if *setting == ours {
            if theirs.mode != ours.mode {
                (self.apply)(theirs.mode);
            }
            *setting = theirs;
        }
        *setting
    }

    /// Sets the mode. An older setting never replaces a newer one; an equal one may widen its scope. Returns the setting that
    /// holds afterwards.
    pub fn set(&self, new: ModeState) -> ModeState {
        let mut setting = self.setting.lock();
        if new.since >= setting.since {
            (self.apply)(new.mode); // under the lock: concurrent settings are applied in their order
            *setting = new;
        }
        *setting
    }
}

impl fmt::Debug for ModeSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switchboard").field("setting", &self.setting()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn an_older_setting_never_replaces_a_newer_one() {
        let turned = Arc::new(Mutex::new(Vec::new()));
        let mode_switch = ModeSwitch::new({
            let turned = turned.clone();
            move |mode| turned.lock().push(mode)
        });
        let setting = |mode, since, scope| ModeState { mode, since: Instant(since), scope };
        let off = setting(Enforcement::Off, 20, ModeScope::Node);
        assert_eq!(mode_switch.set(off), off);
        assert_eq!(mode_switch.set(setting(Enforcement::Enforce, 10, ModeScope::Fleet)), off);
        assert_eq!(mode_switch.set(setting(Enforcement::Off, 20, ModeScope::Fleet)).scope, ModeScope::Fleet);
        assert_eq!(*turned.lock(), [Enforcement::Off, Enforcement::Off]);
        let (ours, theirs) =
            (setting(Enforcement::Shadow, 40, ModeScope::Node), setting(Enforcement::Enforce, 30, ModeScope::Fleet));
        mode_switch.set(ours);
        assert_eq!(mode_switch.confirm(ours, theirs), theirs);
        assert_eq!(mode_switch.confirm(ours, off), theirs, "another setting came first");
        assert_eq!(*turned.lock(), [Enforcement::Off, Enforcement::Off, Enforcement::Shadow, Enforcement::Enforce]);
    }
}
