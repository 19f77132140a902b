//! How many files and sockets this process may have open at once.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Descriptors beside those of connections: listeners, logs, the rules, the runtime's own.
const OTHERS: u64 = 64;

/// Raises the limit to what the system allows: the usual 1024 are for programs that could not do with more. Warns if that
/// is still too few for `connections`.
pub(crate) fn make_room(connections: usize) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let room = match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    let wanted = connections as u64 + OTHERS;
    if room.is_some_and(|room| room < wanted) {
        let descriptors = room.unwrap_or_default();
        warn!(descriptors, max_connections = connections, "fewer connections fit; raise the limit (ulimit -Hn)");
    }
}
