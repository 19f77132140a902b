//! A temporary directory for every test, and the binary run in it.

pub mod transcript;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A new directory with `examples/` and the files of `tests/fixtures`; removed when dropped.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new(name: &str) -> Dir {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir); // left by a run that was killed
        fs::create_dir_all(dir.join("examples")).unwrap();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        copy_files(&here.join("tests/fixtures"), &dir);
        copy_files(&here.join("../../examples"), &dir.join("examples"));
        Dir(dir)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    #[allow(dead_code, reason = "not every test binary writes files")]
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// The binary, in this directory, with an empty environment.
    pub fn tollgate(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.current_dir(&self.0).env_clear().env("COLUMNS", "100").stdin(Stdio::null());
        command
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Splits a line into words as a shell does: quotes group, nothing else is special.
#[allow(dead_code, reason = "not every test binary splits lines")]
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut word) = (Vec::new(), None, None::<String>);
    for letter in line.chars() {
        match (quote, letter) {
            (None, ' ') => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), letter) if open == letter => quote = None,
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
