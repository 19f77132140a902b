//! Metrics of the gateway: requests by route and outcome, and the state of upstreams and their servers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;
use tollgate_telemetry::{Counter, HistogramFigures, MetricFamilies, MetricsPage};

use crate::duration_histogram::add;
use crate::routes::{CompiledRoute, RouteTable};

/// Most pairs of a route and an outcome; further routes are counted as one without a name.
const SERIES_MAX: usize = 1_000;

/// Outcome and class of the status.
type OutcomeLabels = (&'static str, u16);

/// Counts requests by route and outcome.
#[derive(Default)]
pub(crate) struct GatewayMetrics {
    /// By route. A route has few outcomes.
    requests: RwLock<BTreeMap<String, Vec<(OutcomeLabels, Counter)>>>,
    pub(crate) refunds: RefundCounters,
}

/// Charges of requests that were shed, by what became of them.
#[derive(Default)]
pub(crate) struct RefundCounters {
    pub(crate) given_back: Counter,
    /// The store did not answer.
    pub(crate) failed: Counter,
    /// Too many were given back at once.
    pub(crate) skipped: Counter,
}

impl GatewayMetrics {
    /// Counts a request that has ended. Statuses are counted by their class.
    pub(crate) fn ended(&self, route: &str, outcome: &'static str, status: u16) {
        let labels = (outcome, status / 100);
        let known = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        let outcomes = known.get(route).into_iter().flatten();
        if let Some((_, counter)) = outcomes.into_iter().find(|(own, _)| *own == labels) {
            return counter.add_one();
        }
        drop(known);
        let mut requests = self.requests.write().unwrap_or_else(PoisonError::into_inner);
        let has_room = requests.values().map(Vec::len).sum::<usize>() < SERIES_MAX;
        let outcomes = requests.entry(if has_room { route.to_owned() } else { String::new() }).or_default();
        match outcomes.iter().find(|(own, _)| *own == labels) {
            Some((_, counter)) => counter.add_one(),
            None => {
                let counter = Counter::default();
                counter.add_one();
                outcomes.push((labels, counter));
            }
        }
    }
}

/// The families of the gateway, for a page of metrics.
pub(crate) struct GatewayFamilies {
    pub(crate) metrics: Arc<GatewayMetrics>,
    pub(crate) routes: Arc<ArcSwap<RouteTable>>,
}

impl MetricFamilies for GatewayFamilies {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let requests = self.metrics.requests.read().unwrap_or_else(PoisonError::into_inner);
        let figures = requests.iter().flat_map(|(route, outcomes)| {
            outcomes.iter().map(move |((outcome, class), count)| (route.clone(), *outcome, *class, count.sum()))
        });
        let mut requests: Vec<_> = figures.collect();
        requests.sort();
        let labelled = requests.into_iter().map(|(route, outcome, class, count)| {
            ([("route", route), ("outcome", outcome.to_owned()), ("status", format!("{class}xx"))], count)
        });
        page.counters("tollgate_gateway_requests", "Requests to the gateway, by route and outcome", labelled)?;
        let RefundCounters { given_back, failed, skipped } = &self.metrics.refunds;
        page.counters(
            "tollgate_gateway_refunds",
            "Charges without a receipt of requests that were shed: given back, failed, or skipped because of too many",
            [("given_back", given_back), ("failed", failed), ("skipped", skipped)]
                .into_iter()
                .map(|(outcome, count)| ([("outcome", outcome)], count.sum())),
        )?;
        let table = self.routes.load();
        write_routes(table.routes(), page)?;
        write_upstreams(&table, page)?;
        let servers = || {
            table.upstreams().flat_map(|upstream| {
                upstream.servers().iter().map(|server| {
                    ([("upstream", upstream.spec.name.clone()), ("server", server.url.to_string())], server)
                })
            })
        };
        page.gauges(
            "tollgate_upstream_in_flight",
            "Requests in flight at a server",
            servers().map(|(labels, server)| (labels, server.in_flight() as u64)),
        )?;
        page.gauges(
            "tollgate_upstream_available",
            "1 if a server is used: healthy, and not left out for failing",
            servers().map(|(labels, server)| (labels, u64::from(server.is_available()))),
        )?;
        page.gauges(
            "tollgate_upstream_idle_connections",
            "Open connections to a server that wait for a request",
            servers().map(|(labels, server)| (labels, server.pool().idle() as u64)),
        )?;
        page.counters(
            "tollgate_upstream_requests",
            "Requests sent to a server",
            servers().map(|(labels, server)| (labels, server.counts().0)),
        )?;
        page.counters(
            "tollgate_upstream_errors",
            "Requests that a server failed: 5xx, no connection, no answer in time",
            servers().map(|(labels, server)| (labels, server.counts().1)),
        )
    }
}

/// Routes with a distribution of their own on the page: each is twenty lines.
const SHOWN_ROUTES_MAX: usize = 200;

/// What the requests of routes took and cost; the routes that do not fit are one, without a name.
fn write_routes(routes: &[Arc<CompiledRoute>], page: &mut MetricsPage<'_>) -> fmt::Result {
    let mut durations: Vec<(String, HistogramFigures)> = Vec::new();
    let mut others = HistogramFigures::default();
    let mut settled: Vec<([(&str, String); 2], u64)> = Vec::new();
    for route in routes {
        let figures = route.figures.duration.snapshot();
        let name = || route.spec.name.clone();
        match figures.count {
            0 => {}
            _ if durations.len() < SHOWN_ROUTES_MAX => durations.push((name(), figures)),
            _ => add(&mut others, figures),
        }
        let amounts = route.figures.amounts().into_iter();
        settled.extend(amounts.map(|(meter, amount)| ([("route", name()), ("meter", meter)], amount)));
    }
    if others.count > 0 {
        durations.push((String::new(), others));
    }
    page.histograms(
        "tollgate_gateway_duration_seconds",
        "From the arrival of a request to the end of its response, by route",
        durations.iter().map(|(route, figures)| ([("route", route.clone())], figures)),
    )?;
    settled.truncate(SERIES_MAX);
    page.counters(
        "tollgate_gateway_settled",
        "Amounts settled when responses ended, by route and meter",
        settled.into_iter(),
    )
}

fn write_upstreams(table: &RouteTable, page: &mut MetricsPage<'_>) -> fmt::Result {
    let first_bytes: Vec<(String, HistogramFigures)> =
        table.upstreams().map(|upstream| (upstream.spec.name.clone(), upstream.first_byte.snapshot())).collect();
    page.histograms(
        "tollgate_upstream_first_byte_seconds",
        "From the sending of a request to the head of its response, by upstream",
        first_bytes.iter().map(|(upstream, figures)| ([("upstream", upstream.clone())], figures)),
    )?;
    page.counters(
        "tollgate_upstream_shed",
        "Requests that were not sent because the upstream is spared, by class of priority and reason",
        table.upstreams().flat_map(|upstream| {
            let priorities = &upstream.spec.protection.priorities;
            upstream.protection.shed().into_iter().map(move |(class, reason, count)| {
                let class = priorities.name(class).to_owned();
                let name = upstream.spec.name.clone();
                ([("upstream", name), ("class", class), ("reason", reason.to_owned())], count)
            })
        }),
    )?;
    let queued = || {
        table
            .upstreams()
            .filter_map(|upstream| Some(([("upstream", upstream.spec.name.clone())], upstream.protection.stats()?)))
    };
    page.gauges(
        "tollgate_upstream_limit",
        "Requests that may be in flight at an upstream, as its concurrency limit has learned",
        queued().map(|(labels, stats)| (labels, u64::from(stats.limit))),
    )?;
    page.gauges(
        "tollgate_upstream_waiting",
        "Requests that wait for an upstream",
        queued().map(|(labels, stats)| (labels, stats.waiting as u64)),
    )?;
    page.gauges(
        "tollgate_upstream_breaker_open",
        "1 while the circuit breaker of an upstream lets nothing through",
        table
            .upstreams()
            .filter(|upstream| upstream.spec.protection.breaker.is_some())
            .map(|upstream| ([("upstream", upstream.spec.name.clone())], u64::from(upstream.protection.is_open()))),
    )?;
    page.counters(
        "tollgate_upstream_retries",
        "Requests that were sent again, and those that the budget had no room for",
        table.upstreams().filter(|upstream| upstream.spec.retries.attempts > 0).flat_map(|upstream| {
            let (sent, refused) = upstream.retries();
            [("sent", sent), ("over_budget", refused)].map(|(outcome, count)| {
                ([("upstream", upstream.spec.name.clone()), ("outcome", outcome.to_owned())], count)
            })
        }),
    )?;
    Ok(())
}
