//! Finds the programs that tests run.

use std::env;
use std::path::PathBuf;

/// Where script/setup installs what Debian has no package for.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/bin");
/// Where Debian installs servers: only on the PATH of root.
const SERVERS: &str = "/usr/sbin";

/// The path of a program. Panics if it is missing: a test cannot run without its server.
pub fn named(name: &str) -> PathBuf {
    find(name).unwrap_or_else(|| panic!("{name} is not here: script/setup installs it"))
}

/// The path of a program, if it is installed.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = [PathBuf::from(TOOLS)].into_iter().chain(env::split_paths(&path)).chain([PathBuf::from(SERVERS)]);
    places.map(|place| place.join(name)).find(|program| program.is_file())
}
