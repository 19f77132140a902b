//! The gateway's life in a server: built from the settings or the routes file, and loaded again when a file changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tollgate_config::{AccessFormat, Config, GatewaySettings};
use tollgate_gateway::spec::{self, GatewaySpec, UpstreamUrl};
use tollgate_gateway::{AccessLogConfig, AccessLogFormat, Gateway, GatewayConfig, fetch};
use tollgate_identity::{Identifier, IdentityContext, RemoteKeys};
use tollgate_service::api_keys::ApiKeys;
use tollgate_service::auth_throttle::AuthThrottle;
use tollgate_telemetry::{Lines, Sink};
use tracing::{error, info};

use crate::parts::ServerParts;

/// The gateway, and where its routes come from.
pub(crate) struct RunningGateway {
    pub(crate) gateway: Gateway,
    /// The access log, to be opened again and flushed.
    pub(crate) log: Option<Lines>,
    source: GatewaySource,
    /// Keep the keys of tokens fresh that are fetched.
    followed: Mutex<FollowedKeys>,
}

/// What routes and identities are made from.
struct GatewaySource {
    settings: GatewaySettings,
    keys: Arc<ApiKeys>,
    throttle: Arc<AuthThrottle>,
    clock: Arc<dyn tollgate_core::Clock>,
}

impl RunningGateway {
    /// The gateway as configured; `None` if it does not listen. A routes file with a mistake ends the start.
    pub(crate) fn start(config: &Config, parts: &ServerParts, is_tls: bool) -> Result<Option<RunningGateway>> {
        let settings = config.gateway.clone();
        if settings.listen.is_none() {
            return Ok(None);
        }
        let log = settings.access_log.as_deref().map(open_log).transpose()?;
        let clock = parts.service.clock.clone();
        let throttle = Arc::new(AuthThrottle::new(clock.clone(), parts.keys.compile_options().secret));
        let source = GatewaySource { settings, keys: parts.api_keys.clone(), throttle, clock: clock.clone() };
        let (spec, identifier) = source.load()?;
        let access_log = log.clone().map(|lines| AccessLogConfig {
            lines,
            format: match source.settings.access_log_format {
                AccessFormat::Json => AccessLogFormat::Json,
                AccessFormat::Combined => AccessLogFormat::Combined,
            },
            sample_percent: u8::try_from(source.settings.access_log_sample).unwrap_or(100),
            secret: parts.keys.decision_log(),
        });
        let followed = Mutex::new(FollowedKeys::start(identifier.clone()));
        let gateway = Gateway::new(GatewayConfig {
            service: parts.service.clone(),
            identifier,
            clock,
            spec,
            is_tls,
            shadow: source.settings.shadow,
            access_log,
        })?;
        parts.pages.scrape.register(gateway.families());
        Ok(Some(RunningGateway { gateway, log, source, followed }))
    }

    /// Loads the routes file and the files of identities again. A file with a mistake changes nothing.
    pub(crate) fn reload(&self) {
        let loaded = self.source.load().and_then(|(spec, identifier)| {
            let mut followed = self.followed.lock();
            for (keys, before) in pairs(&identifier, &followed.identifier) {
                keys.adopt(before);
            }
            self.gateway.reload(&spec, identifier.clone())?;
            *followed = FollowedKeys::start(identifier); // which ends the tasks of before
            Ok(())
        });
        match loaded {
            Ok(()) => info!("routes loaded"),
            Err(error) => error!("the routes stay as they were: {error:#}"),
        }
    }

    /// The files whose change loads the routes again.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let Some(routes) = &self.source.settings.routes else { return Vec::new() };
        let folder = folder_of(routes);
        let named = self.source.spec().map(|spec| {
            let mut files = spec.identity.files(folder);
            files.extend(spec.cost_files(folder));
            files.extend(spec.tls_files(folder));
            files
        });
        std::iter::once(routes.clone()).chain(named.unwrap_or_default()).collect()
    }
}

impl GatewaySource {
    fn load(&self) -> Result<(GatewaySpec, Arc<Identifier>)> {
        let mut spec = self.spec()?;
        let folder = self.settings.routes.as_deref().map_or(Path::new("."), folder_of);
        spec.load_cost_files(folder)?;
        spec.load_tls_files(folder)?;
        let context = IdentityContext {
            folder,
            keys: self.keys.clone(),
            clock: self.clock.clone(),
            throttle: Some(self.throttle.clone()),
        };
        let identifier = Identifier::load(&spec.identity, context).context("identity")?;
        Ok((spec, Arc::new(identifier)))
    }

    fn spec(&self) -> Result<GatewaySpec> {
        let GatewaySettings { upstream, routes, .. } = &self.settings;
        match (upstream.is_empty(), routes) {
            (false, Some(_)) => bail!("upstream and routes both say where requests go: name one; routes can do more"),
            (true, None) => bail!(
                "the gateway has nothing to forward to: name a server (--upstream http://127.0.0.1:3000), or a file with \
                 routes (--routes FILE)"
            ),
            _ => {}
        }
        let Some(path) = &self.settings.routes else {
            let servers = self.settings.upstream.iter().map(|url| {
                let read = url.parse::<UpstreamUrl>();
                read.map_err(|error| anyhow!("upstream: {}; {}", error.message, error.help))
            });
            return Ok(GatewaySpec::all_to(servers.collect::<Result<_>>()?));
        };
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        spec::read_bytes(&path.display().to_string(), &bytes).map_err(anyhow::Error::new)
    }
}

/// The key sets that have a URL, fetched for as long as this lives.
struct FollowedKeys {
    identifier: Arc<Identifier>,
    _tasks: JoinSet<()>,
}

impl FollowedKeys {
    fn start(identifier: Arc<Identifier>) -> FollowedKeys {
        let mut tasks = JoinSet::new();
        for keys in identifier.remote_keys() {
            let keys = keys.clone();
            tasks.spawn(async move { keys.follow(|url| fetch(url, RemoteKeys::BODY_BYTES_MAX)).await });
        }
        FollowedKeys { identifier, _tasks: tasks }
    }
}

/// Every fetched key set with every one of before.
fn pairs<'a>(
    identifier: &'a Identifier,
    before: &'a Identifier,
) -> impl Iterator<Item = (&'a Arc<RemoteKeys>, &'a Arc<RemoteKeys>)> {
    identifier.remote_keys().flat_map(|keys| before.remote_keys().map(move |old| (keys, old)))
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn open_log(place: &str) -> Result<Lines> {
    let sink = if place == "-" { Sink::Stdout } else { Sink::File(place.into()) };
    Lines::start(sink).with_context(|| format!("cannot write the access log {place}"))
}
