//! From a configuration to everything that calls are answered with.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tokio::sync::Semaphore;
use tollgate_core::{Secret, Span};
use tollgate_engine::{Engine, EngineConfig};
use tollgate_rules::envoy::Duplicates;
use tollgate_rules::ruleset::RuleSet;
use tollgate_store::Store;
use tracing::warn;

use crate::admin;
use crate::api::seal::Sealer;
use crate::api::tokens::Tokens;
use crate::api::{IN_BATCHES_MAX, Settlements, Shared, Surface};
use crate::backend::{self, Opened, Probe};
use crate::config::{AuthSettings, AuthSource, Config, ControlSettings, StorePlace, StoreSettings};
use crate::envoy_rls;
use crate::feed::{Apply, Assembly, Directory, Domains, FeedError, Following, Mark, Pace, Reloader, Source, Written};
use crate::keys::{self, Keys};
use crate::net::tls::{Tls, TlsFiles};
use crate::net::{Drain, Listener};
use crate::resp::Access;
use crate::telemetry::{self, DecisionLog, DecisionLogConfig, Lines, Metrics, Scrape, ScrapeConfig, Sink, Telemetry};
use crate::violations::Violations;

/// Everything that is there before a listener is.
pub(crate) struct Started {
    pub(crate) shared: Shared,
    /// Keep the rules of files fresh.
    pub(crate) reloaders: Vec<Reloader>,
    /// Puts rules into force.
    pub(crate) assembly: Arc<Assembly>,
    /// The key of the digests that clients are found by.
    pub(crate) secret: Secret,
    /// From `secret_file`: what the key of the site is made of besides the database's secret.
    pub(crate) site_secret: Option<[u8; 32]>,
    /// What the admin API makes its digests and cursors with.
    pub(crate) admin_secret: [u8; 32],
    /// Counts who is refused, where there is somewhere to write it down.
    pub(crate) violations: Option<Arc<Violations>>,
}

/// Everything that calls are answered with, and what keeps its rules fresh.
pub(crate) fn shared(
    config: &Config,
    opened: Opened,
    decisions: Option<DecisionLog>,
    logs: Vec<(&'static str, Lines)>,
) -> Result<Started> {
    let Opened { backend, keys, clock } = opened;
    let (written, source) = load(config, &keys)?.unzip();
    let metrics = Arc::new(Metrics::new(admin::route_names()));
    let sealer = match backend.is_shared() {
        true => Sealer::for_all(keys.receipts(), keys::random()?),
        false => Sealer::new(keys.receipts(), keys::random()?),
    };
    let resp = Access::read(config.resp.password_file.as_deref(), keys.resp(), backend.is_shared(), clock.clone())?;
    let engine = Engine::with_clock(backend, RuleSet::empty(), clock.clone()).awaiting_rules();
    let engine = engine.with_config(engine_config(config));
    let violations = config.control.place().map(|_| Arc::new(Violations::new(metrics.clone())));
    let telemetry = Telemetry::new(metrics.clone(), decisions);
    let engine = Arc::new(engine.with_observer(match &violations {
        Some(violations) => telemetry.with_violations(violations.clone()),
        None => telemetry,
    }));
    metrics.adopt(&engine.rules());
    let assembly = Arc::new(Assembly::new(engine.clone(), metrics.clone(), keys.compile_options()));
    if let Some(written) = written {
        assembly.hold(written);
    }
    let pace = Pace { poll: config.reload_interval, ..Pace::default() };
    let mut reloaders = Vec::new();
    if let Some((source, mark)) = source {
        let (assembly, clock, in_force) = (assembly.clone(), clock.clone(), Some((mark, 1)));
        let apply: Apply = Arc::new(move |written| assembly.file(written));
        reloaders.push(Reloader::start(Following { source, pace, clock, apply, in_force }));
    }
    if let Some((source, mark)) = load_domains(config, &keys, &assembly)? {
        let (assembly, clock, in_force) = (assembly.clone(), clock.clone(), Some((mark, 1)));
        let apply: Apply<Domains> = Arc::new(move |domains| assembly.domains(domains));
        reloaders.push(Reloader::start(Following { source, pace, clock, apply, in_force }));
    }
    let (memory, fleet) = (engine.clone(), engine.clone());
    let scrape = Scrape::new(ScrapeConfig {
        metrics: metrics.clone(),
        memory: Box::new(move || memory.store().memory()),
        fleet: Box::new(move || fleet.store().figures()),
        feeds: reloaders.iter().map(Reloader::state).collect(),
        control: Arc::default(),
        logs,
        started: clock.wall(),
    });
    let shared = Shared {
        engine,
        clock,
        answer: config.answer.config()?,
        limits: config.net,
        tokens: tokens(config)?.map(Arc::new),
        sealer,
        metrics,
        scrape,
        drain: Drain::default(),
        settlements: Settlements::default(),
        explains: Semaphore::new(1),
        in_batches: Semaphore::new(IN_BATCHES_MAX),
        probe: Probe::default(),
        envoy: envoy_rls::Domains::new(&config.envoy),
        resp,
        admin_url: OnceLock::new(),
    };
    let admin_secret = keys.admin();
    // A secret that is made at the start, or that lives in a store, may be another one tomorrow: old rows would be lost.
    let site_secret = config.secret_file.as_ref().map(|_| keys.clients_at_rest());
    let secret = keys.compile_options().secret;
    Ok(Started { shared, reloaders, assembly, secret, site_secret, admin_secret, violations })
}

/// The tokens that callers must present; `None` if they need none. Those of the database are added when it is followed.
fn tokens(config: &Config) -> Result<Option<Tokens>> {
    match &config.token_file {
        Some(file) => Tokens::read(file).map(Some),
        None => Ok(config.require_token.then(Tokens::default)),
    }
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
fn load(config: &Config, keys: &Keys) -> Result<Option<(Written, (Source, Mark))>> {
    let Some(path) = config.rules.clone() else { return Ok(None) };
    let name = path.display().to_string();
    let source = Source { path, options: keys.compile_options() };
    match source.load() {
        Ok(loaded) => Ok(Some((loaded.written, (source, loaded.mark)))),
        Err(FeedError::Invalid(report)) => Err(anyhow::Error::new(*report)),
        Err(error) => bail!("cannot read {name}: {error}"),
    }
}

/// The domains of Envoy's files to begin with, held until the start is over. A file that cannot be used ends the start.
fn load_domains(config: &Config, keys: &Keys, assembly: &Assembly) -> Result<Option<(Directory, Mark)>> {
    let Some(path) = config.envoy.config.clone() else { return Ok(None) };
    if let names @ (1 | 2 | 4..) = config.envoy.headers.len() {
        bail!("envoy_headers has {names} names: name three header fields, for limit, remaining and reset");
    }
    let duplicates = if config.envoy.merge_domains { Duplicates::Merge } else { Duplicates::Refuse };
    let allow_shrink = config.envoy.allow_shrink;
    let directory = Directory { path, duplicates, allow_shrink, options: keys.compile_options() };
    let (domains, mark) = directory.load().map_err(|error| match error {
        FeedError::Invalid(report) => anyhow::Error::new(*report),
        error => anyhow!("cannot read {}: {error}", directory.path.display()),
    })?;
    if domains.domains.is_empty() {
        warn!(directory = %directory.path.display(), "no *.yaml or *.yml here: no domain of Envoy's is limited");
    }
    assembly.hold_domains(domains).map_err(|error| anyhow!("{error}"))?;
    Ok(Some((directory, mark)))
}

pub(crate) fn decision_log(config: &Config, keys: &Keys) -> Result<Option<DecisionLog>> {
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

pub(crate) fn data_tls(config: &Config) -> Result<Option<Arc<Tls>>> {
    let (Some(certificate), Some(key)) = (&config.tls_cert, &config.tls_key) else { return Ok(None) };
    let (client_ca, client_names) = (config.tls_client_ca.clone(), config.tls_client_names.clone());
    Ok(Some(Arc::new(Tls::read(TlsFiles { client_ca, client_names, ..TlsFiles::new(certificate, key) })?)))
}

pub(crate) fn admin_tls(config: &Config) -> Result<Option<Arc<Tls>>> {
    let ControlSettings { tls_cert, tls_key, client_ca, client_names, .. } = &config.control;
    let (Some(certificate), Some(key)) = (tls_cert, tls_key) else { return Ok(None) };
    let (client_ca, client_names) = (client_ca.clone(), client_names.clone());
    Ok(Some(Arc::new(Tls::read(TlsFiles { client_ca, client_names, ..TlsFiles::new(certificate, key) })?)))
}

pub(crate) fn metrics_tls(config: &Config) -> Result<Option<Arc<Tls>>> {
    let (Some(certificate), Some(key)) = (&config.metrics_tls_cert, &config.metrics_tls_key) else { return Ok(None) };
    Ok(Some(Arc::new(Tls::read(TlsFiles::new(certificate, key))?)))
}

/// Settings that were given and do nothing, because what they are about is off.
fn warn_of_idle_settings(config: &Config) {
    if config.resp.password_file.is_some() && config.resp.address.is_none() {
        warn!("resp_password_file is set, and RESP is off: give it an address with --resp");
    }
    let AuthSettings { attributes, cost_header, namespace, .. } = AuthSettings::default();
    let auth = &config.auth;
    let is_set = auth.attributes != attributes || auth.cost_header != cost_header || auth.namespace != namespace;
    if is_set && auth.source == AuthSource::Off {
        warn!("auth_attributes, auth_cost_header or auth_namespace is set, and forward-auth is off: set --auth-source");
    }
}

pub(crate) fn bind(config: &Config) -> Result<Vec<(Surface, Listener)>> {
    warn_of_idle_settings(config);
    let data = config.http.iter().map(|address| (Surface::Data, address));
    let admin = config.admin.iter().map(|address| (Surface::Admin, address));
    let metrics = config.metrics.iter().map(|address| (Surface::Metrics, address));
    let grpc = config.grpc.address.iter().map(|address| (Surface::Grpc, address));
    let resp = config.resp.address.iter().map(|address| (Surface::Resp, address));
    data.chain(grpc)
        .chain(resp)
        .chain(admin)
        .chain(metrics)
        .map(|(surface, address)| {
            let bound = Listener::bind(address, config.socket_mode);
            Ok((surface, bound.map_err(|error| anyhow!("{error:#}; {}", hint(surface)))?))
        })
        .collect()
}

fn hint(surface: Surface) -> &'static str {
    match surface {
        Surface::Data => "choose another address with --http HOST:PORT (port 0 picks a free one)",
        Surface::Grpc => "choose another address with --grpc HOST:PORT, or none with --grpc off",
        Surface::Resp => "choose another address with --resp HOST:PORT, or none with --resp off",
        Surface::Admin => "choose another address with --admin HOST:PORT, or none with --admin off",
        Surface::Metrics => "choose another address with --metrics HOST:PORT, or none with --metrics off",
    }
}
