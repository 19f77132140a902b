//! Watches one healthy primary: whether it still has the same data, which nodes use it, its clock and its memory.
//!
//! A decision does not notice lost buckets: an absent bucket is an unused one. So every primary holds an epoch key that
//! is never removed. Its value, the server's run id and its replication id are compared four times a second; if one of
//! them changes, data were lost or may have been, and the log reports it.

use std::sync::Arc;

use tollgate_core::Span;
use tollgate_resp::RespValue;
use tollgate_store::random;
use tracing::{debug, info, warn};

use super::core::PrimaryCore;
use super::memory::MemoryUse;
use super::sweep::Sweep;
use crate::client::connection::parse_time;
use crate::client::failure::ErrorCode;
use crate::client::info::Info;
use crate::client::lineage::Lineage;
use crate::store::stats::increment;

/// Interval between rounds.
const EVERY: Span = Span::from_millis(250);
/// The first round, as soon as there is a connection: a node must know how many nodes share the store before it serves.
const FIRST: Span = Span::from_millis(20);
/// Rounds between heartbeats: one second.
const HEARTBEAT_LOOKS: u64 = 4;
/// Rounds between checks of the eviction policy: one minute.
const RARE_LOOKS: u64 = 240;
/// A node without a heartbeat for this long is gone.
const GONE_AFTER_SECS: u64 = 10;
/// Expiry of the epoch key without nodes: longer than any pause between two nodes of a fleet.
const EPOCH_TTL_MS: &[u8] = b"604800000";
/// Expiry of the list of nodes without nodes.
const NODES_TTL_MS: &[u8] = b"60000";

/// Runs until the primary retires.
pub(super) async fn run(core: Arc<PrimaryCore>) {
    let (mut rounds, mut sweep) = (0, Sweep::default());
    while !core.is_over() {
        core.pause(if rounds == 0 { FIRST } else { EVERY }).await;
        // While the breaker is open, the driver probes.
        if core.is_over() || core.is_open() || !core.is_connected() {
            continue;
        }
        check_lineage(&core).await;
        if rounds % HEARTBEAT_LOOKS == 0 {
            send_heartbeat(&core).await;
            sweep.step(&core).await;
        }
        if rounds % RARE_LOOKS == 0 {
            check_eviction(&core).await;
        }
        rounds += 1;
    }
}

/// Compares the server's data with what was last seen, and reads its clock and memory.
async fn check_lineage(core: &PrimaryCore) {
    let key = core.own_key("epoch");
    let fresh = format!("{:016x}", random::unpredictable());
    let commands: [&[&[u8]]; 3] = [
        &[b"INFO", b"server", b"replication", b"memory"],
        &[b"SET", key.as_bytes(), fresh.as_bytes(), b"PX", EPOCH_TTL_MS, b"NX", b"GET"],
        &[b"TIME"],
    ];
    let sent = core.now();
    let Ok(replies) = core.pipeline(&commands, core.patience()).await else { return };
    let [about, epoch, time] = replies.as_slice() else { return };
    if let Some(time) = parse_time(time) {
        core.observe_time(sent, core.now(), time);
    }
    let Some(about) = Info::of(about) else { return };
    if about.is_replica() || ErrorCode::of(epoch) == Some(ErrorCode::ReadOnly) {
        core.mark_replica();
        return;
    }
    core.mark_primary();
    core.breaker.settle(core.now());
    if let Some(memory) = MemoryUse::of(&about) {
        core.record_memory(memory);
    }
    let epoch = match epoch {
        RespValue::Nil => fresh,
        RespValue::Text(old) => String::from_utf8_lossy(old).into_owned(),
        // The server does not serve the key or refuses writes: nothing is known.
        _ => return,
    };
    let field = |name: &str| about.field(name).unwrap_or_default().to_owned();
    compare(core, &key, Lineage { epoch, run: field("run_id"), history: field("master_replid") });
}

/// Compares with the lineage last seen under this key, on any server.
fn compare(core: &PrimaryCore, key: &str, new: Lineage) {
    let mut seen = core.context.lineages.lock();
    let change = seen.get(key).and_then(|old| old.change_to(&new));
    if change.is_some() || !seen.contains_key(key) {
        seen.insert(key.to_owned(), new);
    }
    drop(seen);
    if let Some(what) = change {
        increment(&core.counters.epoch_changes);
        warn!(store = %core.address(), "{what}");
    }
}

/// Registers this node and counts the registered ones.
async fn send_heartbeat(core: &PrimaryCore) {
    let Some(now) = core.store_time().filter(|_| !core.context.nodes.is_leaving()) else { return };
    let key = core.own_key("nodes");
    let seconds = now.nanos() / Span::SECOND.nanos();
    let (score, gone) = (seconds.to_string(), format!("({}", seconds.saturating_sub(GONE_AFTER_SECS)));
    let me = core.context.id.to_string();
    let commands: [&[&[u8]]; 4] = [
        &[b"ZADD", key.as_bytes(), score.as_bytes(), me.as_bytes()],
        &[b"ZREMRANGEBYSCORE", key.as_bytes(), b"-inf", gone.as_bytes()],
        &[b"ZCARD", key.as_bytes()],
        &[b"PEXPIRE", key.as_bytes(), NODES_TTL_MS],
    ];
    let Ok(replies) = core.pipeline(&commands, core.patience()).await else { return };
    if let Some(RespValue::Integer(nodes @ 1..)) = replies.get(2) {
        core.context.nodes.heard(*nodes as u64, core.now());
    }
}

/// Unregisters this node.
pub(crate) async fn leave(core: &PrimaryCore) {
    let (key, me) = (core.own_key("nodes"), core.context.id.to_string());
    let command: [&[&[u8]]; 1] = [&[b"ZREM", key.as_bytes(), me.as_bytes()]];
    if let Err(why) = core.pipeline(&command, core.patience()).await {
        debug!(store = %core.address(), reason = %why, "unregistering failed: other nodes notice in ten seconds");
    }
}

/// Checks the eviction policy, and renews the epoch key's expiry.
async fn check_eviction(core: &PrimaryCore) {
    let key = core.own_key("epoch");
    let commands: [&[&[u8]]; 2] = [&[b"INFO", b"memory"], &[b"PEXPIRE", key.as_bytes(), EPOCH_TTL_MS]];
    let Ok(replies) = core.pipeline(&commands, core.patience()).await else { return };
    let Some(memory) = replies.first().and_then(Info::of) else { return };
    let policy = memory.field("maxmemory_policy").unwrap_or_default();
    if !core.set_policy(policy) {
        return;
    }
    let bounded = memory.number("maxmemory").is_some_and(|bytes| bytes > 0);
    match (policy, bounded) {
        ("noeviction" | "", _) => {}
        (_, true) => warn!(store = %core.address(), policy, "the store may evict buckets, and so reset limits"),
        (_, false) => {
            info!(store = %core.address(), policy, "the store would evict buckets if its memory were bounded")
        }
    }
}
