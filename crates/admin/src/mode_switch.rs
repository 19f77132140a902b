//! The switch between off, shadow and enforce: turned here at once, whatever store and database do, and told to the
//! fleet if that can be told.

use std::fmt;

use parking_lot::Mutex;
use tollgate_control::{Enforcement, Instant};

/// Where the switch stands, and what it turns.
pub struct ModeSwitch {
    turn: Box<dyn Fn(Enforcement) + Send + Sync>,
    setting: Mutex<ModeState>,
}

/// Where the switch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeState {
    /// How.
    pub mode: Enforcement,
    /// Since when.
    pub since: Instant,
    /// Who stands so.
    pub scope: ModeScope,
}

/// For whom a mode holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModeScope {
    /// For all nodes on the same database.
    #[default]
    Fleet,
    /// For this one alone: nobody else could be told.
    Node,
}

impl ModeScope {
    /// Its name in answers.
    pub const fn name(self) -> &'static str {
        match self {
            ModeScope::Fleet => "fleet",
            ModeScope::Node => "node",
        }
    }
}

impl ModeSwitch {
    /// A switch that enforces, and turns what `turn` turns.
    pub fn new(turn: impl Fn(Enforcement) + Send + Sync + 'static) -> ModeSwitch {
        let setting = ModeState { mode: Enforcement::Enforce, since: Instant(0), scope: ModeScope::Fleet };
        ModeSwitch { turn: Box::new(turn), setting: Mutex::new(setting) }
    }

    /// Where it stands.
    pub fn setting(&self) -> ModeState {
        *self.setting.lock()
    }

    /// What the fleet made of a word that was given here: it is taken for it, even if the fleet dates it earlier, or
    /// has heard a newer one.
    pub fn confirm(&self, ours: ModeState, theirs: ModeState) -> ModeState {
        let mut setting = self.setting.lock();
        if *setting == ours {
            if theirs.mode != ours.mode {
                (self.turn)(theirs.mode);
            }
            *setting = theirs;
        }
        *setting
    }

    /// Turns it. An older word never replaces a newer one; the same word again may come from a wider circle. Answers
    /// where it stands afterwards.
    pub fn set(&self, new: ModeState) -> ModeState {
        let mut setting = self.setting.lock();
        if new.since >= setting.since {
            (self.turn)(new.mode); // under the lock: two words turn it in the order in which they count
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
    fn an_older_word_never_replaces_a_newer_one() {
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
        assert_eq!(mode_switch.confirm(ours, off), theirs, "somebody else was faster");
        assert_eq!(*turned.lock(), [Enforcement::Off, Enforcement::Off, Enforcement::Shadow, Enforcement::Enforce]);
    }
}
