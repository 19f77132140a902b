//! All metrics as text.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tollgate_core::Time;
use tollgate_engine::Mode;
use tollgate_store::MemoryStats;

use super::exposition::{Exposition, to_text};
use super::fleet::StoreFigures;
use super::lines::Lines;
use super::metrics::{Metrics, Policy, Refusal};
use super::page::Page;
use super::process;
use super::series::{Kind, Labels};
use crate::feed::FeedState;

/// Figures that are read when they are asked for; `None` where there are none of the kind.
pub type Figures<T> = Box<dyn Fn() -> Option<T> + Send + Sync>;

/// Where a scrape looks.
pub struct ScrapeConfig {
    /// The counts.
    pub metrics: Arc<Metrics>,
    /// What the store holds, if it is in memory.
    pub memory: Figures<MemoryStats>,
    /// What the store tells, if it is shared.
    pub fleet: Figures<StoreFigures>,
    /// How the rules stand that come from files.
    pub feeds: Vec<watch::Receiver<FeedState>>,
    /// How the database is followed, once it is.
    pub control: Arc<OnceLock<watch::Receiver<tollgate_control::feed::FeedState>>>,
    /// The logs, by name.
    pub logs: Vec<(&'static str, Lines)>,
    /// When the server started.
    pub started: Time,
}

/// Writes all metrics down.
#[derive(Debug)]
pub struct Scrape {
    registry: Registry,
    control: Arc<OnceLock<watch::Receiver<tollgate_control::feed::FeedState>>>,
    feeds: Vec<watch::Receiver<FeedState>>,
}

impl Scrape {
    /// A scrape of these.
    pub fn new(config: ScrapeConfig) -> Scrape {
        let mut registry = Registry::default();
        let (control, feeds) = (config.control.clone(), config.feeds.clone());
        registry.register_collector(Box::new(config));
        Scrape { registry, control, feeds }
    }

    /// From now on tells of the database, too.
    pub fn follow(&self, control: Option<watch::Receiver<tollgate_control::feed::FeedState>>) {
        if let Some(control) = control {
            let _ = self.control.set(control); // a second database there is not
        }
    }

    /// How often rules of files came into force, and how often they did not.
    pub fn loads(&self) -> (u64, u64) {
        let states = self.feeds.iter().map(|feed| feed.borrow());
        states.fold((0, 0), |(loads, failures), state| (loads + state.reloads, failures + state.failures))
    }

    /// How following each file stands.
    pub fn feeds(&self) -> Vec<watch::Receiver<FeedState>> {
        self.feeds.clone()
    }

    /// The metrics as they are now.
    pub fn text(&self, exposition: Exposition) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap_or_default(); // a String takes everything
        match exposition {
            Exposition::OpenMetrics => text,
            Exposition::Text => to_text(&text),
        }
    }
}

impl fmt::Debug for ScrapeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScrapeConfig").field("started", &self.started).finish_non_exhaustive()
    }
}

impl Collector for ScrapeConfig {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        self.requests(&mut page)?;
        self.store(&mut page)?;
        self.rules(&mut page)?;
        self.control(&mut page)?;
        self.traffic(&mut page)?;
        self.own(&mut page)
    }
}

impl ScrapeConfig {
    fn requests(&self, page: &mut Page<'_>) -> fmt::Result {
        let metrics = &*self.metrics;
        let series = metrics.book.read();
        let of = |kind| series.iter().filter(move |(labels, _)| labels.kind == kind);
        let ruled = |(labels, count): &(Labels, u64)| (RuleLabels(labels.clone()), *count);
        page.counters(
            "tollgate_requests_allowed",
            "Requests allowed, at the rule that decided",
            of(Kind::Allowed).map(ruled),
        )?;
        page.counters(
            "tollgate_requests_denied",
            "Requests denied, at the rule that decided",
            of(Kind::Denied).map(ruled),
        )?;
        page.counter("tollgate_requests_invalid", "Requests that could not be read", metrics.invalid.sum())?;
        page.counters(
            "tollgate_shadow_denied",
            "Requests that a shadow rule would have denied",
            of(Kind::ShadowDenied).map(ruled),
        )?;
        page.counter("tollgate_violations_written", "Refusals written down", metrics.violations_written.sum())?;
        page.counter("tollgate_violations_dropped", "Refusals not written down", metrics.violations_dropped.sum())?;
        let latency = metrics.latency.snapshot();
        let mut encoder = page.0.encode_descriptor(
            "tollgate_decision_seconds",
            "Time from a request to its decision",
            None,
            MetricType::Histogram,
        )?;
        encoder.encode_histogram::<NoLabelSet>(latency.sum, latency.count, &latency.buckets, None)
    }

    fn store(&self, page: &mut Page<'_>) -> fmt::Result {
        if let Some(stats) = (self.memory)() {
            page.gauge("tollgate_keys", "Buckets in memory", stats.buckets)?;
            page.gauge("tollgate_memory_bytes", "Memory of the buckets", stats.bytes)?;
            page.counter("tollgate_keys_dropped", "Buckets dropped because they equalled unused ones", stats.dropped)?;
            page.counter("tollgate_overflow", "Charges to an overflow bucket for want of memory", stats.overflowed)?;
        }
        page.counter("tollgate_store_failures", "Times the store did not answer", self.metrics.store_failures.sum())?;
        let policies = Policy::ALL.iter().zip(&self.metrics.fallback);
        let policies = policies.map(|(policy, counter)| ([("policy", policy.name())], counter.sum()));
        page.counters("tollgate_fallback_decisions", "Decisions made by policy, without the store", policies)?;
        match (self.fleet)() {
            Some(figures) => figures.write(page),
            None => Ok(()),
        }
    }

    fn rules(&self, page: &mut Page<'_>) -> fmt::Result {
        let table = self.metrics.table.load();
        page.gauge("tollgate_generation", "Generation of the rules in force", table.generation)?;
        page.gauge("tollgate_rules", "Rules in force", table.rules.len())?;
        if self.feeds.is_empty() {
            return Ok(());
        }
        let (reloads, failures) = (self.feeds(|state| state.reloads), self.feeds(|state| state.failures));
        page.counter("tollgate_reloads", "Times new rules came into force", reloads)?;
        page.counter("tollgate_reload_failures", "Times new rules could not be loaded", failures)?;
        let held_back = self.feeds(|state| state.held_back);
        page.counter(
            "tollgate_reloads_held_back",
            "Times a file of rules looked cut off and was not loaded",
            held_back,
        )?;
        match self.feeds.iter().filter_map(|feed| feed.borrow().loaded_at).max() {
            Some(at) => {
                page.gauge("tollgate_last_reload_timestamp_seconds", "When rules were last loaded", seconds(at))
            }
            None => Ok(()),
        }
    }

    /// A count of all feeds together.
    fn feeds(&self, count: impl Fn(&FeedState) -> u64) -> u64 {
        self.feeds.iter().map(|feed| count(&feed.borrow())).sum()
    }

    fn control(&self, page: &mut Page<'_>) -> fmt::Result {
        let Some(state) = self.control.get().map(|state| state.borrow().clone()) else { return Ok(()) };
        page.gauge("tollgate_database_up", "Whether the database answers", u64::from(state.away.is_none()))?;
        page.gauge("tollgate_database_generation", "Generation of the database in force here", state.generation)?;
        page.counter("tollgate_database_refreshes", "Times the database had something new", state.refreshes)?;
        page.counter("tollgate_database_failures", "Times the database did not answer", state.failures)?;
        page.gauge("tollgate_quarantined_rows", "Rows of the database that cannot be used", state.quarantined.len())?;
        match state.fresh_at {
            Some(at) => page.gauge(
                "tollgate_database_fresh_timestamp_seconds",
                "When the database last said that this is its latest",
                seconds(at.time()),
            ),
            None => Ok(()),
        }
    }

    fn traffic(&self, page: &mut Page<'_>) -> fmt::Result {
        let metrics = &*self.metrics;
        let open = std::iter::once(([("state", "open")], metrics.connections()));
        page.gauges("tollgate_connections", "Connections", open)?;
        let refused = Refusal::ALL.iter().zip(&metrics.refused);
        let refused = refused.map(|(reason, counter)| ([("reason", reason.name())], counter.sum()));
        page.counters("tollgate_connections_refused", "Connections refused", refused)?;
        let http = metrics.http();
        let answered =
            http.iter().map(|(path, status, count)| ([("path", *path), ("status", status.as_str())], *count));
        page.counters("tollgate_http_requests", "HTTP requests answered", answered)?;
        let answered = metrics.grpc().map(|(method, code, count)| ([("method", method), ("code", code)], count));
        page.counters("tollgate_grpc_requests", "Calls by gRPC answered", answered)?;
        metrics.resp.write(page)
    }

    fn own(&self, page: &mut Page<'_>) -> fmt::Result {
        let dropped = self.logs.iter().map(|(name, lines)| ([("log", *name)], lines.dropped()));
        page.counters("tollgate_log_lines_dropped", "Log lines lost to a full buffer or a broken sink", dropped)?;
        let panics = self.metrics.panics.load(Ordering::Relaxed) + self.feeds(|state| state.panics);
        page.counter("tollgate_panics", "Panics that were caught", panics)?;
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        let help = "The version that is running";
        page.0.encode_descriptor("tollgate_build", help, None, MetricType::Info)?.encode_info(&version)?;
        page.gauge("process_start_time_seconds", "When the server started", seconds(self.started))?;
        if let Some(bytes) = process::resident_bytes() {
            page.gauge("process_resident_memory_bytes", "Resident memory", bytes)?;
        }
        if let Some(count) = process::open_fds() {
            page.gauge("process_open_fds", "Open file descriptors", count)?;
        }
        self.metrics.domains.encode(page)
    }
}

fn seconds(time: Time) -> f64 {
    time.nanos() as f64 / 1e9
}

/// The labels of a count by rule.
struct RuleLabels(Labels);

impl EncodeLabelSet for RuleLabels {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelSetEncoder<'_>) -> fmt::Result {
        let Labels { namespace, rule, tier, mode, .. } = &self.0;
        [("namespace", &**namespace), ("rule", &**rule)].encode(encoder)?;
        match mode.map(Mode::name) {
            Some(mode) => [("tier", &**tier), ("mode", mode)].encode(encoder),
            None => Ok(()),
        }
    }
}
