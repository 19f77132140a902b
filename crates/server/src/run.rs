//! Wiring: a configuration becomes a server, signals become its end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tollgate_core::Span;
use tollgate_engine::{Engine, EngineConfig};
use tollgate_rules::ruleset::RuleSet;
use tollgate_store::{MonotonicClock, Store};
use tracing::{error, info, warn};

use crate::api::seal::Sealer;
use crate::api::tokens::Tokens;
use crate::api::{Api, IN_BATCHES_MAX, Route, Settlements, Shared, Surface};
use crate::backend::{self, Backend, Opened, Probe};
use crate::config::{Config, ControlSettings, StorePlace, StoreSettings};
use crate::door::Door;
use crate::feed::{Apply, FeedError, Following, Mark, Pace, Reloader, Source, Written};
use crate::http::Ground;
use crate::keys::{self, Keys};
use crate::net::tls::{Tls, TlsFiles};
use crate::net::{Address, Drain, Guests, Listener, Transit, accept, descriptors};
use crate::signals::Signals;
use crate::telemetry::{self, DecisionLog, DecisionLogConfig, Lines, Metrics, Scrape, ScrapeConfig, Sink, Telemetry};
use crate::upkeep::Upkeep;

/// A server that is bound and about to serve.
pub struct Server {
    config: Config,
    shared: Arc<Shared>,
    listeners: Vec<(Surface, Listener)>,
    tls: Option<Arc<Tls>>,
    admin_tls: Option<Arc<Tls>>,
    reloader: Option<Reloader>,
    decisions: Option<Lines>,
    log: Option<Lines>,
    /// Rung to read everything again.
    hang_up: Arc<Notify>,
}

impl Server {
    /// Reads everything that the configuration names, opens its store and binds every address. Needs a runtime; serves
    /// nobody yet. `log` is where this process logs, if anywhere: it is counted and flushed with the rest.
    pub async fn open(config: Config, log: Option<Lines>) -> Result<Server> {
        config.check_exposure()?;
        let opened = backend::open(&config, Arc::new(MonotonicClock::new())).await?;
        Server::over(opened, config, log)
    }

    /// The same at once, with the buckets in memory, whatever store is configured.
    pub fn bind(config: Config, log: Option<Lines>) -> Result<Server> {
        config.check_exposure()?;
        let opened = Opened::in_memory(&config, Arc::new(MonotonicClock::new()))?;
        Server::over(opened, config, log)
    }

    fn over(opened: Opened, config: Config, log: Option<Lines>) -> Result<Server> {
        let decisions = decision_log(&config, &opened.keys)?;
        let lines = decisions.as_ref().map(|log| log.lines().clone());
        let logs = log.clone().map(|log| ("log", log)).into_iter().chain(lines.clone().map(|log| ("decisions", log)));
        let (shared, reloader) = shared(&config, opened, decisions, logs.collect())?;
        let tls = data_tls(&config)?;
        let admin_tls = admin_tls(&config)?;
        let listeners = bind(&config)?;
        let shared = Arc::new(shared);
        Ok(Server {
            config,
            shared,
            listeners,
            tls,
            admin_tls,
            reloader,
            decisions: lines,
            log,
            hang_up: Arc::default(),
        })
    }

    /// What was bound: with the ports that were picked, where none were named.
    pub fn addresses(&self) -> Vec<(Surface, Address)> {
        self.listeners.iter().filter_map(|(surface, listener)| Some((*surface, listener.address().ok()?))).collect()
    }

    /// What somebody who just started it wants to read.
    pub fn announcement(&self) -> String {
        let scheme = |tls: &Option<Arc<Tls>>| if tls.is_some() { "https" } else { "http" };
        let mut text = String::new();
        let mut curl = None;
        for (surface, address) in self.addresses() {
            let scheme = scheme(if surface == Surface::Admin { &self.admin_tls } else { &self.tls });
            let (url, call) = match &address {
                Address::Tcp(at) => (format!("{scheme}://{at}"), format!("{scheme}://{at}")),
                Address::Unix(path) => (
                    format!("unix:{}", path.display()),
                    format!("--unix-socket {} {scheme}://localhost", path.display()),
                ),
            };
            match surface {
                Surface::Data => {
                    text += &format!("listening on {url}\n");
                    curl.get_or_insert(call);
                }
                Surface::Admin => text += &format!("admin on {url}, metrics at /metrics\n"),
            }
        }
        let count = self.shared.engine.rules().rules.rules().len();
        text += &match &self.config.rules {
            Some(file) => format!("{count} rules from {}, read again when it changes\n", file.display()),
            None => "no rules: everything is allowed; add some with --rules FILE\n".to_owned(),
        };
        let secret = match (&self.shared.tokens, self.tls.is_some()) {
            (Some(_), true) => " --insecure -H 'Authorization: Bearer TOKEN'",
            (Some(_), false) => " -H 'Authorization: Bearer TOKEN'",
            (None, true) => " --insecure",
            (None, false) => "",
        };
        let body = r#"{"client_key":"user:42","endpoint":"/api/orders","tier":"free"}"#;
        if let Some(call) = curl {
            text += &format!("try: curl -s{secret} {call}/v1/check -d '{body}'\n");
        }
        text
    }

    /// A handle on the server's end: it serves until the drain begins.
    pub fn drain(&self) -> Drain {
        self.shared.drain.clone()
    }

    /// Reads rules, certificate and tokens again, as SIGHUP does.
    pub fn hang_up(&self) -> Arc<Notify> {
        self.hang_up.clone()
    }

    /// Serves until the drain begins, then answers what was accepted. Answers how many connections had to be cut.
    pub async fn run(self) -> usize {
        let Server { config, shared, listeners, tls, admin_tls, reloader, decisions, log, hang_up } = self;
        let drain = shared.drain.clone();
        // Operators have places of their own, and are the last to go: they want to see how it ends.
        let (guests, last) =
            (Guests::new(config.net.max_connections, config.net.max_connections_per_address), Drain::default());
        let operators = Guests::new(OPERATORS_MAX, OPERATORS_MAX);
        let transit = Transit::new(config.net.max_in_transit);
        for (surface, listener) in listeners {
            let (tls, guests, drain) = match surface {
                Surface::Data => (tls.clone(), guests.clone(), drain.clone()),
                Surface::Admin => (admin_tls.clone(), operators.clone(), last.clone()),
            };
            let (limits, clock) = (config.net, shared.clock.clone());
            let ground = Ground { limits, drain: drain.clone(), clock, transit: transit.clone() };
            let door = Door::new(Api::new(surface, shared.clone()), shared.metrics.clone(), tls, ground);
            tokio::spawn(accept(listener, guests, drain, door));
        }
        let patience = config.net.drain_timeout;
        let store = shared.engine.clone();
        let tls = tls.into_iter().chain(admin_tls).collect();
        let upkeep = Upkeep { config, shared, tls, reloader, decisions: decisions.clone(), hang_up };
        let upkeep = tokio::spawn(upkeep.run());
        drain.begun().await;
        info!(connections = guests.present(), "draining");
        let left = drain.ended(patience).await;
        last.begin();
        last.ended(OPERATORS_PATIENCE).await;
        upkeep.abort();
        if timeout(GOODBYE, store.store().close()).await.is_err() {
            warn!("the store did not hear of the end in time: what this node leased comes back by itself");
        }
        if left > 0 {
            warn!(connections = left, "connections were cut off");
        }
        info!("stopped");
        let flush = move || decisions.iter().chain(&log).all(|lines| lines.flush(FLUSH_WITHIN));
        tokio::task::spawn_blocking(flush).await.unwrap_or_default();
        left
    }
}

/// Connections of operators and probes, beside those of callers.
const OPERATORS_MAX: usize = 64;
/// How long they may take to go once everybody else has gone.
const OPERATORS_PATIENCE: Duration = Duration::from_millis(100);

/// How long leases may take to be given back.
const GOODBYE: Duration = Duration::from_secs(2);

/// How long the logs may take to be written at the end.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// Everything that calls are answered with, and what keeps its rules fresh.
fn shared(
    config: &Config,
    opened: Opened,
    decisions: Option<DecisionLog>,
    logs: Vec<(&'static str, Lines)>,
) -> Result<(Shared, Option<Reloader>)> {
    let Opened { backend, keys, clock } = opened;
    let (rules, source) = load(config, &keys)?;
    let metrics = Arc::new(Metrics::new(Route::NAMES));
    let sealer = match backend.is_shared() {
        true => Sealer::for_all(keys.receipts(), keys::random()?),
        false => Sealer::new(keys.receipts(), keys::random()?),
    };
    let engine = Engine::with_clock(backend, rules, clock.clone()).with_config(engine_config(config));
    let engine = Arc::new(engine.with_observer(Telemetry::new(metrics.clone(), decisions)));
    metrics.adopt(&engine.rules());
    let reloader = source.map(|(source, mark)| {
        let pace = Pace { poll: config.reload_interval, ..Pace::default() };
        let apply = apply(engine.clone(), metrics.clone());
        let in_force = Some((mark, engine.rules().number));
        Reloader::start(Following { source, pace, clock: clock.clone(), apply, in_force })
    });
    let (memory, fleet) = (engine.clone(), engine.clone());
    let scrape = Scrape::new(ScrapeConfig {
        metrics: metrics.clone(),
        memory: Box::new(move || memory.store().memory()),
        fleet: Box::new(move || fleet.store().figures()),
        feed: reloader.as_ref().map(Reloader::state),
        logs,
        started: clock.now(),
    });
    let shared = Shared {
        engine,
        clock,
        answer: config.answer.config()?,
        limits: config.net,
        tokens: config.token_file.as_deref().map(Tokens::read).transpose()?.map(Arc::new),
        sealer,
        metrics,
        scrape,
        drain: Drain::default(),
        settlements: Settlements::default(),
        explains: Semaphore::new(1),
        in_batches: Semaphore::new(IN_BATCHES_MAX),
        probe: Probe::default(),
    };
    Ok((shared, reloader))
}

fn engine_config(config: &Config) -> EngineConfig {
    let StoreSettings { timeout, decision_deadline, nodes, .. } = config.store;
    let span = |duration: Duration| Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    let default = EngineConfig::default();
    // What a shared store would have kept is kept here while it is away; who keeps all in memory never falls back.
    let fallback = match config.store.place {
        StorePlace::Memory => default.fallback,
        StorePlace::Shared(_) => backend::memory_config(config.max_memory),
    };
    let nodes = nodes.map_or(1, |nodes| nodes as u64);
    EngineConfig { within: span(timeout.min(decision_deadline)), deadline: span(decision_deadline), nodes, fallback }
}

/// The rules to begin with. A file that cannot be used ends the start: a server without its rules would allow all.
fn load(config: &Config, keys: &Keys) -> Result<(RuleSet, Option<(Source, Mark)>)> {
    let Some(path) = config.rules.clone() else { return Ok((RuleSet::empty(), None)) };
    let name = path.display().to_string();
    let source = Source { path, options: keys.compile_options() };
    match source.load() {
        Ok(loaded) => Ok((loaded.written.rules, Some((source, loaded.mark)))),
        Err(FeedError::Invalid(report)) => Err(anyhow::Error::new(*report)),
        Err(error) => bail!("cannot read {name}: {error}"),
    }
}

/// What becomes of rules that are read anew.
fn apply(engine: Arc<Engine<Backend>>, metrics: Arc<Metrics>) -> Apply {
    Arc::new(move |written: Written| {
        let generation = engine.swap_rules(written.rules);
        metrics.adopt(&engine.rules());
        generation
    })
}

fn decision_log(config: &Config, keys: &Keys) -> Result<Option<DecisionLog>> {
    let Some(place) = &config.decision_log else { return Ok(None) };
    let sink = if place == "-" { Sink::Stdout } else { Sink::File(place.into()) };
    let lines = Lines::start(sink).with_context(|| format!("cannot write the decision log {place}"))?;
    let keys = DecisionLogConfig {
        node: config.node_name(),
        keys: if config.debug_keys { telemetry::Keys::Raw } else { telemetry::Keys::Digest },
        secret: keys.decision_log(),
    };
    Ok(Some(DecisionLog::new(keys, lines)))
}

fn data_tls(config: &Config) -> Result<Option<Arc<Tls>>> {
    let (Some(certificate), Some(key)) = (&config.tls_cert, &config.tls_key) else { return Ok(None) };
    Ok(Some(Arc::new(Tls::read(TlsFiles::new(certificate, key))?)))
}

fn admin_tls(config: &Config) -> Result<Option<Arc<Tls>>> {
    let ControlSettings { tls_cert, tls_key, client_ca, client_names, .. } = &config.control;
    let (Some(certificate), Some(key)) = (tls_cert, tls_key) else { return Ok(None) };
    let (client_ca, client_names) = (client_ca.clone(), client_names.clone());
    Ok(Some(Arc::new(Tls::read(TlsFiles { client_ca, client_names, ..TlsFiles::new(certificate, key) })?)))
}

/// Serves until a signal ends it. `announce` is told once everything is bound.
pub fn serve(config: Config, log: Option<Lines>, announce: impl FnOnce(&str) -> Result<()>) -> Result<()> {
    descriptors::make_room(config.net.max_connections);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = config.threads {
        builder.worker_threads(threads);
    }
    let runtime = builder.enable_all().build().context("cannot start threads")?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let server = Server::open(config, log).await?;
        announce(&server.announcement())?;
        count_panics(server.shared.metrics.clone());
        let (drain, hang_up) = (server.drain(), server.hang_up.clone());
        let hang_up = move || hang_up.notify_one();
        let signals = async {
            signals.end(&hang_up).await;
            drain.begin();
            signals.end(&hang_up).await;
        };
        tokio::select! {
            _ = server.run() => Ok(()),
            () = signals => bail!("stopped at once by a second signal"),
        }
    })
}

/// Panics are counted and logged as one line; what they were about may be somebody's key, and is left out.
fn count_panics(metrics: Arc<Metrics>) {
    std::panic::set_hook(Box::new(move |panic| {
        metrics.panicked();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        error!(place, "panicked; this is a bug in Tollgate");
    }));
}

fn bind(config: &Config) -> Result<Vec<(Surface, Listener)>> {
    let data = config.http.iter().map(|address| (Surface::Data, address));
    let admin = config.admin.iter().chain(&config.metrics).map(|address| (Surface::Admin, address));
    data.chain(admin)
        .map(|(surface, address)| {
            Ok((surface, Listener::bind(address).map_err(|error| anyhow!("{error:#}; {}", hint(surface)))?))
        })
        .collect()
}

fn hint(surface: Surface) -> &'static str {
    match surface {
        Surface::Data => "choose another address with --http HOST:PORT (port 0 picks a free one)",
        Surface::Admin => "choose another address with --admin HOST:PORT, or none with --admin off",
    }
}
