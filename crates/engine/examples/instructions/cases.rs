//! The cases, and their list for `script/bench instructions`, which counts the instructions of each.

use std::error::Error;
use std::io::Write as _;

/// One case.
pub struct CountedCase {
    /// Its name on the command line.
    pub name: &'static str,
    /// What a round does.
    pub title: &'static str,
    /// Rounds of a run.
    pub rounds: u64,
    /// The case that it is compared with; `-` for none.
    pub base: &'static str,
}

/// Prints a line for each case: name, rounds, the case that it is compared with, title.
pub fn list(cases: &[CountedCase]) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for CountedCase { name, title, rounds, base } in cases {
        writeln!(out, "{name} {rounds} {base} {title}")?;
    }
    Ok(())
}
