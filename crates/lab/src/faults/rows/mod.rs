//! The rows, by what breaks.

mod clocks;
mod cluster;
mod crowds;
mod data;
mod fleet;
mod network;
mod observe;
mod processes;
mod refusals;
mod reservations;
mod sentinels;
mod starved;

use super::Speed::{Fast, Slow};
use super::{FaultRow, Lab, RowResult, Speed};

const fn row(id: &'static str, speed: Speed, title: &'static str, run: fn(Lab) -> RowResult) -> FaultRow {
    FaultRow { id, title, speed, run }
}

/// Every row, in the order of the matrix.
pub const ROWS: &[FaultRow] = &[
    row("F1", Fast, "Redis killed under load", processes::redis_kill),
    row("F2", Fast, "Redis back, empty", processes::redis_back_empty),
    row("F3", Fast, "Redis halted for 3 s", processes::redis_halted_shortly),
    row("F3-long", Slow, "Redis halted for 30 s", processes::redis_halted_long),
    row("F4", Fast, "replies late by 5 and 20 ms, with patience", network::late_in_time),
    row("F4-default", Slow, "replies late by 5 and 20 ms, without", network::late_by_default),
    row("F4-late", Fast, "replies late by 100 and 1000 ms", network::too_late),
    row("F5", Fast, "replies late by 0 to 200 ms at random, for 4 s", network::jitter_shortly),
    row("F5-long", Slow, "replies late by 0 to 200 ms at random, for 60 s", network::jitter_long),
    row("F6", Fast, "replies lost, requests executed", network::replies_lost),
    row("F7", Fast, "black hole", network::black_hole),
    row("F8", Fast, "reset in the middle of replies", network::reset_mid_reply),
    row("F9", Fast, "one byte per second", network::trickle),
    row("F10", Fast, "connections refused", network::refused),
    row("F12", Fast, "node killed with slots and leases", processes::node_killed),
    row("F14", Slow, "Sentinel failover, primary halted", sentinels::failover),
    row("F15", Slow, "split brain: the old primary goes on", sentinels::split_brain),
    row("F16", Slow, "replica stale at promotion", sentinels::stale_replica),
    row("F17", Slow, "cluster: a primary killed", cluster::primary_killed),
    row("F18", Slow, "cluster: a shard gone", cluster::shard_gone),
    row("F20", Slow, "cluster: in the minority", cluster::minority),
    row("F21", Fast, "FLUSHALL under load", data::flushed),
    row("F22", Fast, "SCRIPT FLUSH every 100 ms", data::scripts_flushed),
    row("F23", Fast, "out of memory, noeviction", refusals::out_of_memory),
    row("F24", Fast, "a policy that evicts", refusals::evicting),
    row("F26", Fast, "too few replicas", refusals::no_replicas),
    row("F27", Fast, "busy with another client's script", refusals::busy),
    row("F28", Fast, "loading its data", data::loading),
    row("F29", Fast, "password changed", refusals::password_changed),
    row("F30", Fast, "too many clients", refusals::too_many_clients),
    row("F33", Slow, "store clock back by an hour, by two days", clocks::back),
    row("F34", Fast, "store clock ahead by an hour, to 2106", clocks::ahead),
    row("F35", Slow, "cluster: clocks 5 s apart, then failover", clocks::apart),
    row("F36", Fast, "node clocks a day off", clocks::of_nodes),
    row("F57", Fast, "flood of new keys for 4 s", crowds::flood_shortly),
    row("F57-long", Slow, "flood of new keys for 60 s", crowds::flood_long),
    row("F59", Slow, "5,000 clients wake at the end of a window", crowds::herd),
    row("F59-busy", Slow, "busy loops beside the nodes and Redis", starved::busy),
    row("F60", Fast, "nodes come and go", processes::rolling),
    row("R1", Fast, "reservations: usage, history and logs agree", reservations::calm),
    row("R2", Fast, "reservations: Redis halted for 1.5 s", reservations::redis_paused),
    row("R2-long", Slow, "the same among 10,000 reservations", reservations::redis_paused_among_many),
    row("R3", Fast, "reservations: Redis killed, back with its data", reservations::redis_killed),
    row("R3-long", Slow, "the same among 10,000 reservations", reservations::redis_killed_among_many),
    row("R4", Fast, "reservations: one of two nodes killed", reservations::node_killed),
    row("R5", Slow, "reservations: Sentinel failover", reservations::failover),
    row("R5-long", Slow, "the same among 10,000 reservations", reservations::failover_among_many),
    row("R6", Fast, "reservations: the month ends", reservations::month_ends),
    row("fleet-short", Fast, "5 nodes, 64 callers, random faults for 10 s", fleet::shortly),
    row("fleet", Slow, "5 nodes, 64 callers, random faults for 60 s", fleet::a_minute),
];
