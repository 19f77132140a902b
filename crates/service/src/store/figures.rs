//! Statistics of the store and the fleet as metric figures.

use tollgate_store::{Fleet, FleetStats, Store};
use tollgate_store_redis::breaker::Phase;
use tollgate_store_redis::stats::Distribution as Counted;
use tollgate_store_redis::{Health, PrimaryStats, RedisStats, RedisStore, SlotStats};

use super::{DifferingNodes, SecretAgreement};
use tollgate_telemetry::{HistogramFigures, NodeFigures, ShardFigures, ShardState, StoreFigures};

pub(super) fn of(fleet: &Fleet<RedisStore>, agreement: SecretAgreement, differing: DifferingNodes) -> StoreFigures {
    let RedisStats { slots, primaries, .. } = fleet.inner().stats();
    let SlotStats { overflowed, split, undone, overcharged } = slots;
    let shards = primaries.into_iter().map(shard).collect();
    let (nodes, own) = (fleet.nodes(), own(&fleet.stats()));
    let secret_mismatch = agreement != SecretAgreement::Together;
    let other_rules = differing.nodes;
    StoreFigures { shards, nodes, secret_mismatch, other_rules, overflowed, split, undone, overcharged, own }
}

pub(super) fn state(phase: Phase) -> ShardState {
    match phase {
        Phase::Closed => ShardState::Up,
        Phase::Recovering => ShardState::Recovering,
        Phase::Open => ShardState::Down,
    }
}

fn shard((health, stats): (Health, PrimaryStats)) -> ShardFigures {
    let others = [
        ("indeterminate", stats.indeterminate),
        ("expired", stats.expired),
        ("saturated", stats.saturated),
        ("turned_away", stats.turned_away),
        ("own_delay", stats.own_delays),
    ];
    // A server has many error words; most never occur.
    let errors = stats.errors.iter().filter(|(_, count)| *count > 0).copied();
    ShardFigures {
        address: health.address.to_string(),
        state: state(health.phase),
        openings: stats.openings,
        transitions: stats.transitions,
        connects: stats.connects,
        connect_failures: stats.connect_failures,
        broken: stats.broken,
        calls: stats.script_calls,
        checks: stats.requests,
        resent: stats.resent,
        reloads: stats.reloads,
        errors: others.into_iter().chain(errors).collect(),
        epoch_changes: stats.epoch_changes,
        clock_steps: stats.clock_steps,
        waiting: stats.waiting,
        latency: distribution(&stats.latency, 1e6),
        batches: distribution(&stats.batches, 1.0),
    }
}

/// Converts a distribution to a unit that is `scale` times as large. Divides, because then 50 µs are exactly 0.00005 s.
fn distribution(counted: &Counted, scale: f64) -> HistogramFigures {
    let Counted { buckets, above, sum, count } = counted;
    let bounds = buckets.iter().map(|(bound, count)| (*bound as f64 / scale, *count));
    HistogramFigures {
        sum: *sum as f64 / scale,
        count: *count,
        buckets: bounds.chain([(f64::INFINITY, *above)]).collect(),
    }
}

fn own(stats: &FleetStats) -> NodeFigures {
    NodeFigures {
        leases: stats.leases as u64,
        units_held: stats.lease_held,
        grants: stats.lease_grants,
        units_granted: stats.lease_granted,
        units_spent: stats.lease_spent,
        units_returned: stats.lease_returned,
        units_stranded: stats.lease_stranded,
        deny_cache_hits: stats.by_deny_cache,
        deny_cache_entries: stats.deny_entries as u64,
        async_pending: stats.async_pending,
        async_excess: stats.async_excess,
        calls: stats.inner_calls,
    }
}
