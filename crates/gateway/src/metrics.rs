//! Metrics of the gateway: requests by route and outcome, and the state of upstreams and their servers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;
use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage};

use crate::routes::RouteTable;

/// Routes with a label of their own.
const ROUTES_MAX: usize = 1_000;

/// CompiledRoute, outcome and class of the status.
type RequestLabels = (String, &'static str, u16);

/// Counts requests by route and outcome.
#[derive(Default)]
pub(crate) struct GatewayMetrics {
    requests: RwLock<HashMap<RequestLabels, Arc<Counter>>>,
}

impl GatewayMetrics {
    /// Counts a request that has ended. Statuses are counted by their class.
    pub(crate) fn ended(&self, route: &str, outcome: &'static str, status: u16) {
        let class = status / 100;
        let known = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        let key = (route.to_owned(), outcome, class);
        if let Some(counter) = known.get(&key) {
            return counter.add_one();
        }
        drop(known);
        let mut requests = self.requests.write().unwrap_or_else(PoisonError::into_inner);
        let key = if requests.len() < ROUTES_MAX { key } else { (String::new(), outcome, class) };
        requests.entry(key).or_default().add_one();
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
        let mut requests: Vec<_> = requests.iter().map(|(key, count)| (key.clone(), count.sum())).collect();
        requests.sort();
        let labelled = requests.into_iter().map(|((route, outcome, class), count)| {
            ([("route", route), ("outcome", outcome.to_owned()), ("status", format!("{class}xx"))], count)
        });
        page.counters("tollgate_gateway_requests", "Requests to the gateway, by route and outcome", labelled)?;
        let table = self.routes.load();
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
