//! What a child process does: fills one candidate, named on the command line, and prints its figures.

use crate::resident::peak;
use crate::{changes, directory, kinds, memory};

/// Fills a candidate. `kind:NAME` and `rules:COUNT` are those of `rules`; other names are those of `memory` and `directory`.
pub fn run(name: &str) -> anyhow::Result<()> {
    let start = peak()?;
    match name.split_once(':') {
        Some(("kind", kind)) => kinds::fill(kind),
        Some(("rules", count)) => changes::fill(count),
        _ if memory::has(name) => memory::fill(name, start),
        _ => directory::fill(name, start),
    }
}
