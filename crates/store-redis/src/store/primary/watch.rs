//! Watches one primary while it is well: is it still the same server with the same data, who else uses it, and does its
//! clock run?
//!
//! A decision does not notice that the buckets are gone: an absent bucket is a fresh one. So every primary holds one key
//! of ours that nobody removes; its value, the server's run and its replication history are looked at four times a
//! second. If one of them changes, data were lost, or may have been, and somebody should know.

use std::sync::Arc;

use tollgate_core::Span;
use tollgate_resp::RespValue;
use tollgate_store::random;
use tracing::{debug, info, warn};

use super::core::PrimaryCore;
use super::memory::MemoryUse;
use super::sweep::Sweep;
use crate::client::connection::parse_time;
use crate::client::failure::Refusal;
use crate::client::info::Info;
use crate::client::lineage::Lineage;
use crate::store::stats::increment;

/// Between looks.
const EVERY: Span = Span::from_millis(250);
/// The first look, as soon as there is a connection: a node must know whom it shares with before it serves.
const FIRST: Span = Span::from_millis(20);
/// Looks between heartbeats: one second.
const HEARTBEAT_LOOKS: u64 = 4;
/// Looks between looks at what rarely changes: one minute.
const RARE_LOOKS: u64 = 240;
/// A node that has not been heard of for so long is gone.
const GONE_AFTER_SECS: u64 = 10;
/// How long the key of the epoch lives without us: longer than any pause between two nodes of one fleet.
const EPOCH_TTL_MS: &[u8] = b"604800000";
/// How long the list of nodes lives without any.
const NODES_TTL_MS: &[u8] = b"60000";

/// Looks until the primary retires.
pub(super) async fn run(core: Arc<PrimaryCore>) {
    let (mut rounds, mut sweep) = (0, Sweep::default());
    while !core.is_over() {
        core.pause(if rounds == 0 { FIRST } else { EVERY }).await;
        // While the breaker is open, the driver probes: two would be one too many.
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

/// Is it the same server with the same data, and what time is it there?
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
    if about.is_replica() || Refusal::of(epoch) == Some(Refusal::ReadOnly) {
        core.mark_replica();
        return;
    }
    core.mark_primary();
    if let Some(memory) = MemoryUse::of(&about) {
        core.record_memory(memory);
    }
    let epoch = match epoch {
        RespValue::Nil => fresh,
        RespValue::Text(old) => String::from_utf8_lossy(old).into_owned(),
        // The key is not this server's, or it takes no writes: nothing can be said.
        _ => return,
    };
    let field = |name: &str| about.field(name).unwrap_or_default().to_owned();
    compare(core, &key, Lineage { epoch, run: field("run_id"), history: field("master_replid") });
}

/// Compares with what was seen last under this key, on whatever server.
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

/// Says that this node lives, and counts those that do.
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

/// Says that this node leaves.
pub(crate) async fn leave(core: &PrimaryCore) {
    let (key, me) = (core.own_key("nodes"), core.context.id.to_string());
    let command: [&[&[u8]]; 1] = [&[b"ZREM", key.as_bytes(), me.as_bytes()]];
    if let Err(why) = core.pipeline(&command, core.patience()).await {
        debug!(store = %core.address(), reason = %why, "the other nodes notice in ten seconds that this one has left");
    }
}

/// What rarely changes: whether it may evict buckets; and the key of the epoch must not run out.
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
