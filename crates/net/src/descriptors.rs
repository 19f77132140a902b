//! The limit on open files and sockets of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Descriptors used by everything but connections: listeners, logs, rules files, the runtime.
const OTHER_DESCRIPTORS: u64 = 64;

/// Raises the soft limit on open files to the hard limit; warns if that is still too low for `connections`.
pub fn raise_descriptor_limit(connections: usize) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let room = match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    let wanted = connections as u64 + OTHER_DESCRIPTORS;
    if room.is_some_and(|room| room < wanted) {
        let descriptors = room.unwrap_or_default();
        warn!(
            descriptors,
            max_connections = connections,
            "the limit on open files is too low for max_connections; raise it (ulimit -Hn)"
        );
    }
}
