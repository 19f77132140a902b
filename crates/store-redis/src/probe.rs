//! Watches one primary while it is well: is it still the same server with the same data, who else uses it, and does its
//! clock run?
//!
//! A decision does not notice that the buckets are gone: an absent bucket is a fresh one. So every primary holds one key
//! of ours that nobody removes; its value, the server's run and its replication history are looked at four times a
//! second. If one of them changes, data were lost, or may have been, and somebody should know.

use std::sync::Arc;

use tollgate_core::Span;
use tollgate_store::random;
use tracing::{debug, info, warn};

use crate::Refusal;
use crate::connection::told_time;
use crate::info::Info;
use crate::primary::core::Core;
use crate::resp::Value;
use crate::room::Memory;
use crate::stats::one;
use crate::sweep::Sweep;

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

/// What tells one life of a server's data from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lineage {
    /// The value of our key.
    epoch: String,
    /// The process.
    run: String,
    /// The history of writes it continues.
    history: String,
}

impl Lineage {
    /// What has happened between the two; `None` if nothing has.
    fn change_to(&self, new: &Lineage) -> Option<&'static str> {
        match (self.epoch != new.epoch, self.run != new.run, self.history != new.history) {
            (false, false, false) => None,
            (true, false, _) => Some("the store was emptied: limits start anew"),
            (true, true, _) => Some("the store was restarted or replaced without its data: limits start anew"),
            (false, true, false) => Some("the store was restarted with its data"),
            (false, true, true) => Some("another server has taken over, with the data it had copied"),
            (false, false, true) => Some("the store continues another history of writes: it may lack the last ones"),
        }
    }
}

/// Looks until the primary retires.
pub(crate) async fn watch(core: Arc<Core>) {
    let (mut looks, mut sweep) = (0, Sweep::default());
    while !core.is_over() {
        core.pause(if looks == 0 { FIRST } else { EVERY }).await;
        // While the breaker is open, the driver probes: two would be one too many.
        if core.is_over() || core.is_open() || !core.is_connected() {
            continue;
        }
        look(&core).await;
        if looks % HEARTBEAT_LOOKS == 0 {
            beat(&core).await;
            sweep.step(&core).await;
        }
        if looks % RARE_LOOKS == 0 {
            look_rarely(&core).await;
        }
        looks += 1;
    }
}

/// Is it the same server with the same data, and what time is it there?
async fn look(core: &Core) {
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
    if let Some(time) = told_time(time) {
        core.observe_time(sent, core.now(), time);
    }
    let Some(about) = Info::of(about) else { return };
    if about.is_replica() || Refusal::of(epoch) == Some(Refusal::ReadOnly) {
        core.is_a_replica();
        return;
    }
    core.is_a_primary();
    if let Some(memory) = Memory::of(&about) {
        core.sampled_memory(memory);
    }
    let epoch = match epoch {
        Value::Nil => fresh,
        Value::Text(old) => String::from_utf8_lossy(old).into_owned(),
        // The key is not this server's, or it takes no writes: nothing can be said.
        _ => return,
    };
    let field = |name: &str| about.field(name).unwrap_or_default().to_owned();
    compare(core, &key, Lineage { epoch, run: field("run_id"), history: field("master_replid") });
}

/// Compares with what was seen last under this key, on whatever server.
fn compare(core: &Core, key: &str, new: Lineage) {
    let mut seen = core.shared.lineages.lock();
    let change = seen.get(key).and_then(|old| old.change_to(&new));
    if change.is_some() || !seen.contains_key(key) {
        seen.insert(key.to_owned(), new);
    }
    drop(seen);
    if let Some(what) = change {
        one(&core.counters.epoch_changes);
        warn!(store = %core.address(), "{what}");
    }
}

/// Says that this node lives, and counts those that do.
async fn beat(core: &Core) {
    let Some(now) = core.store_time().filter(|_| !core.shared.nodes.is_leaving()) else { return };
    let key = core.own_key("nodes");
    let seconds = now.nanos() / Span::SECOND.nanos();
    let (score, gone) = (seconds.to_string(), format!("({}", seconds.saturating_sub(GONE_AFTER_SECS)));
    let me = core.shared.id.to_string();
    let commands: [&[&[u8]]; 4] = [
        &[b"ZADD", key.as_bytes(), score.as_bytes(), me.as_bytes()],
        &[b"ZREMRANGEBYSCORE", key.as_bytes(), b"-inf", gone.as_bytes()],
        &[b"ZCARD", key.as_bytes()],
        &[b"PEXPIRE", key.as_bytes(), NODES_TTL_MS],
    ];
    let Ok(replies) = core.pipeline(&commands, core.patience()).await else { return };
    if let Some(Value::Integer(nodes @ 1..)) = replies.get(2) {
        core.shared.nodes.heard(*nodes as u64, core.now());
    }
}

/// Says that this node leaves.
pub(crate) async fn leave(core: &Core) {
    let (key, me) = (core.own_key("nodes"), core.shared.id.to_string());
    let command: [&[&[u8]]; 1] = [&[b"ZREM", key.as_bytes(), me.as_bytes()]];
    if let Err(why) = core.pipeline(&command, core.patience()).await {
        debug!(store = %core.address(), reason = %why, "the other nodes notice in ten seconds that this one has left");
    }
}

/// What rarely changes: whether it may evict buckets; and the key of the epoch must not run out.
async fn look_rarely(core: &Core) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lineage(epoch: &str, run: &str, history: &str) -> Lineage {
        Lineage { epoch: epoch.into(), run: run.into(), history: history.into() }
    }

    #[test]
    fn every_change_is_told_as_what_it_is() {
        let old = lineage("e", "r", "h");
        let told = |epoch, run, history| old.change_to(&lineage(epoch, run, history));
        assert_eq!(told("e", "r", "h"), None);
        assert!(told("E", "r", "h").unwrap().contains("emptied"));
        assert!(told("E", "R", "H").unwrap().contains("without its data"));
        assert!(told("e", "R", "h").unwrap().contains("restarted with its data"));
        assert!(told("e", "R", "H").unwrap().contains("another server"));
        assert!(told("e", "r", "H").unwrap().contains("another history"));
    }
}
