//! The parts list: everything of a server that lives before a listener.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tollgate_admin::OperatorPages;
use tollgate_config::{Config, StorePlace, StoreSettings};
use tollgate_core::{Clock, Limit, Span};
use tollgate_engine::{Engine, EngineConfig};
use tollgate_grpc::GrpcMetrics;
use tollgate_net::{ConnectionMetrics, Drain};
use tollgate_resp_server::{RespAccess, RespMetrics};
use tollgate_rules::envoy::Duplicates;
use tollgate_ruleset::RuleSet;
use tollgate_service::api_keys::ApiKeys;
use tollgate_service::data_tokens::DataTokens;
use tollgate_service::penalties::Penalties;
use tollgate_service::receipt_sealer::Sealer;
use tollgate_service::rls::RlsConfig;
use tollgate_service::secrets::{self, SecretKeys};
use tollgate_service::store::{ConfiguredStore, memory_config};
use tollgate_service::traffic::{TrafficConfig, TrafficMonitor};
use tollgate_service::usage_history::{UsageHistoryMetrics, UsageTracker};
use tollgate_service::violations::{ViolationMetrics, Violations};
use tollgate_service::{EventQueue, QuotaMarks, Service, ServiceConfig, ServiceObserver, SteadyRefusals};
use tollgate_store::Store;
use tollgate_telemetry::{
    DecisionLog, DecisionLogConfig, DecisionMetrics, Lines, LoggedKeys, MetricNames, PanicCounter, ProcessFamilies,
    Scrape, Sink, StoreFamilies,
};
use tollgate_web::HttpMetrics;
use tracing::warn;

use crate::control_plane::ControlPlaneParts;
use crate::families::DatabaseState;
use crate::otlp::OtlpParts;
use crate::quota_journal::{OpenedQuotaJournal, QuotaJournalMetrics, QuotaJournalWriter};
use crate::rule_sources::{
    Apply, ContentMark, EnvoyDirectory, EnvoyDomains, FileStates, Pace, Reloader, RulePublisher, RuleSourceError,
    RulesFileSource, WatchConfig, Written,
};
use crate::signal_watch::{RuleCacheMetrics, SeenSignals, SignalWatch};
use crate::store::OpenedStore;
use crate::webhooks::WebhookParts;

/// Everything that lives before a listener.
pub(crate) struct ServerParts {
    /// Rules and store, for the wiring alone: transports call the service.
    pub(crate) engine: Arc<Engine<ConfiguredStore>>,
    /// Answers the calls of all transports.
    pub(crate) service: Arc<Service>,
    /// Announces and begins the shutdown.
    pub(crate) drain: Drain,
    /// Health and metrics, for the admin and the metrics listener.
    pub(crate) pages: OperatorPages,
    /// Counts panics that were caught.
    pub(crate) panics: Arc<PanicCounter>,
    /// Keep the rules of files fresh.
    pub(crate) reloaders: Vec<Reloader>,
    /// Combines the rules of all sources and puts them into force.
    pub(crate) publisher: Arc<RulePublisher>,
    /// Counts violations, if there is a database to write them to.
    pub(crate) violations: Option<Arc<Violations>>,
    /// Notes the usage of quotas, if there is a database to write it to.
    pub(crate) usage: Option<Arc<UsageTracker>>,
    /// The states of the rules files.
    pub(crate) files: FileStates,
    /// The state of the database, for metrics.
    pub(crate) database: DatabaseState,
    /// The API keys of clients: what gateways look up.
    pub(crate) api_keys: Arc<ApiKeys>,
    /// The URL of the admin API, once it is bound.
    pub(crate) admin_url: Arc<OnceLock<String>>,
    /// The password of RESP, and the names of its buckets.
    pub(crate) resp_access: Arc<RespAccess>,
    pub(crate) connection_metrics: Arc<ConnectionMetrics>,
    pub(crate) http_metrics: Arc<HttpMetrics>,
    pub(crate) grpc_metrics: Arc<GrpcMetrics>,
    pub(crate) resp_metrics: Arc<RespMetrics>,
    pub(crate) violation_metrics: Arc<ViolationMetrics>,
    pub(crate) usage_metrics: Arc<UsageHistoryMetrics>,
    /// What operators see of the traffic, unless that is off.
    pub(crate) traffic: Option<Arc<TrafficMonitor>>,
    pub(crate) quota_marks: Arc<QuotaMarks>,
    metrics: Arc<DecisionMetrics>,
    steady_refusals: Arc<SteadyRefusals>,
    pub(crate) penalties: Arc<Penalties>,
    rule_cache: Arc<RuleCacheMetrics>,
    /// Events that wait for webhooks.
    pub(crate) events: Arc<EventQueue>,
    /// What sends them, if webhooks are on.
    pub(crate) webhooks: Option<WebhookParts>,
    /// The export to a collector, if there is one.
    pub(crate) otlp: Option<OtlpParts>,
    /// The journal of quotas, until its writer is started.
    pub(crate) journal: Option<OpenedQuotaJournal>,
    pub(crate) journal_metrics: Option<Arc<QuotaJournalMetrics>>,
    pub(crate) keys: Arc<SecretKeys>,
    /// True if a `secret_file` is configured.
    has_own_secret: bool,
    /// The decision log, if there is one.
    pub(crate) decision_log: Option<Lines>,
}

impl ServerParts {
    /// Builds everything from the configuration and an open store. `log` is the process log.
    pub(crate) fn build(config: &Config, opened: OpenedStore, log: Option<Lines>) -> Result<ServerParts> {
        let OpenedStore { store, keys, clock, journal } = opened;
        let (rules, rules_file) = load_rules_file(config, &keys)?.unzip();
        let is_shared = store.is_shared();
        let sealer = match is_shared {
            true => Sealer::for_all(keys.receipts(), secrets::random()?),
            false => Sealer::new(keys.receipts(), secrets::random()?),
        };
        let resp_access =
            RespAccess::read(config.resp.password_file.as_deref(), keys.resp(), is_shared, clock.clone())?;

        let metrics = Arc::new(DecisionMetrics::default());
        let violation_metrics = Arc::new(ViolationMetrics::default());
        let violations = config.control.place().map(|_| Arc::new(Violations::new(violation_metrics.clone())));
        let usage_metrics = Arc::new(UsageHistoryMetrics::default());
        let usage = config.control.place().map(|_| Arc::new(UsageTracker::new(usage_metrics.clone())));
        let decisions = decision_log(config, &keys)?;
        let decision_log = decisions.as_ref().map(|log| log.lines().clone());
        let events = Arc::<EventQueue>::default();
        let quota_marks = Arc::new(QuotaMarks::new(&keys.clients_at_rest()).with_events(events.clone()));
        let steady_refusals = Arc::new(SteadyRefusals::new(events.clone()));
        let penalties = Arc::new(Penalties::new(events.clone()));
        let observer = ServiceObserver::new(metrics.clone(), decisions)
            .with_quota_marks(quota_marks.clone())
            .with_steady_refusals(steady_refusals.clone())
            .with_penalties(penalties.clone());
        let otlp = OtlpParts::read(config, &clock)?;
        let observer = match &otlp {
            Some(otlp) => observer.with_tracer(otlp.tracer.clone()),
            None => observer,
        };
        let observer = match &violations {
            Some(violations) => observer.with_violations(violations.clone()),
            None => observer,
        };
        let traffic = traffic_monitor(config, &keys, &clock)?;
        let observer = observer.with_traffic(traffic.clone());
        let observer = match &usage {
            Some(usage) => observer.with_usage(usage.clone()),
            None => observer,
        };
        let engine = Engine::with_clock(store, RuleSet::empty(), clock.clone()).awaiting_rules();
        let engine = Arc::new(engine.with_config(engine_config(config)).with_observer(observer));
        metrics.adopt(&engine.rules());

        let publisher =
            Arc::new(RulePublisher::new(engine.clone(), metrics.clone(), traffic.clone(), keys.compile_options()));
        if let Some(rules) = rules {
            publisher.hold(rules);
        }
        let reloaders = start_reloaders(config, &keys, &clock, &publisher, rules_file)?;
        let files = FileStates(reloaders.iter().map(Reloader::state).collect());

        let service = Service::new(ServiceConfig {
            engine: engine.clone(),
            clock: clock.clone(),
            render: config.answer.config()?,
            tokens: data_tokens(config)?.map(Arc::new),
            sealer,
            metrics: metrics.clone(),
            rls: rls_config(config),
        });
        let service = Arc::new(match &otlp {
            Some(otlp) => service.with_tracer(otlp.tracer.clone()),
            None => service,
        });
        let (drain, panics, database) = (Drain::default(), Arc::<PanicCounter>::default(), DatabaseState::default());
        let http_metrics = Arc::new(HttpMetrics::new(http_paths()));
        let bare = config.signals.bare_metric_names;
        let names = if bare { MetricNames::Bare } else { MetricNames::Prefixed };
        let scrape = Arc::new(Scrape::default().with_names(names));
        let loads = files.clone();
        let pages = OperatorPages {
            service: service.clone(),
            drain: drain.clone(),
            scrape: scrape.clone(),
            metrics: http_metrics.clone(),
            loads: Arc::new(move || (loads.sum(|state| state.reloads), loads.sum(|state| state.failures))),
        };
        let parts = ServerParts {
            engine,
            service,
            drain,
            pages,
            panics,
            reloaders,
            publisher,
            violations,
            usage,
            files,
            database,
            api_keys: Arc::default(),
            admin_url: Arc::default(),
            resp_access: Arc::new(resp_access),
            connection_metrics: Arc::default(),
            http_metrics,
            grpc_metrics: Arc::default(),
            resp_metrics: Arc::default(),
            violation_metrics,
            usage_metrics,
            traffic,
            quota_marks,
            metrics: metrics.clone(),
            steady_refusals,
            penalties,
            rule_cache: Arc::default(),
            events,
            webhooks: WebhookParts::read(&config.signals)?,
            otlp,
            journal_metrics: journal.as_ref().map(|_| Arc::new(QuotaJournalMetrics::new(clock))),
            journal,
            keys: Arc::new(keys),
            has_own_secret: config.secret_file.is_some(),
            decision_log,
        };
        parts.register_families(&scrape, metrics, log);
        Ok(parts)
    }

    /// Registers every component's metrics, in the order of the page.
    fn register_families(&self, scrape: &Scrape, metrics: Arc<DecisionMetrics>, log: Option<Lines>) {
        let (memory, shared) = (self.engine.clone(), self.engine.clone());
        scrape.register(metrics);
        scrape.register(self.violation_metrics.clone());
        scrape.register(self.rule_cache.clone());
        scrape.register(self.quota_marks.clone());
        scrape.register(self.steady_refusals.clone());
        scrape.register(self.penalties.clone());
        if let Some(otlp) = &self.otlp {
            scrape.register(otlp.metrics.clone());
        }
        if let Some(webhooks) = &self.webhooks {
            scrape.register(webhooks.metrics.clone());
        }
        if let Some(traffic) = &self.traffic {
            scrape.register(traffic.metrics());
        }
        if self.usage.is_some() {
            scrape.register(self.usage_metrics.clone());
        }
        scrape.register(StoreFamilies {
            memory: Box::new(move || memory.store().memory()),
            shared: Box::new(move || shared.store().figures()),
        });
        if let Some(journal) = &self.journal_metrics {
            scrape.register(journal.clone());
        }
        scrape.register(self.files.clone());
        scrape.register(self.database.clone());
        scrape.register(self.connection_metrics.clone());
        scrape.register(self.http_metrics.clone());
        scrape.register(self.grpc_metrics.clone());
        scrape.register(self.resp_metrics.clone());
        let (panics, files) = (self.panics.clone(), self.files.clone());
        let logs = log.map(|log| ("log", log)).into_iter();
        scrape.register(ProcessFamilies {
            logs: logs.chain(self.decision_log.clone().map(|log| ("decisions", log))).collect(),
            panics: Box::new(move || panics.count() + files.sum(|state| state.panics)),
            started: self.service.clock.wall(),
        });
        scrape.register(self.service.rls_stats.clone());
    }

    /// What is looked at every second.
    pub(crate) fn signal_watch(&self) -> SignalWatch {
        SignalWatch {
            engine: self.engine.clone(),
            metrics: self.metrics.clone(),
            files: self.files.clone(),
            database: self.database.clone(),
            rule_cache: self.rule_cache.clone(),
            events: self.events.clone(),
            clock: self.service.clock.clone(),
            seen: SeenSignals::default(),
        }
    }

    /// Starts to write the journal of quotas, if there is one. With quotas in force it is created now.
    pub(crate) fn start_journal(&mut self) -> Result<Option<QuotaJournalWriter>> {
        let Some((mut opened, metrics)) = self.journal.take().zip(self.journal_metrics.clone()) else {
            return Ok(None);
        };
        if self.engine.rules().rules.rules().iter().any(|rule| matches!(rule.limit, Some(Limit::Quota(_)))) {
            opened.claim(&self.keys)?;
        }
        QuotaJournalWriter::start(opened, self.keys.clone(), self.engine.clone(), metrics).map(Some)
    }

    /// The parts of the control plane.
    pub(crate) fn control_plane(&self) -> ControlPlaneParts {
        ControlPlaneParts {
            engine: self.engine.clone(),
            publisher: self.publisher.clone(),
            clock: self.service.clock.clone(),
            api_keys: self.api_keys.clone(),
            secret: self.keys.compile_options().secret,
            // A secret made at the start, or kept in a store, may be another one tomorrow, and old rows would be lost.
            site_secret: self.has_own_secret.then(|| self.keys.clients_at_rest()),
            admin_secret: self.keys.admin(),
        }
    }
}

/// Every path that has a label of its own in metrics.
fn http_paths() -> Vec<&'static str> {
    let mut paths: Vec<&'static str> = Vec::new();
    for path in tollgate_http::paths().chain(tollgate_admin::paths()) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// The tokens that callers must present; `None` if the data API is open. Those of the database are added later.
fn data_tokens(config: &Config) -> Result<Option<DataTokens>> {
    match &config.token_file {
        Some(file) => DataTokens::read(file).map(Some),
        None => Ok(config.require_token.then(DataTokens::default)),
    }
}

fn rls_config(config: &Config) -> RlsConfig {
    let settings = &config.envoy;
    RlsConfig {
        near_percent: settings.near_limit as u64,
        shadow: settings.shadow,
        headers: <[String; 3]>::try_from(settings.headers.clone()).ok(),
        metadata: settings.dynamic_metadata,
        stops_counting: settings.stop_counting,
        unknown_errors: settings.unknown_errors,
        local_cache_bytes: settings.local_cache,
    }
}

fn engine_config(config: &Config) -> EngineConfig {
    let StoreSettings { timeout, decision_deadline, nodes, .. } = config.store;
    let span = |duration: Duration| Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    let default = EngineConfig::default();
    // The fallback holds the buckets of a shared store while it is unreachable; a store in memory never falls back.
    let fallback = match config.store.place {
        StorePlace::Memory => default.fallback,
        StorePlace::Shared(_) => memory_config(config.max_memory),
    };
    let nodes = nodes.map_or(1, |nodes| nodes as u64);
    EngineConfig { within: span(timeout.min(decision_deadline)), deadline: span(decision_deadline), nodes, fallback }
}

/// Watches the rules file and the directory of Envoy's files, if configured.
fn start_reloaders(
    config: &Config,
    keys: &SecretKeys,
    clock: &Arc<dyn Clock>,
    publisher: &Arc<RulePublisher>,
    rules_file: Option<(RulesFileSource, ContentMark)>,
) -> Result<Vec<Reloader>> {
    let pace = Pace { poll: config.reload_interval, ..Pace::default() };
    let mut reloaders = Vec::new();
    if let Some((source, mark)) = rules_file {
        let (publisher, clock) = (publisher.clone(), clock.clone());
        let apply: Apply = Arc::new(move |written| publisher.file(written));
        reloaders.push(Reloader::start(WatchConfig { source, pace, clock, apply, in_force: Some((mark, 1)) }));
    }
    if let Some((source, mark)) = load_envoy_files(config, keys, publisher)? {
        let (publisher, clock) = (publisher.clone(), clock.clone());
        let apply: Apply<EnvoyDomains> = Arc::new(move |domains| publisher.domains(domains));
        reloaders.push(Reloader::start(WatchConfig { source, pace, clock, apply, in_force: Some((mark, 1)) }));
    }
    Ok(reloaders)
}

/// Loads the rules file. An invalid file ends the start: a server without its rules would allow everything.
fn load_rules_file(config: &Config, keys: &SecretKeys) -> Result<Option<(Written, (RulesFileSource, ContentMark))>> {
    let Some(path) = config.rules.clone() else { return Ok(None) };
    let name = path.display().to_string();
    let source = RulesFileSource { path, options: keys.compile_options() };
    match source.load() {
        Ok(loaded) => Ok(Some((loaded.written, (source, loaded.mark)))),
        Err(RuleSourceError::Invalid(report)) => Err(anyhow::Error::new(*report)),
        Err(error) => bail!("cannot read {name}: {error}"),
    }
}

/// Loads Envoy's files; the publisher holds them until the start is over. An invalid file ends the start.
fn load_envoy_files(
    config: &Config,
    keys: &SecretKeys,
    publisher: &RulePublisher,
) -> Result<Option<(EnvoyDirectory, ContentMark)>> {
    let Some(path) = config.envoy.config.clone() else { return Ok(None) };
    if let names @ (1 | 2 | 4..) = config.envoy.headers.len() {
        bail!("envoy_headers has {names} names: name three header fields, for limit, remaining and reset");
    }
    let duplicates = if config.envoy.merge_domains { Duplicates::Merge } else { Duplicates::Refuse };
    let allow_shrink = config.envoy.allow_shrink;
    let directory = EnvoyDirectory { path, duplicates, allow_shrink, options: keys.compile_options() };
    let (domains, mark) = directory.load().map_err(|error| match error {
        RuleSourceError::Invalid(report) => anyhow::Error::new(*report),
        error => anyhow!("cannot read {}: {error}", directory.path.display()),
    })?;
    if domains.domains.is_empty() {
        warn!(directory = %directory.path.display(), "no *.yaml or *.yml here: no domain of Envoy's is limited");
    }
    publisher.hold_domains(domains).map_err(|error| anyhow!("{error}"))?;
    Ok(Some((directory, mark)))
}

fn traffic_monitor(config: &Config, keys: &SecretKeys, clock: &Arc<dyn Clock>) -> Result<Option<Arc<TrafficMonitor>>> {
    if config.analytics_memory == 0 {
        return Ok(None);
    }
    let config = TrafficConfig {
        clock: clock.clone(),
        bytes: config.analytics_memory.max(1 << 20),
        secret: keys.decision_log(),
        plain_keys: config.control.violations_plain_keys,
        node: config.node_name(),
        fleet_secret: keys.node_messages(),
    };
    TrafficMonitor::start(config).map(Some).context("cannot start the thread of the analytics")
}

fn decision_log(config: &Config, keys: &SecretKeys) -> Result<Option<DecisionLog>> {
    let Some(place) = &config.decision_log else { return Ok(None) };
    let sink = if place == "-" { Sink::Stdout } else { Sink::File(place.into()) };
    let lines = Lines::start(sink).with_context(|| format!("cannot write the decision log {place}"))?;
    let keys = DecisionLogConfig {
        node: config.node_name(),
        keys: if config.debug_keys { LoggedKeys::Raw } else { LoggedKeys::Digest },
        secret: keys.decision_log(),
    };
    Ok(Some(DecisionLog::new(keys, lines)))
}
