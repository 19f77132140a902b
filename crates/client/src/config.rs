//! Settings of a client.

use std::fmt;
use std::sync::Arc;

use tollgate_core::{Clock, Limit, Span};
use tollgate_store::MonotonicClock;

use crate::client_url::ClientUrl;
use crate::failure::Outage;

/// What decides when the server gives no decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Every request is allowed.
    Open,
    /// Every request is refused.
    Closed,
    /// A limiter in this process decides, by the [fallback limit](ClientConfig::fallback).
    Local,
}

/// Is told of every outage.
pub type OutageHook = Arc<dyn Fn(&Outage) + Send + Sync>;

/// Settings of a client.
#[derive(Clone)]
pub struct ClientConfig {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) timeout: Span,
    pub(crate) on_error: Option<OnError>,
    pub(crate) fallback: Option<Limit>,
    pub(crate) http2: bool,
    pub(crate) hook: Option<OutageHook>,
    pub(crate) clock: Arc<dyn Clock>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfigError(pub(crate) String);

/// The default of a setting, and the variable that has another.
const DEFAULT_URL: &str = "http://127.0.0.1:8080";
const URL_VARIABLE: &str = "TOLLGATE_URL";
const TOKEN_VARIABLE: &str = "TOLLGATE_DATA_TOKEN";

impl ClientConfig {
    /// A client of this server: `http://`, `https://`, `grpc://`, `grpcs://`, or `unix:/path` of a Unix domain socket.
    pub fn new(url: impl Into<String>) -> ClientConfig {
        ClientConfig {
            url: url.into(),
            token: None,
            timeout: Span::from_millis(250),
            on_error: None,
            fallback: None,
            http2: false,
            hook: None,
            clock: Arc::new(MonotonicClock::new()),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// The server and the token of the environment: `TOLLGATE_URL` (default `http://127.0.0.1:8080`) and
    /// `TOLLGATE_DATA_TOKEN`.
    pub fn from_env() -> ClientConfig {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let config = ClientConfig::new(variable(URL_VARIABLE).unwrap_or_else(|| DEFAULT_URL.to_owned()));
        ClientConfig { token: variable(TOKEN_VARIABLE), ..config }
    }

    /// The token that the server wants.
    pub fn token(self, token: impl Into<String>) -> ClientConfig {
        ClientConfig { token: Some(token.into()), ..self }
    }

    /// How long one call may take, connection included. Default 250 ms.
    pub fn timeout(self, timeout: Span) -> ClientConfig {
        ClientConfig { timeout, ..self }
    }

    /// What decides when the server gives no decision. Default: `local` with a fallback limit, else `open`.
    pub fn on_error(self, on_error: OnError) -> ClientConfig {
        ClientConfig { on_error: Some(on_error), ..self }
    }

    /// The limit of each client in this process while the server gives no decision. A token bucket is exact; it is not
    /// shared with other processes.
    pub fn fallback(self, limit: Limit) -> ClientConfig {
        ClientConfig { fallback: Some(limit), ..self }
    }

    /// HTTP/2 without TLS (`h2c`, by prior knowledge). With TLS it is negotiated; gRPC always uses it.
    pub fn http2(self) -> ClientConfig {
        ClientConfig { http2: true, ..self }
    }

    /// Is called for every outage: must be fast, and never block.
    pub fn on_outage(self, hook: impl Fn(&Outage) + Send + Sync + 'static) -> ClientConfig {
        ClientConfig { hook: Some(Arc::new(hook)), ..self }
    }

    /// Another clock for the breaker, the fallback limiter and prefetched units. Timeouts follow Tokio's timer.
    pub fn clock(self, clock: Arc<dyn Clock>) -> ClientConfig {
        ClientConfig { clock, ..self }
    }

    /// Certificates, for `https://` and `grpcs://`. Default: those that the system trusts.
    #[cfg(feature = "tls")]
    pub fn tls(self, tls: Arc<rustls::ClientConfig>) -> ClientConfig {
        ClientConfig { tls: Some(tls), ..self }
    }

    /// The policy in force.
    pub(crate) fn policy(&self) -> OnError {
        let default = if self.fallback.is_some() { OnError::Local } else { OnError::Open };
        self.on_error.unwrap_or(default)
    }

    pub(crate) fn check(&self) -> Result<ClientUrl, ClientConfigError> {
        if self.policy() == OnError::Local && self.fallback.is_none() {
            return Err(ClientConfigError("`local` needs a fallback limit: set `fallback`".to_owned()));
        }
        if self.timeout.is_zero() {
            return Err(ClientConfigError("a timeout of nothing: every call would fail".to_owned()));
        }
        if self.token.as_ref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(ClientConfigError("the token has other characters than visible ASCII".to_owned()));
        }
        ClientUrl::parse(&self.url).map_err(ClientConfigError)
    }
}

/// Without the token.
impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClientConfig { url, timeout, on_error, fallback, http2, .. } = self;
        f.debug_struct("ClientConfig")
            .field("url", url)
            .field("timeout", timeout)
            .field("on_error", on_error)
            .field("fallback", fallback)
            .field("http2", http2)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ClientConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ClientConfigError {}
