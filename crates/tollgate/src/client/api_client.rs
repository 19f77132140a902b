//! HTTP client of a server: one connection, one call at a time, a timeout for each.
//!
//! A command line needs only HTTP/1.1, so this is hyper's connection without a pool. Redirects are not followed: they
//! would send the token to a host that was not named.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, HeaderName, USER_AGENT};
use hyper::{Method, Request, Response};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{interval, sleep, timeout};

use super::api_call::ApiCall;
use super::api_response::ApiResponse;
use super::bearer_token::BearerToken;
use super::connector::{Connector, Sender, TlsTrust};
use super::server_url::ServerUrl;

/// Interval of progress reports.
const TICK: Duration = Duration::from_millis(200);

/// A connection to a server, opened on demand and reopened after it was closed.
pub struct ApiClient {
    /// `None` only during `drop`.
    pub(super) runtime: Option<Runtime>,
    pub(super) connector: Connector,
    pub(super) token: Option<BearerToken>,
    pub(super) open: Option<Sender>,
}

impl ApiClient {
    /// A client of `target`.
    pub fn new(target: ServerUrl, token: Option<BearerToken>, trust: &TlsTrust) -> Result<ApiClient> {
        let runtime = Builder::new_current_thread().enable_all().build().context("cannot start the client")?;
        Ok(ApiClient { runtime: Some(runtime), connector: Connector::new(target, trust)?, token, open: None })
    }

    /// Posts JSON to a path of the API. An error means that there was no response; any status is a response.
    pub fn post(&mut self, segments: &[&str], json: String) -> Result<ApiResponse> {
        self.send(&ApiCall::new(Method::POST, segments).json(json))
    }

    /// Sends a call. An error means that there was no response; any status is a response. After a [`BrokenConnection`]
    /// it is unknown whether the server executed the call.
    pub fn send(&mut self, call: &ApiCall) -> Result<ApiResponse> {
        self.send_watched(call, |_| ())
    }

    /// The same, and calls `watch` with the elapsed time at every interval.
    pub fn send_watched(&mut self, call: &ApiCall, mut watch: impl FnMut(Duration)) -> Result<ApiResponse> {
        let ApiClient { runtime, connector, token, open } = self;
        let runtime = runtime.as_ref().context("the client has ended")?;
        let exchange = send_call(connector, token.as_ref(), open, call);
        let response = runtime.block_on(async {
            let watched = async {
                tokio::pin!(exchange);
                let (mut ticks, mut waited) = (interval(TICK), Duration::ZERO);
                ticks.tick().await; // the first tick is immediate
                loop {
                    tokio::select! {
                        response = &mut exchange => return response,
                        _ = ticks.tick() => {
                            waited += TICK;
                            watch(waited);
                        }
                    }
                }
            };
            timeout(call.timeout, watched).await
        });
        let response = response.unwrap_or_else(|_| {
            Err(anyhow!("{} did not respond within {} s", connector.target(), call.timeout.as_secs()))
        });
        if response.is_err() {
            *open = None; // the connection may hold half a response
        }
        response
    }

    /// Sleeps.
    pub fn wait(&self, time: Duration) {
        if let Some(runtime) = &self.runtime {
            runtime.block_on(async { sleep(time).await });
        }
    }
}

impl Drop for ApiClient {
    /// Does not wait for threads that still resolve a host name.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The connection broke before the response arrived: the server may have executed the call or not.
#[derive(Debug)]
pub struct BrokenConnection(String);

impl fmt::Display for BrokenConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BrokenConnection {}

async fn send_call(
    connector: &Connector,
    token: Option<&BearerToken>,
    open: &mut Option<Sender>,
    call: &ApiCall,
) -> Result<ApiResponse> {
    let response = send_request(connector, token, open, call).await?;
    read_response(connector, call, response).await
}

/// Sends a call; the body of the response is not read yet.
pub(super) async fn send_request(
    connector: &Connector,
    token: Option<&BearerToken>,
    open: &mut Option<Sender>,
    call: &ApiCall,
) -> Result<Response<Incoming>> {
    let target = connector.target();
    let mut request = Request::builder()
        .method(&call.method)
        .uri(format!("{}{}", target.prefix(), call.path))
        .header(HOST, target.authority())
        .header(ACCEPT, "application/json, application/problem+json, application/yaml;q=0.9")
        .header(USER_AGENT, concat!("tollgate/", env!("CARGO_PKG_VERSION")));
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token.header());
    }
    for (name, value) in &call.headers {
        request = request.header(name, value);
    }
    let mut bytes = Bytes::new();
    if let Some(body) = &call.body {
        request = request.header(CONTENT_TYPE, body.media);
        bytes = body.bytes.clone();
    }
    let request = request.body(Full::new(bytes)).context("the request cannot be sent")?;
    exchange(connector, open, request).await
}

/// Reads the body of a response.
pub(super) async fn read_response(
    connector: &Connector,
    call: &ApiCall,
    response: Response<Incoming>,
) -> Result<ApiResponse> {
    let target = connector.target();
    let (head, body) = response.into_parts();
    let header = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (media, etag) = (header(CONTENT_TYPE).unwrap_or_default(), header(ETAG));
    let next_cursor = header(HeaderName::from_static("next-cursor"));
    match Limited::new(body, call.response_bytes_max).collect().await {
        Ok(body) => {
            let (from, status) = (target.to_string(), head.status);
            Ok(ApiResponse { from, status, media, etag, next_cursor, body: body.to_bytes() })
        }
        Err(error) => match error.is::<hyper::Error>() {
            true => Err(BrokenConnection(format!("the response of {target} cannot be read: {error}")).into()),
            false => bail!("the response of {target} cannot be read: {error}"),
        },
    }
}

/// Sends on the open connection, or on a new one. A server may close an idle connection at any time, so a request that
/// was not sent is retried; one that may have arrived is not, because a check would be charged twice.
async fn exchange(
    connector: &Connector,
    open: &mut Option<Sender>,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>> {
    if let Some(sender) = open.as_mut().filter(|sender| !sender.is_closed()) {
        match sender.try_send_request(request).await {
            Ok(response) => return Ok(response),
            Err(mut error) => match error.take_message() {
                Some(unsent) => request = unsent,
                None => return Err(broken(connector.target(), error.error())),
            },
        }
    }
    let sender = open.insert(connector.connect().await?);
    sender.send_request(request).await.map_err(|error| broken(connector.target(), &error))
}

fn broken(target: &ServerUrl, error: &hyper::Error) -> anyhow::Error {
    match error.is_parse() && !target.is_tls() {
        true => anyhow!("{target} does not speak HTTP; if it speaks TLS, write https://"),
        false => match tls_alert(error) {
            Some(why) => {
                anyhow!("{target} rejected the client certificate, or requires one: see --cert and --key ({why})")
            }
            None => BrokenConnection(format!("{target} closed the connection without a response: {error}")).into(),
        },
    }
}

/// The TLS alert about the client certificate. In TLS 1.3 it arrives after the handshake, with the first read.
fn tls_alert(error: &hyper::Error) -> Option<&rustls::Error> {
    let mut inner = error.source();
    while let Some(error) = inner {
        let of_tls = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        match of_tls.and_then(|error| error.downcast_ref()) {
            Some(alert @ rustls::Error::AlertReceived(_)) => return Some(alert),
            _ => inner = error.source(),
        }
    }
    None
}
