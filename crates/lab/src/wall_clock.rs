//! A wall clock that a test can step under a running program: `assets/clockshim.c`, preloaded.
//!
//! libfaketime hangs Debian's Redis, and tests must not set the date of the machine.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::process;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/clockshim.c");

/// The clock of the programs started with it; shows the real time until it is set.
#[derive(Debug)]
pub struct WallClock {
    path: PathBuf,
    file: File,
}

impl WallClock {
    /// A clock with its offset in a file of `directory`.
    pub fn new(directory: &Path) -> WallClock {
        let path = directory.join("clock");
        let file = File::create(&path).expect("a file for the clock");
        let clock = WallClock { path, file };
        clock.set(0);
        clock
    }

    /// Makes the program use this clock.
    pub fn apply(&self, command: &mut Command) {
        command.env("LD_PRELOAD", library()).env("TOLLGATE_CLOCK", &self.path);
    }

    /// Sets it this many seconds ahead of the real time, or behind.
    pub fn set(&self, seconds: i64) {
        let micros = seconds * 1_000_000;
        self.file.write_all_at(&micros.to_ne_bytes(), 0).expect("the clock can be set");
    }
}

/// The shared library, compiled once per process.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let path = process::root().join("clockshim.so");
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&path).arg(SOURCE).output();
        match compiled {
            Ok(output) if output.status.success() => path,
            Ok(output) => panic!("cc: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => panic!("cc does not run ({error}): script/setup installs it"),
        }
    })
}
