//! Binds every configured address and puts a transport behind each.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use tollgate_admin::{AdminApp, AdminConfig};
use tollgate_config::{AuthSettings, AuthSource, Config, ControlSettings};
use tollgate_console::{Console, ConsoleConfig};
use tollgate_grpc::{Grpc, GrpcConfig};
use tollgate_http::{DataApi, DataApiConfig, Http};
use tollgate_net::tls::{Tls, TlsFiles};
use tollgate_net::{
    Address, ByteBudget, ConnectionHandler, ConnectionLimiter, Drain, Listener, ListenerContext, NetLimits, Protocol,
    ProxyHeaders, accept,
};
use tollgate_resp_server::{Resp, RespConfig};
use tollgate_web::{Buffered, Web};
use tracing::warn;

use crate::gateway::RunningGateway;
use crate::parts::ServerParts;
use crate::surface::Surface;

/// AdminApi and metrics connections, beside those of callers. Streams of events and of the console's live numbers, at most
/// 100 each, leave room for others, also if all come from one address, such as that of a proxy.
const OPERATORS_MAX: usize = 512;
/// From one address, so that many silent connections from one host leave room for others.
const OPERATORS_PER_ADDRESS_MAX: usize = 256;
/// How long a connection of operators may stay open without a request: short, because there are few, and anyone who
/// reaches the port may open one.
const OPERATORS_IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// The certificates of the listeners.
#[derive(Clone, Default)]
pub(crate) struct Certificates {
    pub(crate) data: Option<Arc<Tls>>,
    pub(crate) admin: Option<Arc<Tls>>,
    pub(crate) metrics: Option<Arc<Tls>>,
}

impl Certificates {
    pub(crate) fn read(config: &Config) -> Result<Certificates> {
        let ControlSettings { tls_cert, tls_key, client_ca, client_names, .. } = &config.control;
        Ok(Certificates {
            data: read(&config.tls_cert, &config.tls_key, &config.tls_client_ca, &config.tls_client_names)?,
            admin: read(tls_cert, tls_key, client_ca, client_names)?,
            metrics: read(&config.metrics_tls_cert, &config.metrics_tls_key, &None, &[])?,
        })
    }

    /// All of them, to watch their files.
    pub(crate) fn all(&self) -> Vec<Arc<Tls>> {
        [&self.data, &self.admin, &self.metrics].into_iter().flatten().cloned().collect()
    }

    /// The certificate of a surface.
    pub(crate) fn of(&self, surface: Surface) -> Option<Arc<Tls>> {
        match surface {
            Surface::Data | Surface::Gateway | Surface::Grpc | Surface::Resp => self.data.clone(),
            Surface::Admin => self.admin.clone(),
            Surface::Metrics => self.metrics.clone(),
        }
    }
}

/// Reads certificate and key, if both are configured.
fn read(
    certificate: &Option<PathBuf>,
    key: &Option<PathBuf>,
    client_ca: &Option<PathBuf>,
    client_names: &[String],
) -> Result<Option<Arc<Tls>>> {
    let (Some(certificate), Some(key)) = (certificate, key) else { return Ok(None) };
    let (client_ca, client_names) = (client_ca.clone(), client_names.to_vec());
    Ok(Some(Arc::new(Tls::read(TlsFiles { client_ca, client_names, ..TlsFiles::new(certificate, key) })?)))
}

/// Bound addresses that are not served yet.
pub(crate) struct Listeners(Vec<(Surface, Listener)>);

impl Listeners {
    /// Binds every configured address.
    pub(crate) fn bind(config: &Config) -> Result<Listeners> {
        warn_of_idle_settings(config);
        let data = config.http.iter().map(|address| (Surface::Data, address));
        let others = [
            (Surface::Gateway, &config.gateway.listen),
            (Surface::Grpc, &config.grpc.address),
            (Surface::Resp, &config.resp.address),
            (Surface::Admin, &config.admin),
            (Surface::Metrics, &config.metrics),
        ];
        let others = others.into_iter().filter_map(|(surface, address)| Some((surface, address.as_ref()?)));
        let configured = data.chain(others);
        let bound = configured.map(|(surface, address)| {
            let listener = Listener::bind(address, config.socket_mode);
            Ok((surface, listener.map_err(|error| anyhow!("{error:#}; {}", surface.bind_hint()))?))
        });
        bound.collect::<Result<_>>().map(Listeners)
    }

    /// The bound addresses, with the ports that the system picked.
    pub(crate) fn addresses(&self) -> Vec<(Surface, Address)> {
        self.0.iter().filter_map(|(surface, listener)| Some((*surface, listener.address().ok()?))).collect()
    }

    /// Serves every listener. Callers drain first; operators last, because they watch the shutdown.
    pub(crate) fn serve(
        self,
        config: &Config,
        parts: &ServerParts,
        certificates: &Certificates,
        admin: AdminConfig,
        gateway: Option<&RunningGateway>,
    ) -> Drains {
        let limits = config.net;
        let callers = ConnectionLimiter::new(limits.max_connections, limits.max_connections_per_address);
        let operators = ConnectionLimiter::new(OPERATORS_MAX, OPERATORS_PER_ADDRESS_MAX);
        let drains = Drains { callers: parts.drain.clone(), operators: Drain::default(), connections: callers.clone() };
        let budget = ByteBudget::new(limits.max_in_transit);
        let mut admin = Some(admin);
        for (surface, listener) in self.0 {
            let (drain, connections, limits) = match surface {
                Surface::Data | Surface::Gateway | Surface::Grpc | Surface::Resp => (&drains.callers, &callers, limits),
                Surface::Admin | Surface::Metrics => (&drains.operators, &operators, operator_limits(limits)),
            };
            let context = ListenerContext {
                limits,
                drain: drain.clone(),
                clock: parts.service.clock.clone(),
                budget: budget.clone(),
            };
            let proxy_headers = match surface {
                Surface::Gateway => ProxyHeaders { proxies: config.gateway.proxy_protocol.clone() },
                _ => ProxyHeaders::default(),
            };
            let tls = certificates.of(surface);
            let bound = Bound { listener, connections: connections.clone(), tls, proxy_headers, context };
            match surface {
                Surface::Data => bound.serve(parts, Http::new(DataApi::new(parts.data_api(config)))),
                Surface::Gateway => {
                    if let Some(running) = gateway {
                        bound.serve(parts, Web::new(running.gateway.clone()));
                    }
                }
                Surface::Grpc => bound.serve(parts, Grpc::new(parts.grpc(config))),
                Surface::Resp => bound.serve(parts, Resp::new(parts.resp(config))),
                Surface::Metrics => bound.serve(parts, Web::new(Buffered::new(parts.pages.clone()))),
                Surface::Admin => {
                    if let Some(admin) = admin.take() {
                        let console = ConsoleConfig {
                            secret: admin.secret,
                            data_api: DataApi::new(parts.data_api(config)),
                            clock: admin.clock.clone(),
                            is_secure: bound.tls.is_some(),
                        };
                        let api = AdminApp::new(parts.pages.clone(), admin);
                        bound.serve(parts, Web::new(Console::new(api, console)));
                    }
                }
            }
        }
        drains
    }
}

/// The limits of connections of operators.
fn operator_limits(limits: NetLimits) -> NetLimits {
    NetLimits { idle_timeout: limits.idle_timeout.min(OPERATORS_IDLE_TIMEOUT), ..limits }
}

/// One listener with everything but its protocol.
struct Bound {
    listener: Listener,
    connections: ConnectionLimiter,
    tls: Option<Arc<Tls>>,
    proxy_headers: ProxyHeaders,
    context: ListenerContext,
}

impl Bound {
    fn serve(self, parts: &ServerParts, protocol: impl Protocol) {
        let Bound { listener, connections, tls, proxy_headers, context } = self;
        let drain = context.drain.clone();
        let metrics = parts.connection_metrics.clone();
        let handler = ConnectionHandler::behind(proxy_headers, protocol, metrics, tls, context);
        tokio::spawn(accept(listener, connections, drain, handler));
    }
}

/// The shutdown of both kinds of listeners.
pub(crate) struct Drains {
    pub(crate) callers: Drain,
    pub(crate) operators: Drain,
    /// Open connections of callers.
    pub(crate) connections: ConnectionLimiter,
}

impl ServerParts {
    fn data_api(&self, config: &Config) -> DataApiConfig {
        DataApiConfig {
            service: self.service.clone(),
            limits: config.net,
            drain: self.drain.clone(),
            metrics: self.http_metrics.clone(),
            admin_url: self.admin_url.clone(),
            auth: config.auth.clone(),
        }
    }

    fn grpc(&self, config: &Config) -> GrpcConfig {
        GrpcConfig {
            service: self.service.clone(),
            limits: config.net,
            drain: self.drain.clone(),
            metrics: self.grpc_metrics.clone(),
            settings: config.grpc.clone(),
        }
    }

    fn resp(&self, config: &Config) -> RespConfig {
        RespConfig {
            service: self.service.clone(),
            access: self.resp_access.clone(),
            metrics: self.resp_metrics.clone(),
            settings: config.resp.clone(),
        }
    }
}

/// Warns of settings without effect, because what they configure is off.
fn warn_of_idle_settings(config: &Config) {
    if config.resp.password_file.is_some() && config.resp.address.is_none() {
        warn!("resp_password_file is set, and RESP is off: give it an address with --resp");
    }
    let gateway = &config.gateway;
    if gateway.listen.is_none() && (gateway.routes.is_some() || !gateway.upstream.is_empty()) {
        warn!("routes or upstream is set, and the gateway does not listen: give it an address with --listen");
    }
    let AuthSettings { attributes, cost_header, namespace, .. } = AuthSettings::default();
    let auth = &config.auth;
    let is_set = auth.attributes != attributes || auth.cost_header != cost_header || auth.namespace != namespace;
    if is_set && auth.source == AuthSource::Off {
        warn!("auth_attributes, auth_cost_header or auth_namespace is set, and forward-auth is off: set --auth-source");
    }
}
