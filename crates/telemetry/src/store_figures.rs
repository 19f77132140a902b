//! Figures of a shared store and of this node in the fleet, as metrics show them. Labels are the number of a shard, its
//! address and the class of an error, so the number of series follows the number of servers.

use std::fmt;

use tollgate_store::MemoryStats;

use crate::histogram::HistogramFigures;
use crate::page::{MetricFamilies, MetricsPage};

/// A shared store, as this node sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreFigures {
    /// Every primary server.
    pub shards: Vec<ShardFigures>,
    /// Nodes that share the buckets, as far as is known.
    pub nodes: Option<u64>,
    /// True if other nodes use the store with another secret and do not share counts with this one.
    pub secret_mismatch: bool,
    /// Nodes that share the store and decide by other rules than this one.
    pub other_rules: Vec<String>,
    /// Charges that went to an overflow bucket, because their namespace had made too many buckets.
    pub overflowed: u64,
    /// Requests that one slot refused after another had charged them.
    pub split: u64,
    /// Charges refunded for it.
    pub undone: u64,
    /// Charges that could not be refunded.
    pub overcharged: u64,
    /// Local state of this node.
    pub own: NodeFigures,
}

/// One primary server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardFigures {
    /// Its address.
    pub address: String,
    /// Whether it is used.
    pub state: ShardState,
    /// Times the breaker opened.
    pub openings: u64,
    /// How often each state began, in the order of [`ShardState::ALL`].
    pub transitions: [u64; 3],
    /// Attempts to connect.
    pub connects: u64,
    /// Failed attempts.
    pub connect_failures: u64,
    /// Broken connections.
    pub broken: u64,
    /// Script calls sent.
    pub calls: u64,
    /// Checks decided by script calls.
    pub checks: u64,
    /// Calls sent again, because the first was proven not to have been executed.
    pub resent: u64,
    /// Scripts reloaded, because the server had lost them.
    pub reloads: u64,
    /// Failures by class.
    pub errors: Vec<(&'static str, u64)>,
    /// Times the server was found to have lost its data.
    pub epoch_changes: u64,
    /// Times its clock stepped.
    pub clock_steps: u64,
    /// Checks that wait for it now.
    pub waiting: u64,
    /// Latency of calls in seconds.
    pub latency: HistogramFigures,
    /// Checks per call.
    pub batches: HistogramFigures,
}

/// Whether a server is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardState {
    /// In use.
    #[default]
    Up,
    /// A few calls probe whether it is back.
    Recovering,
    /// Not used: its buckets are decided by policy.
    Down,
}

impl ShardState {
    /// All states, best first.
    pub const ALL: [ShardState; 3] = [ShardState::Up, ShardState::Recovering, ShardState::Down];

    /// The name in responses and logs.
    pub const fn name(self) -> &'static str {
        match self {
            ShardState::Up => "up",
            ShardState::Recovering => "recovering",
            ShardState::Down => "down",
        }
    }
}

/// Leases, cached denials and counts of this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeFigures {
    /// Leases that can be spent from.
    pub leases: u64,
    /// Units in them.
    pub units_held: u64,
    /// Batches of units leased so far.
    pub grants: u64,
    /// Units leased so far.
    pub units_granted: u64,
    /// Units spent.
    pub units_spent: u64,
    /// Units returned.
    pub units_returned: u64,
    /// Units unspent when their lease ended.
    pub units_stranded: u64,
    /// Checks denied from the cache.
    pub deny_cache_hits: u64,
    /// Cached denials.
    pub deny_cache_entries: u64,
    /// Units decided here that the store does not know of yet.
    pub async_pending: u64,
    /// Units that `consistency: async` allowed above the limit.
    pub async_excess: u64,
    /// Calls of the shared store, for whatever reason.
    pub calls: u64,
}

/// Reads figures for a scrape; `None` if the store in use has none of the kind.
pub type StoreReading<T> = Box<dyn Fn() -> Option<T> + Send + Sync>;

/// The families of the store: the one in memory or the shared one.
pub struct StoreFamilies {
    /// What the store holds, if it is in memory.
    pub memory: StoreReading<MemoryStats>,
    /// State of the shared store, if there is one.
    pub shared: StoreReading<StoreFigures>,
}

impl MetricFamilies for StoreFamilies {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        if let Some(stats) = (self.memory)() {
            page.gauge("tollgate_keys", "Buckets in memory", stats.buckets)?;
            page.gauge("tollgate_memory_bytes", "Memory of the buckets", stats.bytes)?;
            page.counter("tollgate_keys_dropped", "Buckets dropped because they equalled unused ones", stats.dropped)?;
            page.counter("tollgate_overflow", "Charges to an overflow bucket for want of memory", stats.overflowed)?;
        }
        match (self.shared)() {
            Some(figures) => figures.write(page),
            None => Ok(()),
        }
    }
}

/// A counter of every shard: name, help and accessor.
type ShardCounter = (&'static str, &'static str, fn(&ShardFigures) -> u64);

impl StoreFigures {
    pub(super) fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        self.write_calls(page)?;
        self.write_failures(page)?;
        self.write_slots(page)?;
        self.own.write(page)
    }

    fn write_calls(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let numbers = self.numbers();
        let each = || numbers.iter().zip(&self.shards).map(|(number, shard)| ([("shard", number.as_str())], shard));
        let help = "Time from sending a script call to its answer";
        let latency = each().map(|(labels, shard)| (labels, &shard.latency));
        page.histograms("tollgate_redis_latency_seconds", help, latency)?;
        let batches = each().map(|(labels, shard)| (labels, &shard.batches));
        page.histograms("tollgate_redis_checks_per_call", "Checks decided by one script call", batches)?;
        let counters: [ShardCounter; 4] = [
            ("tollgate_redis_calls", "Script calls sent", |shard| shard.calls),
            ("tollgate_redis_checks", "Checks decided by script calls", |shard| shard.checks),
            ("tollgate_redis_resent", "Script calls sent again, proven not to have been executed", |shard| {
                shard.resent
            }),
            ("tollgate_redis_script_reloads", "Scripts sent anew, forgotten by the server", |shard| shard.reloads),
        ];
        for (name, help, of) in counters {
            page.counters(name, help, each().map(|(labels, shard)| (labels, of(shard))))?;
        }
        let waiting = each().map(|(labels, shard)| (labels, shard.waiting));
        page.gauges("tollgate_redis_waiting", "Checks that wait for the store", waiting)
    }

    fn write_failures(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let numbers = self.numbers();
        let each = || numbers.iter().zip(&self.shards).map(|(number, shard)| ([("shard", number.as_str())], shard));
        let breakers = numbers.iter().zip(&self.shards).map(|(number, shard)| {
            ([("shard", number.as_str()), ("address", shard.address.as_str())], shard.state as u64)
        });
        page.gauges(
            "tollgate_redis_breaker",
            "0 asks the store, 1 tries whether it is back, 2 leaves it alone",
            breakers,
        )?;
        let transitions = each().flat_map(|([shard], figures)| {
            let states = ShardState::ALL.into_iter().zip(figures.transitions);
            states.map(move |(state, count)| ([shard, ("to", state.name())], count))
        });
        page.counters(
            "tollgate_redis_breaker_transitions",
            "Changes of a breaker, by the state that began",
            transitions,
        )?;
        let errors = each().flat_map(|([shard], figures)| {
            figures.errors.iter().map(move |(class, count)| ([shard, ("error", *class)], *count))
        });
        page.counters("tollgate_redis_errors", "Failures of the store by class", errors)?;
        let counters: [ShardCounter; 6] = [
            ("tollgate_redis_breaker_openings", "Times a server was found to be away", |shard| shard.openings),
            ("tollgate_redis_connects", "Attempts to connect", |shard| shard.connects),
            ("tollgate_redis_connect_failures", "Attempts to connect that failed", |shard| shard.connect_failures),
            ("tollgate_redis_connections_broken", "Connections that were given up", |shard| shard.broken),
            ("tollgate_store_epoch_changes", "Times a server lost its data", |shard| shard.epoch_changes),
            ("tollgate_store_clock_steps", "Times the clock of a server stepped", |shard| shard.clock_steps),
        ];
        counters.into_iter().try_for_each(|(name, help, of)| {
            page.counters(name, help, each().map(|(labels, shard)| (labels, of(shard))))
        })
    }

    fn write_slots(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        if let Some(nodes) = self.nodes {
            page.gauge("tollgate_fleet_nodes", "Nodes that share the limits", nodes)?;
        }
        page.gauge(
            "tollgate_fleet_secret_mismatch",
            "1 if other nodes use the store with another secret and count apart",
            u64::from(self.secret_mismatch),
        )?;
        page.gauge(
            "tollgate_fleet_rules_mismatch",
            "Nodes that share the store and decide by other rules than this one",
            self.other_rules.len() as u64,
        )?;
        page.gauges(
            "tollgate_fleet_rules_differ",
            "1 for each node that decides by other rules than this one",
            self.other_rules.iter().map(|node| ([("node", node.as_str())], 1)),
        )?;
        page.counter("tollgate_overflow", "Charges to an overflow bucket for want of room", self.overflowed)?;
        page.counter("tollgate_store_split", "Requests refused by one slot after another had charged", self.split)?;
        page.counter("tollgate_store_undone", "Charges given back for a refusal by another slot", self.undone)?;
        page.counter("tollgate_store_overcharged", "Charges that could not be given back", self.overcharged)
    }

    fn numbers(&self) -> Vec<String> {
        (0..self.shards.len()).map(|number| number.to_string()).collect()
    }
}

impl NodeFigures {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        page.gauge("tollgate_leases", "Leases that this node may spend from", self.leases)?;
        page.gauge("tollgate_lease_units", "Units in the leases of this node", self.units_held)?;
        page.counter("tollgate_lease_grants", "Batches of units leased", self.grants)?;
        page.counter("tollgate_lease_units_granted", "Units leased", self.units_granted)?;
        page.counter("tollgate_lease_units_spent", "Units of leases spent", self.units_spent)?;
        page.counter("tollgate_lease_units_returned", "Units of leases given back", self.units_returned)?;
        page.counter(
            "tollgate_lease_units_stranded",
            "Units that nobody spent before their lease ended",
            self.units_stranded,
        )?;
        page.counter("tollgate_deny_cache_hits", "Checks refused without asking the store", self.deny_cache_hits)?;
        page.gauge("tollgate_deny_cache_entries", "Refusals remembered by this node", self.deny_cache_entries)?;
        page.gauge(
            "tollgate_async_pending",
            "Units decided here that the store does not know of yet",
            self.async_pending,
        )?;
        page.counter("tollgate_store_calls", "Calls of the shared store, for whatever reason", self.calls)?;
        page.counter(
            "tollgate_async_excess_units",
            "Units let pass above the limit by consistency: async",
            self.async_excess,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{DecisionMetrics, Exposition, Scrape};

    #[test]
    fn every_figure_is_on_the_page_and_labels_are_those_of_servers() {
        let shard = |address: &str, state, first| ShardFigures {
            address: address.to_owned(),
            state,
            openings: first,
            transitions: [first, 0, first + 9],
            connects: first + 1,
            connect_failures: 0,
            broken: 0,
            reloads: 0,
            calls: first + 2,
            checks: first + 3,
            resent: first + 4,
            errors: vec![("timeout", first + 5), ("refused", 0)],
            epoch_changes: first + 6,
            clock_steps: first + 7,
            waiting: first + 8,
            latency: HistogramFigures { sum: 0.5, count: 3, buckets: vec![(0.001, 2), (f64::INFINITY, 1)] },
            batches: HistogramFigures { sum: 9.0, count: 3, buckets: vec![(1.0, 1), (f64::INFINITY, 2)] },
        };
        let figures = StoreFigures {
            shards: vec![shard("a:1", ShardState::Up, 100), shard("b:2", ShardState::Down, 200)],
            nodes: Some(4),
            secret_mismatch: true,
            other_rules: vec!["n2".to_owned()],
            overflowed: 1,
            split: 2,
            undone: 3,
            overcharged: 4,
            own: NodeFigures { leases: 5, units_held: 6, async_excess: 7, ..NodeFigures::default() },
        };
        let scrape = Scrape::default();
        scrape.register(Arc::new(DecisionMetrics::default()));
        scrape.register(StoreFamilies { memory: Box::new(|| None), shared: Box::new(move || Some(figures.clone())) });
        let text = scrape.text(Exposition::OpenMetrics);
        for line in [
            "tollgate_redis_latency_seconds_bucket{le=\"0.001\",shard=\"0\"} 2",
            "tollgate_redis_latency_seconds_count{shard=\"1\"} 3",
            "tollgate_redis_checks_per_call_sum{shard=\"0\"} 9.0",
            "tollgate_redis_calls_total{shard=\"0\"} 102",
            "tollgate_redis_checks_total{shard=\"1\"} 203",
            "tollgate_redis_resent_total{shard=\"0\"} 104",
            "tollgate_redis_errors_total{shard=\"1\",error=\"timeout\"} 205",
            "tollgate_redis_breaker{shard=\"0\",address=\"a:1\"} 0",
            "tollgate_redis_breaker{shard=\"1\",address=\"b:2\"} 2",
            "tollgate_redis_breaker_openings_total{shard=\"0\"} 100",
            "tollgate_redis_breaker_transitions_total{shard=\"1\",to=\"up\"} 200",
            "tollgate_redis_breaker_transitions_total{shard=\"1\",to=\"down\"} 209",
            "tollgate_redis_connects_total{shard=\"0\"} 101",
            "tollgate_redis_connections_broken_total{shard=\"0\"} 0",
            "tollgate_redis_script_reloads_total{shard=\"0\"} 0",
            "tollgate_store_epoch_changes_total{shard=\"0\"} 106",
            "tollgate_store_clock_steps_total{shard=\"0\"} 107",
            "tollgate_redis_waiting{shard=\"0\"} 108",
            "tollgate_fleet_nodes 4",
            "tollgate_fleet_secret_mismatch 1",
            "tollgate_fleet_rules_mismatch 1",
            "tollgate_fleet_rules_differ{node=\"n2\"} 1",
            "tollgate_overflow_total 1",
            "tollgate_store_split_total 2",
            "tollgate_store_undone_total 3",
            "tollgate_store_overcharged_total 4",
            "tollgate_leases 5",
            "tollgate_lease_units 6",
            "tollgate_lease_grants_total 0",
            "tollgate_lease_units_stranded_total 0",
            "tollgate_deny_cache_hits_total 0",
            "tollgate_async_pending 0",
            "tollgate_async_excess_units_total 7",
            "tollgate_store_calls_total 0",
            "tollgate_fallback_decisions_total{policy=\"local\"} 0",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} is missing in\n{text}");
        }
    }
}
