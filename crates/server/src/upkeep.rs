//! Periodic work beside serving: reloads changed files, sweeps memory, maintains the shared store.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use tollgate_store::Store;
use tracing::{error, info, warn};

use crate::control_plane::ControlPlane;
use crate::gateway::RunningGateway;
use crate::parts::ServerParts;
use crate::quota_journal::QuotaFiles;
use crate::rule_sources::Reloader;
use crate::signal_watch::SignalWatch;
use tollgate_config::{Config, Durability};
use tollgate_net::tls::Tls;
use tollgate_service::store::{ConfiguredStore, SecretAgreement};
use tollgate_telemetry::{Lines, LogThrottle};

/// How often certificates and tokens are checked for changes, and a few buckets are swept.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How often a shared store is maintained: leases renewed and returned, counts sent.
const STORE_UPKEEP_INTERVAL: Duration = Duration::from_millis(50);

/// The periodic work of one server.
pub(crate) struct Upkeep {
    pub(crate) config: Config,
    pub(crate) parts: ServerParts,
    pub(crate) control_plane: Arc<ControlPlane>,
    pub(crate) gateway: Option<Arc<RunningGateway>>,
    pub(crate) tls: Vec<Arc<Tls>>,
    /// Notified by SIGHUP.
    pub(crate) reload: Arc<Notify>,
    pub(crate) watch: SignalWatch,
}

impl Upkeep {
    pub(crate) async fn run(self) {
        let engine = self.parts.engine.clone();
        let store_upkeep = async {
            if engine.store().is_shared() {
                upkeep_store(engine.store()).await;
            }
        };
        let control_plane = self.control_plane.clone();
        tokio::join!(store_upkeep, control_plane.run(), self.run_checks());
    }

    async fn run_checks(mut self) {
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stamps = self.stamps();
        let throttle = LogThrottle::by_the_minute();
        let fleet_nodes = self.control_plane.fleet_nodes();
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    self.parts.engine.store().sweep();
                    self.watch.tick();
                    self.check_secret(&throttle).await;
                    self.compare_rules(&throttle).await;
                    self.check_durability(&throttle);
                    fleet_nodes.exchange().await;
                    if let Some(traffic) = &self.parts.traffic {
                        traffic.exchange_reports(self.parts.engine.store()).await;
                    }
                    self.gateway.iter().for_each(|running| running.gateway.tick());
                    let now = self.stamps();
                    if now != stamps {
                        self.reload_files();
                        stamps = now;
                    }
                }
                () = self.reload.notified() => {
                    info!("reloading everything");
                    self.parts.reloaders.iter().for_each(Reloader::trigger);
                    self.control_plane.trigger();
                    let access_log = self.gateway.as_ref().and_then(|running| running.log.as_ref());
                    self.parts.decision_log.iter().chain(access_log).for_each(Lines::reopen);
                    self.reload_files();
                }
            }
        }
    }

    async fn check_secret(&self, throttle: &LogThrottle) {
        let what = match self.parts.engine.store().check_secret().await {
            SecretAgreement::Together => return,
            SecretAgreement::Replaced => {
                "the store has another secret than this node: nodes that started after it lost its data count apart; \
                 restart this one, and give all nodes the same secret_file so that it does not happen again"
            }
            SecretAgreement::Apart => {
                "other nodes use this store with another secret: they and this one use different keys, and every limit \
                 holds once per secret; give all nodes the same secret_file, or none of them one, and restart those \
                 that differ (during a rotation this ends a minute after the last node with the old secret)"
            }
        };
        if let Some(unsaid) = throttle.admit("secret") {
            error!(unsaid, "{what}");
        }
    }

    async fn compare_rules(&self, throttle: &LogThrottle) {
        let differing = {
            let pinned = self.parts.engine.rules();
            self.parts.engine.store().compare_rules(pinned.number, &pinned.rules).await
        };
        if differing.nodes.is_empty() {
            return;
        }
        if let Some(unsaid) = throttle.admit("rules") {
            let nodes = differing.nodes.join(", ");
            match differing.is_minority {
                true => error!(unsaid, nodes, "this node decides by other rules than most nodes that share its store"),
                false => error!(unsaid, nodes, "these nodes share the store and decide by other rules than this one"),
            }
        }
    }

    /// Says that usage of quotas ends with this process because there is no directory for it.
    fn check_durability(&self, throttle: &LogThrottle) {
        let wants_files = self.config.store.durable == Durability::On && QuotaFiles::of(&self.config).is_none();
        let has_quotas = || self.parts.engine.store().in_process().is_some_and(|memory| memory.quota_buckets() > 0);
        if wants_files
            && has_quotas()
            && let Some(unsaid) = throttle.admit("durability")
        {
            warn!(unsaid, "usage of quotas ends with this process: set state_dir or db, or `durable: off`");
        }
    }

    /// Reloads certificates, tokens and passwords. After an error the old ones stay in use.
    fn reload_files(&self) {
        self.tls.iter().for_each(|tls| log_reload("certificate", tls.reload()));
        if let (Some(tokens), Some(file)) = (&self.parts.service.tokens, &self.config.token_file) {
            log_reload("tokens", tokens.reload(file));
        }
        if let Some(file) = &self.config.resp.password_file {
            log_reload("password of RESP", self.parts.resp_access.reload(file));
        }
        self.gateway.iter().for_each(|running| running.reload());
    }

    fn stamps(&self) -> Vec<Option<[i64; 4]>> {
        let certificates = self.tls.iter().flat_map(|tls| tls.files().paths());
        let secrets = self.config.token_file.iter().chain(&self.config.resp.password_file);
        let routes: Vec<PathBuf> = self.gateway.iter().flat_map(|running| running.files()).collect();
        let files = certificates.chain(secrets.map(PathBuf::as_path)).map(stamp);
        files.chain(routes.iter().map(|path| stamp(path))).collect()
    }
}

/// Maintains a shared store. The store itself logs when it is away or back.
async fn upkeep_store(store: &ConfiguredStore) {
    let mut ticks = interval(STORE_UPKEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        store.upkeep().await;
    }
}

/// Changes when a file is written or replaced.
fn stamp(path: &Path) -> Option<[i64; 4]> {
    let facts = fs::metadata(path).ok()?;
    Some([facts.ino().cast_signed(), facts.size().cast_signed(), facts.mtime(), facts.mtime_nsec()])
}

fn log_reload(what: &str, reload_files: Result<()>) {
    match reload_files {
        Ok(()) => info!(what, "reloaded"),
        Err(error) => error!(what, error = format!("{error:#}"), "cannot be reloaded; the old version stays in use"),
    }
}
