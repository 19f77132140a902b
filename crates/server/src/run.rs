//! The life of a server: opened, run until the drain, ended. And of a process: signals begin and end it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tollgate_admin::{AdminAccess, AdminConfig};
use tollgate_config::Config;
use tollgate_control::record::Role;
use tollgate_core::Clock;
use tollgate_net::{Address, Drain, raise_descriptor_limit};
use tollgate_service::penalties::{PenaltyHolder, PenaltyWriter};
use tollgate_service::usage_history::{UsageWriter, UsageWriterConfig};
use tollgate_service::violations::{KeyHashing, ViolationWriter, ViolationWriterConfig};
use tollgate_store::{MonotonicClock, Store as _};
use tollgate_telemetry::{Lines, PanicCounter};
use tracing::{error, info, warn};

use crate::control_plane::ControlPlane;
use crate::gateway::RunningGateway;
use crate::listeners::{Certificates, Listeners};
use crate::parts::ServerParts;
use crate::quota_journal::QuotaJournalWriter;
use crate::signals::{Signals, StopSignal};
use crate::store::{self, OpenedStore};
use crate::surface::Surface;
use crate::upkeep::Upkeep;

/// How long operators may take to disconnect after the last caller has.
const OPERATOR_DRAIN_TIMEOUT: Duration = Duration::from_millis(100);
/// How long returning leases, writing the last violations, the history and the last usage of quotas may take,
/// each.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long flushing the logs may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// A server that is bound and about to serve.
pub struct Server {
    pub(crate) config: Config,
    pub(crate) parts: ServerParts,
    pub(crate) control_plane: Arc<ControlPlane>,
    pub(crate) certificates: Certificates,
    listeners: Listeners,
    /// The gateway, if it listens.
    gateway: Option<Arc<RunningGateway>>,
    /// Writes the journal of quotas.
    journal: Option<QuotaJournalWriter>,
    log: Option<Lines>,
    /// Notified to reload everything.
    reload: Arc<Notify>,
}

impl Server {
    /// Reads everything that the configuration names, opens the store and binds every address. Needs a runtime; serves
    /// nothing yet. `log` is the process log, if there is one: it is counted and flushed with the rest.
    pub async fn open(config: Config, log: Option<Lines>) -> Result<Server> {
        config.check_exposure()?;
        let opened = store::open(&config, Arc::new(MonotonicClock::new())).await?;
        let mut server = Server::over(opened, config, log)?;
        let control_plane = ControlPlane::start(&server.config, server.parts.control_plane()).await?;
        server.control_plane = Arc::new(control_plane);
        if let Some(tokens) = &server.parts.service.tokens {
            tokens.follow(server.control_plane.tokens.clone(), server.parts.service.clock.clone());
        }
        server.parts.publisher.settle();
        server.parts.service.note_store();
        server.parts.database.follow(server.control_plane.states());
        server.journal = server.parts.start_journal()?;
        Ok(server)
    }

    /// The same at once, with the buckets in memory and rules from the file, whatever store and database are
    /// configured.
    pub fn bind(config: Config, log: Option<Lines>) -> Result<Server> {
        Server::bind_on(Arc::new(MonotonicClock::new()), config, log)
    }

    /// The same on a given clock.
    pub fn bind_on(clock: Arc<dyn Clock>, config: Config, log: Option<Lines>) -> Result<Server> {
        config.check_exposure()?;
        let opened = OpenedStore::in_memory(&config, clock)?;
        let server = Server::over(opened, config, log)?;
        server.parts.publisher.settle();
        Ok(server)
    }

    fn over(opened: OpenedStore, config: Config, log: Option<Lines>) -> Result<Server> {
        let parts = ServerParts::build(&config, opened, log.clone())?;
        let certificates = Certificates::read(&config)?;
        let listeners = Listeners::bind(&config)?;
        let admin = listeners.addresses().into_iter().find(|(surface, _)| *surface == Surface::Admin);
        if let Some((_, address)) = admin {
            let scheme = if certificates.admin.is_some() { "https" } else { "http" };
            let _ = parts.admin_url.set(format!("{scheme}://{address}")); // set once
        }
        let control_plane = Arc::new(ControlPlane::without_database(&config, parts.control_plane()));
        let gateway = RunningGateway::start(&config, &parts, certificates.data.is_some())?.map(Arc::new);
        let (journal, reload) = (None, Arc::default());
        Ok(Server { config, parts, control_plane, certificates, listeners, gateway, journal, log, reload })
    }

    /// The bound addresses, with the ports that the system picked.
    pub fn addresses(&self) -> Vec<(Surface, Address)> {
        self.listeners.addresses()
    }

    /// The shutdown signal: the server runs until the drain begins.
    pub fn drain(&self) -> Drain {
        self.parts.drain.clone()
    }

    /// Notified, reloads rules, certificates and tokens, as SIGHUP does.
    pub fn reload(&self) -> Arc<Notify> {
        self.reload.clone()
    }

    /// Serves until the drain begins, then answers what was accepted. Returns how many connections had to be cut.
    pub async fn run(self) -> usize {
        let admin = self.admin_config();
        let penalty_holder = admin.penalty_holder.clone();
        let Server { config, parts, control_plane, certificates, listeners, gateway, journal, log, reload } = self;
        parts.quota_marks.name_clients(KeyHashing::hashed(&control_plane.site_key()));
        let drains = listeners.serve(&config, &parts, &certificates, admin, gateway.as_deref());
        let ended = Drain::default();
        let writer = violation_writer(&config, &parts, &control_plane)
            .map(|writer| (ended.clone(), writer))
            .map(|(ended, writer)| tokio::spawn(async move { writer.run(ended.begun()).await }));
        let usage = usage_writer(&config, &parts, &control_plane)
            .map(|writer| (ended.clone(), writer))
            .map(|(ended, writer)| tokio::spawn(async move { writer.run(ended.begun()).await }));
        let penalty_writer = penalty_writer(&config, &parts, &control_plane, penalty_holder)
            .map(|writer| (ended.clone(), writer))
            .map(|(ended, writer)| tokio::spawn(async move { writer.run(ended.begun()).await }));
        let clock = parts.service.clock.clone();
        let dispatcher = parts.webhooks.as_ref();
        let dispatcher = dispatcher
            .and_then(|webhooks| webhooks.dispatcher(&config, &clock, &control_plane, parts.events.clone()))
            .map(|dispatcher| (ended.clone(), dispatcher))
            .map(|(ended, dispatcher)| tokio::spawn(async move { dispatcher.run(ended.begun()).await }));
        let exporter = parts.otlp.as_ref().map(|otlp| {
            let (scrape, clock) = (parts.pages.scrape.clone(), parts.service.clock.clone());
            let (exporter, ended) = (otlp.exporter(scrape, clock, config.node_name()), ended.clone());
            tokio::spawn(async move { exporter.run(ended.begun()).await })
        });
        let (drain_timeout, engine) = (config.net.drain_timeout, parts.engine.clone());
        let decisions = parts.decision_log.clone();
        let refilled = engine.clone();
        let refills = tokio::spawn(async move { refilled.store().run_refills().await });
        let penalised = engine.clone();
        let penalties = tokio::spawn(async move { penalised.run_penalties().await });
        let link = parts.traffic.clone().map(|traffic| {
            traffic.show_clients_by(KeyHashing::hashed(&control_plane.site_key()));
            let asked = engine.clone();
            tokio::spawn(async move { traffic.run_link(asked.store()).await })
        });
        let access_log = gateway.as_ref().and_then(|running| running.log.clone());
        let tls = certificates.all();
        let watch = parts.signal_watch();
        let upkeep = tokio::spawn(Upkeep { config, parts, control_plane, gateway, tls, reload, watch }.run());

        drains.callers.begun().await;
        info!(connections = drains.connections.count(), "draining");
        let left = drains.callers.ended(drain_timeout).await;
        drains.operators.begin();
        drains.operators.ended(OPERATOR_DRAIN_TIMEOUT).await;
        upkeep.abort();
        ended.begin();
        for writer in [writer, usage, penalty_writer, dispatcher, exporter].into_iter().flatten() {
            let _ = timeout(CLOSE_TIMEOUT, writer).await; // it logs itself what was lost
        }
        if timeout(CLOSE_TIMEOUT, engine.store().close()).await.is_err() {
            warn!(
                "the store could not be closed in time: units and slots that this node holds return when they expire"
            );
        }
        penalties.abort();
        link.iter().for_each(JoinHandle::abort);
        refills.abort(); // closing has waited for the refills under way
        if let Some(journal) = journal
            && timeout(CLOSE_TIMEOUT, tokio::task::spawn_blocking(|| journal.close())).await.is_err()
        {
            error!("the disk did not take the last usage of quotas in time: it may be lost");
        }
        if left > 0 {
            warn!(connections = left, "connections were cut off");
        }
        info!("stopped");
        let flush = move || decisions.iter().chain(&access_log).chain(&log).all(|lines| lines.flush(FLUSH_TIMEOUT));
        tokio::task::spawn_blocking(flush).await.unwrap_or_default();
        left
    }

    fn admin_config(&self) -> AdminConfig {
        let Server { config, parts, control_plane, .. } = self;
        let is_exposed = config.admin.as_ref().is_some_and(|address| !address.is_loopback());
        AdminConfig {
            control: control_plane.control.clone(),
            tokens: control_plane.tokens.clone(),
            mode_switch: control_plane.mode_switch.clone(),
            node: control_plane.node(parts.files.0.clone()),
            clock: parts.service.clock.clone(),
            address: config.admin.clone().unwrap_or_else(|| Address::loopback(0)),
            allowed_hosts: config.control.allowed_hosts.clone(),
            metrics: if is_exposed { AdminAccess::Needs(Role::Viewer) } else { AdminAccess::Open },
            secret: control_plane.admin_secret(),
            site_key: control_plane.site_key(),
            webhooks: (parts.webhooks.as_ref())
                .and_then(|webhooks| webhooks.webhooks(config, &parts.service.clock, control_plane)),
            traffic: parts.traffic.clone(),
            penalty_holder: self.penalty_holder(),
        }
    }

    fn penalty_holder(&self) -> PenaltyHolder {
        let name = self.config.node_name();
        let admin = self.addresses().into_iter().find(|(surface, _)| *surface == Surface::Admin);
        let node = admin.map_or(name.clone(), |(_, address)| format!("{name}@{address}"));
        PenaltyHolder { node, is_store_shared: self.parts.engine.store().is_shared() }
    }
}

/// Writes violations behind, if there is a database.
fn violation_writer(config: &Config, parts: &ServerParts, control_plane: &ControlPlane) -> Option<ViolationWriter> {
    Some(ViolationWriter::new(ViolationWriterConfig {
        violations: parts.violations.clone()?,
        control: control_plane.control.clone()?,
        metrics: parts.violation_metrics.clone(),
        retention: config.control.violations_retention,
        clock: parts.service.clock.clone(),
        site_key: (!config.control.violations_plain_keys).then(|| control_plane.site_key()),
    }))
}

/// Writes penalties behind, if there is a database.
fn penalty_writer(
    config: &Config,
    parts: &ServerParts,
    control_plane: &ControlPlane,
    holder: PenaltyHolder,
) -> Option<PenaltyWriter> {
    let is_plain = config.control.violations_plain_keys;
    Some(PenaltyWriter {
        penalties: parts.penalties.clone(),
        control: control_plane.control.clone()?,
        clock: parts.service.clock.clone(),
        client_keys: if is_plain { KeyHashing::plain() } else { KeyHashing::hashed(&control_plane.site_key()) },
        holder,
    })
}

/// Writes the usage of quotas behind, if there is a database.
fn usage_writer(config: &Config, parts: &ServerParts, control_plane: &ControlPlane) -> Option<UsageWriter> {
    Some(UsageWriter::new(UsageWriterConfig {
        tracker: parts.usage.clone()?,
        engine: parts.engine.clone(),
        control: control_plane.control.clone()?,
        metrics: parts.usage_metrics.clone(),
        retention: config.control.usage_retention,
        clock: parts.service.clock.clone(),
        site_key: (!config.control.usage_plain_keys).then(|| control_plane.site_key()),
        node: config.node_name(),
    }))
}

/// Serves until a signal ends it. `announce` gets the start-up banner once everything is bound.
pub fn serve(config: Config, log: Option<Lines>, announce: impl FnOnce(&str) -> Result<()>) -> Result<()> {
    raise_descriptor_limit(config.net.max_connections);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = config.threads {
        builder.worker_threads(threads);
    }
    let runtime = builder.enable_all().build().context("cannot start threads")?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let server = Server::open(config, log).await?;
        announce(&server.startup_banner())?;
        server.config.exposures().iter().for_each(|exposure| warn!("{exposure}"));
        count_panics(server.parts.panics.clone());
        let (drain, reload, delay) = (server.drain(), server.reload(), server.config.net.drain_delay);
        let reload = move || reload.notify_one();
        let signals = async {
            // Ctrl-C drains at once; a supervisor's load balancers get time to look elsewhere first.
            if signals.end(&reload).await == StopSignal::Terminate && !delay.is_zero() {
                info!(?delay, "drain announced: health checks failing, still serving");
                drain.announce();
                if timeout(delay, signals.end(&reload)).await.is_ok() {
                    return;
                }
            }
            drain.begin();
            signals.end_again(&reload).await;
        };
        tokio::select! {
            _ = server.run() => Ok(()),
            () = signals => bail!("stopped at once by a second signal"),
        }
    })
}

/// Counts panics and logs their place; their message may contain a client's key and is left out.
fn count_panics(panics: Arc<PanicCounter>) {
    std::panic::set_hook(Box::new(move |panic| {
        panics.add_one();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        error!(place, "panicked; this is a bug in Tollgate");
    }));
}
