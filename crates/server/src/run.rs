//! Wiring: a configuration becomes a server, signals become its end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::sync::Notify;
use tokio::time::timeout;
use tollgate_control::record::Role;
use tollgate_core::Clock;
use tollgate_store::MonotonicClock;
use tracing::{error, info, warn};

use crate::admin::{Access, Admin, AdminConfig};
use crate::api::{Api, Shared, Surface};
use crate::backend::{self, Opened};
use crate::config::Config;
use crate::door::Door;
use crate::feed::Reloader;
use crate::forward_auth::Front;
use crate::grpc::Grpc;
use crate::http::Http;
use crate::net::tls::Tls;
use crate::net::{Address, Drain, Ground, Guests, Listener, Transit, accept, descriptors};
use crate::plane::{Parts, Plane};
use crate::resp::Resp;
use crate::signals::{Ending, Signals};
use crate::start::{self, Started};
use crate::telemetry::{Lines, Metrics};
use crate::upkeep::Upkeep;
use crate::violations::{Scribe, ScribeConfig, Violations};

/// A server that is bound and about to serve.
pub struct Server {
    pub(crate) config: Config,
    pub(crate) shared: Arc<Shared>,
    pub(crate) plane: Arc<Plane>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) admin_tls: Option<Arc<Tls>>,
    pub(crate) metrics_tls: Option<Arc<Tls>>,
    listeners: Vec<(Surface, Listener)>,
    violations: Option<Arc<Violations>>,
    reloaders: Vec<Reloader>,
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
        let (mut server, parts) = Server::over(opened, config, log)?;
        server.plane = Arc::new(Plane::start(&server.config, parts.clone()).await?);
        if let Some(tokens) = &server.shared.tokens {
            tokens.follow(server.plane.book.clone(), server.shared.clock.clone());
        }
        parts.assembly.settle();
        server.shared.probe.note(server.shared.engine.store());
        server.shared.scrape.follow(server.plane.states());
        Ok(server)
    }

    /// The same at once, with the buckets in memory and rules from the file, whatever store and database are configured.
    pub fn bind(config: Config, log: Option<Lines>) -> Result<Server> {
        Server::bind_on(Arc::new(MonotonicClock::new()), config, log)
    }

    /// The same on a clock of one's own.
    pub fn bind_on(clock: Arc<dyn Clock>, config: Config, log: Option<Lines>) -> Result<Server> {
        config.check_exposure()?;
        let opened = Opened::in_memory(&config, clock)?;
        let (server, parts) = Server::over(opened, config, log)?;
        parts.assembly.settle();
        Ok(server)
    }

    fn over(opened: Opened, config: Config, log: Option<Lines>) -> Result<(Server, Parts)> {
        let decisions = start::decision_log(&config, &opened.keys)?;
        let lines = decisions.as_ref().map(|log| log.lines().clone());
        let logs = log.clone().map(|log| ("log", log)).into_iter().chain(lines.clone().map(|log| ("decisions", log)));
        let Started { shared, reloaders, assembly, secret, site_secret, admin_secret, violations } =
            start::shared(&config, opened, decisions, logs.collect())?;
        let (tls, admin_tls) = (start::data_tls(&config)?, start::admin_tls(&config)?);
        let metrics_tls = start::metrics_tls(&config)?;
        let parts = Parts {
            engine: shared.engine.clone(),
            assembly,
            clock: shared.clock.clone(),
            secret,
            site_secret,
            admin_secret,
        };
        let listeners = start::bind(&config)?;
        let admin = listeners.iter().find(|(surface, _)| *surface == Surface::Admin);
        if let Some(address) = admin.and_then(|(_, listener)| listener.address().ok()) {
            let scheme = if admin_tls.is_some() { "https" } else { "http" };
            let _ = shared.admin_url.set(format!("{scheme}://{address}")); // set once
        }
        let server = Server {
            listeners,
            plane: Arc::new(Plane::without_database(&config, parts.clone())),
            config,
            shared: Arc::new(shared),
            tls,
            admin_tls,
            metrics_tls,
            reloaders,
            decisions: lines,
            log,
            hang_up: Arc::default(),
            violations,
        };
        Ok((server, parts))
    }

    /// What was bound: with the ports that were picked, where none were named.
    pub fn addresses(&self) -> Vec<(Surface, Address)> {
        self.listeners.iter().filter_map(|(surface, listener)| Some((*surface, listener.address().ok()?))).collect()
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
        let Server { config, shared, plane, tls, admin_tls, metrics_tls, listeners, .. } = self;
        let Server { violations, reloaders, decisions, log, hang_up, .. } = self;
        let drain = shared.drain.clone();
        // Operators have places of their own, and are the last to go: they want to see how it ends.
        let (guests, last) =
            (Guests::new(config.net.max_connections, config.net.max_connections_per_address), Drain::default());
        let operators = Guests::new(OPERATORS_MAX, OPERATORS_PER_ADDRESS_MAX);
        let transit = Transit::new(config.net.max_in_transit);
        for (surface, listener) in listeners {
            let (limits, clock, transit) = (config.net, shared.clock.clone(), transit.clone());
            let ground = |drain: &Drain| Ground { limits, drain: drain.clone(), clock, transit };
            let (api, metrics) = (Api::new(surface, shared.clone()), shared.metrics.clone());
            match surface {
                Surface::Data => {
                    let front = Front::new(api, shared.clone(), &config.auth);
                    let door = Door::new(Http::new(front), metrics, tls.clone(), ground(&drain));
                    tokio::spawn(accept(listener, guests.clone(), drain.clone(), door));
                }
                Surface::Grpc => {
                    let door = Door::new(Grpc::new(shared.clone(), &config.grpc), metrics, tls.clone(), ground(&drain));
                    tokio::spawn(accept(listener, guests.clone(), drain.clone(), door));
                }
                Surface::Resp => {
                    let door = Door::new(Resp::new(shared.clone(), &config.resp), metrics, tls.clone(), ground(&drain));
                    tokio::spawn(accept(listener, guests.clone(), drain.clone(), door));
                }
                Surface::Admin => {
                    let admin = Admin::new(api, admin_config(&config, &plane, &shared));
                    let door = Door::new(Http::new(admin), metrics, admin_tls.clone(), ground(&last));
                    tokio::spawn(accept(listener, operators.clone(), last.clone(), door));
                }
                Surface::Metrics => {
                    let door = Door::new(Http::new(api), metrics, metrics_tls.clone(), ground(&last));
                    tokio::spawn(accept(listener, operators.clone(), last.clone(), door));
                }
            }
        }
        let ended = Drain::default();
        let scribe = violations.zip(plane.control.clone()).map(|(violations, control)| {
            let (metrics, clock, ended) = (shared.metrics.clone(), shared.clock.clone(), ended.clone());
            let retention = config.control.violations_retention;
            let site_key = site_key(&config, &plane);
            let scribe = Scribe::new(ScribeConfig { violations, control, metrics, retention, clock, site_key });
            tokio::spawn(async move { scribe.run(ended.begun()).await })
        });
        let patience = config.net.drain_timeout;
        let store = shared.engine.clone();
        let tls = tls.into_iter().chain(admin_tls).chain(metrics_tls).collect();
        let upkeep = Upkeep { config, shared, plane, tls, reloaders, decisions: decisions.clone(), hang_up };
        let upkeep = tokio::spawn(upkeep.run());
        drain.begun().await;
        info!(connections = guests.present(), "draining");
        let left = drain.ended(patience).await;
        last.begin();
        last.ended(OPERATORS_PATIENCE).await;
        upkeep.abort();
        ended.begin();
        if let Some(scribe) = scribe {
            let _ = timeout(GOODBYE, scribe).await; // it says itself what was lost
        }
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

fn admin_config(config: &Config, plane: &Plane, shared: &Shared) -> AdminConfig {
    let reached = config.admin.as_ref().is_some_and(|address| !address.is_loopback());
    AdminConfig {
        control: plane.control.clone(),
        book: plane.book.clone(),
        switchboard: plane.switchboard.clone(),
        node: plane.node(shared.scrape.feeds()),
        clock: shared.clock.clone(),
        address: config.admin.clone().unwrap_or_else(|| Address::loopback(0)),
        allowed_hosts: config.control.allowed_hosts.clone(),
        metrics: if reached { Access::Needs(Role::Viewer) } else { Access::Open },
        secret: plane.admin_secret(),
        site_key: site_key(config, plane),
    }
}

/// What client keys are hashed with at rest; `None` if they are kept as they are.
fn site_key(config: &Config, plane: &Plane) -> Option<[u8; 32]> {
    (!config.control.violations_plain_keys).then(|| plane.site_key())
}

/// Connections of operators and probes, beside those of callers.
const OPERATORS_MAX: usize = 256;
/// From one address: one that is silent on many must leave room for others.
const OPERATORS_PER_ADDRESS_MAX: usize = 64;
/// How long they may take to go once everybody else has gone.
const OPERATORS_PATIENCE: Duration = Duration::from_millis(100);

/// How long leases may take to be given back.
const GOODBYE: Duration = Duration::from_secs(3);

/// How long the logs may take to be written at the end.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

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
        server.config.exposures().iter().for_each(|exposure| warn!("{exposure}"));
        count_panics(server.shared.metrics.clone());
        let (drain, hang_up) = (server.drain(), server.hang_up.clone());
        let (hang_up, delay) = (move || hang_up.notify_one(), server.config.net.drain_delay);
        let signals = async {
            // Whoever is at a terminal waits for nothing; a supervisor has balancers that are to look elsewhere first.
            if signals.end(&hang_up).await == Ending::Terminate && !delay.is_zero() {
                info!(?delay, "going: health checks say no, everybody is served on");
                drain.announce();
                if timeout(delay, signals.end(&hang_up)).await.is_ok() {
                    return;
                }
            }
            drain.begin();
            signals.end_again(&hang_up).await;
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
