//! Lookups: when the servers are asked for the topology, and how.

use std::time::Duration;

use tokio::time;
use tollgate_resp::RespValue;

use crate::client::address::HostPort;
use crate::client::connection::{RedisConnection, SLOT_MAP_BYTES};
use crate::client::context::RedisContext;
use crate::client::url::Login;

/// Minimum pause between lookups: more of them do not help a store that is down.
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// Waits until a call was redirected or found no server, or until the next regular lookup.
pub(super) async fn until_topology_changed(context: &RedisContext, at_most: Duration) {
    let _ = time::timeout(at_most, context.topology_changed.notified()).await;
    time::sleep(LOOK_PAUSE).await;
}

/// Connects to a server, sends one command and closes the connection.
pub(super) async fn ask_once(
    context: &RedisContext,
    at: &HostPort,
    login: Option<&Login>,
    command: &[&[u8]],
) -> Option<RespValue> {
    let mut connection = RedisConnection::open_bare(context, at, login).await.ok()?;
    time::timeout(context.config.connect_timeout.into(), connection.call_for(command, SLOT_MAP_BYTES)).await.ok()?.ok()
}
