//! The last word on the mode, in a file of this node: one that was switched off while the database was away must not come
//! back switched on.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tollgate_control::{Enforcement, Instant};
use tollgate_core::Time;
use tollgate_rules::datetime;
use tracing::error;

use tollgate_admin::{ModeScope, ModeState};

/// Where the word is kept; nowhere without a state directory.
#[derive(Clone, Debug)]
pub(crate) struct ModeFile(Option<PathBuf>);

impl ModeFile {
    pub(crate) fn new(state_dir: Option<&Path>) -> ModeFile {
        ModeFile(state_dir.map(|dir| dir.join("mode")))
    }

    /// The word that was kept.
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

    /// Keeps a word. What cannot be kept holds until the next start, and that is said.
    pub(crate) fn keep(&self, word: ModeState) {
        let Some(path) = &self.0 else { return };
        let ModeState { mode, since, scope } = word;
        let told = scope == ModeScope::Fleet;
        let text = json!({"mode": mode.name(), "since": since.to_string(), "told": told}).to_string();
        let beside = path.with_extension("new");
        if let Err(error) = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)) {
            error!(file = %path.display(), %error, "cannot keep the mode: it holds until this node starts again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_outlives_the_process_and_a_broken_file_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let kept = ModeFile::new(Some(dir.path()));
        assert_eq!(kept.read(), None);
        for scope in [ModeScope::Node, ModeScope::Fleet] {
            let word = ModeState { mode: Enforcement::Shadow, since: Instant(1_234_567), scope };
            kept.keep(word);
            assert_eq!(kept.read(), Some(word));
        }
        fs::write(dir.path().join("mode"), "{").unwrap();
        assert_eq!(kept.read(), None);
        ModeFile::new(None).keep(ModeState { mode: Enforcement::Off, since: Instant(1), scope: ModeScope::Node });
    }
}
