//! Where the programs are that tests run.

use std::env;
use std::path::PathBuf;

/// Where script/setup puts what no package of Debian has.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/bin");
/// Where Debian puts servers, which is on the PATH of root alone.
const SERVERS: &str = "/usr/sbin";

/// Where a program is. Panics when it is nowhere: a test without its server has nothing to say.
pub fn named(name: &str) -> PathBuf {
    find(name).unwrap_or_else(|| panic!("{name} is not here: script/setup installs it"))
}

/// Where a program is, if anywhere.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = [PathBuf::from(TOOLS)].into_iter().chain(env::split_paths(&path)).chain([PathBuf::from(SERVERS)]);
    places.map(|place| place.join(name)).find(|program| program.is_file())
}
