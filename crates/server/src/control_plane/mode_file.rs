//! The last mode in a file of this node: a node that was switched off while the database was away must not restart
//! enforcing.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tollgate_control::{Enforcement, Instant};
use tollgate_core::Time;
use tollgate_rules::datetime;
use tracing::error;

use tollgate_admin::{ModeScope, ModeState};

/// The path of the file; `None` without a state directory.
#[derive(Clone, Debug)]
pub(crate) struct ModeFile(Option<PathBuf>);

impl ModeFile {
    pub(crate) fn new(state_dir: Option<&Path>) -> ModeFile {
        ModeFile(state_dir.map(|dir| dir.join("mode")))
    }

    /// Reads the mode; `None` if the file is missing or malformed.
    pub(crate) fn read(&self) -> Option<ModeState> {
        let value: Value = serde_json::from_str(&fs::read_to_string(self.0.as_ref()?).ok()?).ok()?;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let since = Instant::from(Time::from_nanos(datetime::parse(text("since")?).ok()?));
        let scope = match value.get("told").and_then(Value::as_bool)? {
            true => ModeScope::Fleet,
            false => ModeScope::Node,
        };
        Some(ModeState { mode: Enforcement::named(text("mode")?)?, since, scope })
    }

    /// Writes the mode. If that fails, logs that the mode is lost at a restart.
    pub(crate) fn write(&self, setting: ModeState) {
        let Some(path) = &self.0 else { return };
        let ModeState { mode, since, scope } = setting;
        let told = scope == ModeScope::Fleet;
        let text = json!({"mode": mode.name(), "since": since.to_string(), "told": told}).to_string();
        let temporary = path.with_extension("new");
        if let Err(error) = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, path)) {
            error!(file = %path.display(), %error, "cannot write the mode: it is lost when this node restarts");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_outlives_the_process_and_a_malformed_file_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let mode_file = ModeFile::new(Some(dir.path()));
        assert_eq!(mode_file.read(), None);
        for scope in [ModeScope::Node, ModeScope::Fleet] {
            let setting = ModeState { mode: Enforcement::Shadow, since: Instant(1_234_567), scope };
            mode_file.write(setting);
            assert_eq!(mode_file.read(), Some(setting));
        }
        fs::write(dir.path().join("mode"), "{").unwrap();
        assert_eq!(mode_file.read(), None);
        ModeFile::new(None).write(ModeState { mode: Enforcement::Off, since: Instant(1), scope: ModeScope::Node });
    }
}
