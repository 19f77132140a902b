//! Opens the configured store, and gets the secret that all of its nodes share.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tokio::time::timeout;
use tollgate_core::{Clock, Span};
use tollgate_store::{Fleet, FleetConfig};
use tollgate_store_redis::check::FindingLevel;
use tollgate_store_redis::{Finding, Login, Password, RedisConfig, RedisStore, StoreUrl, check};
use tracing::{debug, error, info, warn};

use crate::quota_journal::{OpenedQuotaJournal, QuotaFiles};
use tollgate_config::{Config, StorePlace, StoreSettings};
use tollgate_service::secrets::{self, SecretKeys};
use tollgate_service::store::{ConfiguredStore, FleetNode, NodeStatuses, RulesCheck, SecretCheck};

/// How long to wait for the store before the start fails, or continues without it.
const FIRST_CONTACT_TIMEOUT: Span = Span::from_secs(2);
/// How long the check of the store may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest password that is read.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// A store, and the keys of its buckets and receipts.
pub(crate) struct OpenedStore {
    pub(crate) store: ConfiguredStore,
    pub(crate) keys: SecretKeys,
    pub(crate) clock: Arc<dyn Clock>,
    /// The journal of quotas, if buckets in memory are durable.
    pub(crate) journal: Option<OpenedQuotaJournal>,
}

/// Opens the configured store. Needs a runtime for the tasks of a shared store.
pub(crate) async fn open(config: &Config, clock: Arc<dyn Clock>) -> Result<OpenedStore> {
    let StorePlace::Shared(url) = &config.store.place else { return OpenedStore::durable(config, clock) };
    let own = config.secret_file.as_deref().map(|path| SecretKeys::read(Some(path))).transpose()?;
    let redis = redis_config(url, &config.store, node_name(config)?)?;
    let store = RedisStore::start(redis.clone(), clock.clone());
    let decides = store.ready(FIRST_CONTACT_TIMEOUT).await;
    let findings = timeout(CHECK_TIMEOUT, check(&redis)).await.unwrap_or_default();
    let problems = problems(&findings);
    match decides {
        Ok(()) if problems.is_empty() => findings.iter().for_each(log_finding),
        // Waiting does not help: the store answers, and is misconfigured.
        _ if !problems.is_empty() && is_reached(&store) => bail!("the store {url} cannot be used: {problems}"),
        decides => {
            let why = decides.err().map(|error| error.to_string()).unwrap_or_default();
            let why = if problems.is_empty() { why } else { problems };
            match own {
                Some(_) => {
                    error!(store = %url, why, "cannot reach the store: started without it, on_fail decides");
                    if config.store.nodes.is_none() {
                        warn!(
                            "the number of nodes is unknown: until the store is back, every node that starts now falls back \
                             to the whole limits; set `nodes` to their number, and each takes its share"
                        );
                    }
                }
                None => bail!(
                    "cannot reach the store {url}: {why}. Start it, or correct `store`; to start without it, give all \
                     nodes the same secret_file (openssl rand -hex 32 > secret), because otherwise their secret comes \
                     from the store"
                ),
            }
        }
    }
    let (keys, secret) = match own {
        Some(keys) => (keys, None),
        None => {
            let secret = store.secret().await;
            let secret =
                secret.map_err(|error| anyhow!("cannot get the secret of the nodes from the store {url}: {error}"))?;
            (SecretKeys::of(&secret), Some(secret))
        }
    };
    let StoreSettings { deny_cache_ttl, lease_ttl, async_interval, nodes, .. } = config.store;
    let fleet = FleetConfig {
        nodes: nodes.map_or(1, |nodes| nodes as u64),
        deny_cache_ttl: span(deny_cache_ttl),
        lease_ttl: span(lease_ttl),
        async_interval: span(async_interval),
        ..FleetConfig::default()
    };
    info!(store = %url, "buckets are shared");
    let fleet = Fleet::new(store, fleet, clock.clone());
    let secret_check = SecretCheck::new(&keys, secret);
    let (rules_check, node_statuses) = (RulesCheck::default(), NodeStatuses::default());
    let node = FleetNode { fleet, secret_check, rules_check, node_statuses, clock: clock.clone() };
    Ok(OpenedStore { store: ConfiguredStore::Shared(Box::new(node)), keys, clock, journal: None })
}

impl OpenedStore {
    /// Buckets in this process, with its own secret unless one is configured.
    pub(crate) fn in_memory(config: &Config, clock: Arc<dyn Clock>) -> Result<OpenedStore> {
        let keys = SecretKeys::read(config.secret_file.as_deref())?;
        let store = ConfiguredStore::in_memory(config.max_memory, clock.clone());
        Ok(OpenedStore { store, keys, clock, journal: None })
    }

    /// The same with the usage of quotas that an earlier process left. Without a `secret_file` the secret is kept beside
    /// the journal: under another one no bucket would be found.
    fn durable(config: &Config, clock: Arc<dyn Clock>) -> Result<OpenedStore> {
        let Some(files) = QuotaFiles::of(config) else { return OpenedStore::in_memory(config, clock) };
        let (keys, is_new) = match &config.secret_file {
            Some(path) => (SecretKeys::read(Some(path))?, false),
            None => SecretKeys::kept(&files.secret)?,
        };
        let store = ConfiguredStore::in_memory(config.max_memory, clock.clone());
        let open = |memory| OpenedQuotaJournal::open(files, &keys, is_new, memory);
        let journal = store.in_process().map(open).transpose()?;
        Ok(OpenedStore { store, keys, clock, journal })
    }
}

/// The client configuration for the servers at `url`.
pub fn redis_config(url: &StoreUrl, settings: &StoreSettings, node: String) -> Result<RedisConfig> {
    let mut url = url.clone();
    if let Some(path) = &settings.password_file {
        let user = url.login.and_then(|login| login.user);
        url.login = Some(Login { user, password: password(path)? });
    }
    let StoreSettings { connections, ca, cert, key, skip_hostname, insecure_tls, require_noeviction, nodes, .. } =
        settings.clone();
    Ok(RedisConfig {
        within: span(settings.timeout.min(settings.decision_deadline)),
        connections,
        ca,
        client_certificate: cert.zip(key),
        skip_hostname,
        insecure_tls,
        node,
        nodes: nodes.map(|nodes| nodes as u64),
        new_keys_per_second: settings.new_keys_per_second as u64,
        require_noeviction,
        ..RedisConfig::new(url)
    })
}

/// The unique name of this node in the fleet: two on one machine are counted as two.
fn node_name(config: &Config) -> Result<String> {
    Ok(format!("{}-{:08x}", config.node_name(), secrets::random()? as u32))
}

fn password(path: &Path) -> Result<Password> {
    let unreadable = || format!("store_password_file: cannot read {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(unreadable)?;
    file.take(PASSWORD_BYTES_MAX).read_to_string(&mut text).with_context(unreadable)?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => bail!("store_password_file: {} is empty; write the password into it", path.display()),
        password => Ok(Password::new(password)),
    }
}

/// True if every primary is connected.
fn is_reached(store: &RedisStore) -> bool {
    let primaries = store.stats().primaries;
    !primaries.is_empty() && primaries.iter().all(|(health, _)| health.connected)
}

fn log_finding(finding: &Finding) {
    let Finding { level, what, help } = finding;
    match level {
        FindingLevel::Ok => debug!("store: {what}"),
        FindingLevel::Warning | FindingLevel::Problem => warn!("store: {what}; {help}"),
    }
}

fn problems(findings: &[Finding]) -> String {
    let problems = findings.iter().filter(|finding| finding.level == FindingLevel::Problem);
    problems.map(|Finding { what, help, .. }| format!("{what} ({help})")).collect::<Vec<_>>().join("; ")
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
