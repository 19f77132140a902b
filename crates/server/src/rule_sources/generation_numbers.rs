//! The highest generation number of this node, in a file: numbers only grow, even over restarts.
//!
//! Numbers follow the database, and run ahead of it where a rules file changed in between. A restarted node that used
//! the database's number alone would give one number to two generations.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tracing::error;

/// Assigns generation numbers.
#[derive(Debug, Default)]
pub(super) struct GenerationNumbers {
    file: Option<PathBuf>,
    /// The highest number of the previous process, until this one has a generation.
    before: u64,
}

impl GenerationNumbers {
    /// Continues the numbers in a directory. An unreadable file is ignored.
    pub(super) fn open(directory: &Path) -> GenerationNumbers {
        let file = directory.join("generation");
        let before = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        GenerationNumbers { file: Some(file), before }
    }

    /// The number of the next generation: at least `at_least`, the number of the database, and above `last`. Written
    /// before it is used: a crash in between skips a number, and repeats none.
    pub(super) fn next(&mut self, last: u64, at_least: u64) -> u64 {
        let after_restart = if self.before > at_least { self.before.saturating_add(1) } else { 0 };
        let number = last.saturating_add(1).max(at_least).max(after_restart);
        self.before = 0;
        if let Some(file) = &self.file
            && let Err(error) = write(file, number)
        {
            error!(file = %file.display(), %error, "cannot write the generation: it may decrease after a restart");
        }
        number
    }
}

fn write(file: &Path, number: u64) -> std::io::Result<()> {
    let temporary = file.with_extension("new");
    let mut new = fs::File::create(&temporary)?;
    writeln!(new, "{number}")?;
    fs::rename(&temporary, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_only_grow_over_restarts() {
        let dir = tempfile::tempdir().unwrap();
        let start = || GenerationNumbers::open(dir.path());
        let mut numbers = start();
        assert_eq!(numbers.next(0, 3), 3, "the database's number");
        assert_eq!(numbers.next(3, 3), 4, "a file changed");
        assert_eq!(start().next(0, 3), 5, "not 3 again, and not 4 for what may be something else");
        assert_eq!(start().next(0, 9), 9, "the database's, once that has passed");
        assert_eq!(start().next(0, 9), 9, "nothing changed");
        assert_eq!(start().next(0, 0), 10, "without a database too");
    }

    #[test]
    fn an_unwritable_or_malformed_file_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("generation"), "seven").unwrap();
        assert_eq!(GenerationNumbers::open(dir.path()).next(0, 0), 1);
        assert_eq!(GenerationNumbers::open(&dir.path().join("absent")).next(0, 0), 1);
        assert_eq!(GenerationNumbers::default().next(6, 0), 7);
    }
}
