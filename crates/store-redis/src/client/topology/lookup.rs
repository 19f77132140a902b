//! When the servers are asked for the topology, and how.

use std::time::Duration;

use tokio::time;
use tollgate_resp::RespValue;

use crate::client::address::HostPort;
use crate::client::connection::{RedisConnection, SLOT_MAP_BYTES};
use crate::client::context::RedisContext;
use crate::client::url::Login;

/// Time between two looks, however many ask for one: a store that is away is not helped by more of them.
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// Waits until somebody was sent elsewhere or found nobody, or until it is time to look again anyway.
pub(super) async fn until_topology_changed(context: &RedisContext, at_most: Duration) {
    let _ = time::timeout(at_most, context.topology_changed.notified()).await;
    time::sleep(LOOK_PAUSE).await;
}

/// Connects to a server, asks one thing and leaves.
pub(super) async fn ask_once(
    context: &RedisContext,
    at: &HostPort,
    login: Option<&Login>,
    command: &[&[u8]],
) -> Option<RespValue> {
    let mut connection = RedisConnection::open_bare(context, at, login).await.ok()?;
    time::timeout(context.config.connect_timeout.into(), connection.call_for(command, SLOT_MAP_BYTES)).await.ok()?.ok()
}
