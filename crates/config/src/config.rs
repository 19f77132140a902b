//! The configuration of a server.

use std::path::PathBuf;
use std::time::Duration;

use tollgate_net::{Address, NetLimits};

use crate::answer::AnswerSettings;
use crate::auth::AuthSettings;
use crate::choice::{LogFormat, LogLevel};
use crate::control::{ControlSettings, DbPlace};
use crate::envoy::EnvoySettings;
use crate::gateway::GatewaySettings;
use crate::grpc::GrpcSettings;
use crate::resp::RespSettings;
use crate::signals::SignalSettings;
use crate::store::StoreSettings;

/// Everything that can be set. Every value is validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the data API listens; nowhere if empty.
    pub http: Vec<Address>,
    /// Where the admin API and `/metrics` listen; nowhere if none.
    pub admin: Option<Address>,
    /// Where `/metrics` listens by itself.
    pub metrics: Option<Address>,
    /// The mode of the files of Unix domain sockets; as the umask has it if none.
    pub socket_mode: Option<u32>,
    /// Where gRPC listens.
    pub grpc: GrpcSettings,
    /// Where RESP listens.
    pub resp: RespSettings,
    /// The reverse proxy in front of an API.
    pub gateway: GatewaySettings,
    /// Rules as envoyproxy/ratelimit keeps them.
    pub envoy: EnvoySettings,
    /// The rules file; without one everything is allowed.
    pub rules: Option<PathBuf>,
    /// How often the rules file is looked at.
    pub reload_interval: Duration,
    /// The control plane.
    pub control: ControlSettings,
    /// Where buckets live.
    pub store: StoreSettings,
    /// The tokens that callers must present.
    pub token_file: Option<PathBuf>,
    /// Whether callers must present a token, though there is no file: those of the database with the role `check`.
    pub require_token: bool,
    /// Whether callers without a token are served on addresses that other machines reach.
    pub allow_anonymous: bool,
    /// Certificate chain, PEM; set together with `tls_key`.
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM.
    pub tls_key: Option<PathBuf>,
    /// Authorities that sign the certificates of callers; without it they need none.
    pub tls_client_ca: Option<PathBuf>,
    /// Names of which a caller's certificate must have one; any if empty.
    pub tls_client_names: Vec<String>,
    /// Certificate chain of the metrics listener, PEM; set together with `metrics_tls_key`.
    pub metrics_tls_cert: Option<PathBuf>,
    /// Its private key, PEM.
    pub metrics_tls_key: Option<PathBuf>,
    /// Forward-auth: how proxies ask on behalf of their clients.
    pub auth: AuthSettings,
    /// Metrics and webhooks.
    pub signals: SignalSettings,
    /// Bounds on connections.
    pub net: NetLimits,
    /// How decisions are answered.
    pub answer: AnswerSettings,
    /// Bytes that buckets may take.
    pub max_memory: u64,
    /// Memory of the analytics; 0 for none.
    pub analytics_memory: usize,
    /// Threads that serve; one per core if none.
    pub threads: Option<usize>,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// Which log lines are written.
    pub log_level: LogLevel,
    /// Where every decision is logged: a path, or `-` for standard output.
    pub decision_log: Option<String>,
    /// Whether logs show keys as they are beside their digests.
    pub debug_keys: bool,
    /// Name of this node in logs; the host name if none.
    pub node: Option<String>,
    /// The secret behind receipts and key digests; one of the shared store, or of this process, if none.
    pub secret_file: Option<PathBuf>,
}

impl Config {
    /// The name of this node: as configured, or the host name.
    pub fn node_name(&self) -> String {
        self.node.clone().unwrap_or_else(|| {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            if name.trim().is_empty() { "tollgate".to_owned() } else { name.trim().to_owned() }
        })
    }

    /// The defaults, with ports chosen by the system and without a database.
    pub fn for_test() -> Self {
        let control = ControlSettings { db: DbPlace::Off, ..ControlSettings::default() };
        Self { http: vec![Address::loopback(0)], admin: Some(Address::loopback(0)), control, ..Self::default() }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            http: vec![Address::loopback(8080)],
            admin: Some(Address::loopback(8090)),
            metrics: None,
            socket_mode: None,
            grpc: GrpcSettings::default(),
            resp: RespSettings::default(),
            gateway: GatewaySettings::default(),
            envoy: EnvoySettings::default(),
            rules: None,
            reload_interval: Duration::from_millis(500),
            control: ControlSettings::default(),
            store: StoreSettings::default(),
            token_file: None,
            require_token: false,
            allow_anonymous: false,
            tls_cert: None,
            tls_key: None,
            tls_client_ca: None,
            tls_client_names: Vec::new(),
            metrics_tls_cert: None,
            metrics_tls_key: None,
            auth: AuthSettings::default(),
            signals: SignalSettings::default(),
            net: NetLimits::default(),
            answer: AnswerSettings::default(),
            max_memory: 1 << 30,
            analytics_memory: 32 << 20,
            threads: None,
            log_format: LogFormat::People,
            log_level: LogLevel::Info,
            decision_log: None,
            debug_keys: false,
            node: None,
            secret_file: None,
        }
    }
}
