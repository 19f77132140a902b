//! Upstreams: servers that are alike. Chooses one, sends the request over a connection of its pool, and reads the
//! response as it arrives.
//!
//! | file | what |
//! |---|---|
//! | `pool`, `connection` | the connections of a server |
//! | `server` | its load, and whether it is used |
//! | `health` | active checks |
//! | `protection` | how much it is given to do |
//! | `sent_body`, `received_response` | bodies on their way, in both directions |
//! | `response_check` | which heads of responses are passed on |
//! | `tls` | whose certificates are trusted |

mod connection;
mod error;
mod health;
mod pool;
mod protection;
mod received_response;
mod response_check;
mod sent_body;
mod server;
mod tls;

pub(crate) use error::{UpstreamError, UpstreamStep};
pub(crate) use health::check_health;
pub(crate) use protection::ProtectedPermit;
pub(crate) use received_response::ReceivedResponse;
pub(crate) use sent_body::{BodyProgress, SentRequestBody};
pub(crate) use server::{ServerPermit, UpstreamServer};
pub(crate) use tls::client_config;

use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use http::{Method, Request, Response, header};
use hyper::body::{Body, Incoming};
use tokio::time::{Instant, timeout, timeout_at};
use tollgate_core::Clock;
use tollgate_web::HttpError;

use self::pool::{Checkout, UpgradeSender};
use self::protection::Protection;
use self::response_check::{check_framing, check_response};
use crate::spec::{Balance, UpstreamSpec};

/// Servers that are alike.
pub(crate) struct Upstream {
    pub(crate) spec: UpstreamSpec,
    servers: Vec<Arc<UpstreamServer>>,
    pub(crate) protection: Arc<Protection>,
    hasher: RandomState,
}

/// How one request is sent.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    /// Who asks, and for what: some upstreams choose the server by it.
    pub(crate) caller: &'a str,
    pub(crate) path: &'a str,
    /// Whether the caller's `Host` is sent.
    pub(crate) keep_host: bool,
    /// When the whole exchange has to be over.
    pub(crate) end: Option<Instant>,
}

impl Exchange<'_> {
    /// HTTP/1.0 has requests without a host; the server gets HTTP/1.1 or later, which has none.
    fn set_host(&self, request: &mut Request<SentRequestBody>, server: &UpstreamServer) {
        if !self.keep_host || !request.headers().contains_key(header::HOST) {
            request.headers_mut().insert(header::HOST, server.authority.clone());
        }
    }
}

impl Upstream {
    pub(crate) fn new(spec: UpstreamSpec, clock: Arc<dyn Clock>) -> Result<Upstream> {
        let tls = tls::client_config(&spec)?;
        let servers = spec.servers.iter().map(|url| Arc::new(UpstreamServer::new(url, &spec, tls.clone()))).collect();
        let protection = Arc::new(Protection::new(&spec.protection, clock));
        Ok(Upstream { spec, servers, protection, hasher: RandomState::new() })
    }

    pub(crate) fn servers(&self) -> &[Arc<UpstreamServer>] {
        &self.servers
    }

    /// Sends a request, with the caller's `Host` in place.
    pub(crate) async fn send(
        &self,
        request: Request<SentRequestBody>,
        progress: BodyProgress,
        exchange: &Exchange<'_>,
    ) -> Result<Response<ReceivedResponse>, UpstreamError> {
        let server = self.choose(exchange).ok_or(UpstreamError::NoServer)?;
        let sent = self.send_to(server.enter(), request, progress.clone(), exchange);
        let received = match exchange.end {
            None => sent.await,
            Some(end) => timeout_at(end, sent).await.unwrap_or_else(|_| Err(too_late(&progress, UpstreamStep::Total))),
        };
        match &received {
            Ok(response) => server.judge(response.status()),
            Err(error) if error.blames_server() => server.failed(),
            Err(_) => {}
        }
        received
    }

    /// Sends a request that turns its connection into a tunnel if the server agrees. It gets a connection of its own.
    pub(crate) async fn send_upgrade(
        &self,
        mut request: Request<SentRequestBody>,
        exchange: &Exchange<'_>,
    ) -> Result<(Response<Incoming>, UpgradedConnection), UpstreamError> {
        let server = self.choose(exchange).ok_or(UpstreamError::NoServer)?;
        let in_flight = server.enter();
        exchange.set_host(&mut request, &server);
        let exchanged = async {
            let mut sender = server.pool().open_http1().await?;
            let response = sender.send_request(request).await?;
            check_framing(&response)?;
            Ok((response, sender))
        };
        let limit = Instant::now() + self.spec.timeouts.connect + self.spec.timeouts.first_byte;
        let limit = exchange.end.map_or(limit, |end| end.min(limit));
        match timeout_at(limit, exchanged).await.unwrap_or(Err(UpstreamError::Timeout(UpstreamStep::FirstByte))) {
            Ok((response, sender)) => {
                server.judge(response.status());
                Ok((response, UpgradedConnection { sender, in_flight }))
            }
            Err(error) => {
                if error.blames_server() {
                    server.failed();
                }
                Err(error)
            }
        }
    }

    async fn send_to(
        &self,
        in_flight: ServerPermit,
        mut request: Request<SentRequestBody>,
        progress: BodyProgress,
        exchange: &Exchange<'_>,
    ) -> Result<Response<ReceivedResponse>, UpstreamError> {
        let server = in_flight.server().clone();
        exchange.set_host(&mut request, &server);
        let mut checkout = server.pool().checkout().await?;
        loop {
            let again = copy_for_stale(&checkout, &request);
            let is_pooled = checkout.is_pooled();
            let sent = self.in_time(&progress, checkout.send(request, &server.url)).await?;
            let (error, unsent) = match sent {
                Ok((response, connection)) => {
                    check_response(&response)?;
                    let connection = connection.after(progress);
                    let idle = self.spec.timeouts.idle;
                    return Ok(
                        response.map(|body| ReceivedResponse::new(body, connection, in_flight, idle, exchange.end))
                    );
                }
                Err(failed) => failed,
            };
            // The server closed an idle connection just when it was taken: it has answered nothing. Once is enough: the
            // next connection is a new one.
            match unsent.or(again).filter(|_| is_pooled) {
                Some(retried) => request = retried,
                None => {
                    return Err(progress
                        .failure()
                        .map_or_else(|| UpstreamError::of(error), UpstreamError::RequestBody));
                }
            }
            checkout = server.pool().open().await?;
        }
    }

    /// Waits for the head of a response. The time of the server begins when it has all of the request; a caller that
    /// sends its body slowly has the deadlines of its own connection, and is not the server's fault.
    async fn in_time<T>(&self, progress: &BodyProgress, sent: impl Future<Output = T>) -> Result<T, UpstreamError> {
        let mut sent = pin!(sent);
        let mut was_done = progress.is_done();
        let mut bytes = progress.bytes();
        loop {
            if let Ok(result) = timeout(self.spec.timeouts.first_byte, sent.as_mut()).await {
                return Ok(result);
            }
            match (progress.is_done(), was_done) {
                (true, false) => was_done = true,
                (false, _) if progress.bytes() > bytes => bytes = progress.bytes(),
                _ => return Err(too_late(progress, UpstreamStep::FirstByte)),
            }
        }
    }

    /// The server for a request, of those that are available. An only server is never left out for failing: there is
    /// no other.
    fn choose(&self, exchange: &Exchange<'_>) -> Option<Arc<UpstreamServer>> {
        if let [only] = self.servers.as_slice() {
            return only.is_available().then(|| only.clone());
        }
        let key = match self.spec.balance {
            Balance::LeastLoaded => return self.less_loaded_of_two().cloned(),
            Balance::Caller => exchange.caller,
            Balance::Path => exchange.path,
        };
        // Rendezvous hashing: a server that leaves moves only its own keys.
        let usable = self.usable();
        let available = self.servers.iter().enumerate().filter(|(_, server)| usable(server));
        available.max_by_key(|(index, _)| self.hasher.hash_one((key, index))).map(|(_, server)| server.clone())
    }

    /// Whether a server is used. If all of them fail, the servers are not the cause: then failing leaves none out.
    fn usable(&self) -> fn(&Arc<UpstreamServer>) -> bool {
        match self.servers.iter().any(|server| server.is_available()) {
            true => |server| server.is_available(),
            false => |server| server.is_healthy(),
        }
    }

    /// Two random servers, and the less loaded of them: nearly as even as the least loaded of all, without herding.
    fn less_loaded_of_two(&self) -> Option<&Arc<UpstreamServer>> {
        let usable = self.usable();
        let available = || self.servers.iter().filter(|server| usable(server));
        let count = available().count();
        if count == 0 {
            return None;
        }
        let random = tollgate_service::random::fast();
        let first = (random as u32) as usize % count;
        let other = (first + 1 + (random >> 32) as usize % count.saturating_sub(1).max(1)) % count;
        let (first, other) = (available().nth(first)?, available().nth(other)?);
        Some(if other.in_flight() < first.in_flight() { other } else { first })
    }
}

/// The connection of a request that asked for another protocol.
pub(crate) struct UpgradedConnection {
    sender: UpgradeSender,
    pub(crate) in_flight: ServerPermit,
}

impl UpgradedConnection {
    /// The body of a response that is like any other: the server did not agree.
    pub(crate) fn plain(self, body: Incoming, idle: Duration, end: Option<Instant>) -> ReceivedResponse {
        let UpgradedConnection { sender, in_flight } = self;
        ReceivedResponse::new(body, sender.used(), in_flight, idle, end)
    }
}

/// Whose fault it is that an exchange takes too long: the caller's, if the server waits for more of the body.
fn too_late(progress: &BodyProgress, step: UpstreamStep) -> UpstreamError {
    match progress.waits_for_caller() {
        true => UpstreamError::RequestBody(HttpError::TooSlow),
        false => UpstreamError::Timeout(step),
    }
}

/// A copy of a request without a body, to be sent once more if the connection turns out to be closed.
fn copy_for_stale(checkout: &Checkout, request: &Request<SentRequestBody>) -> Option<Request<SentRequestBody>> {
    let is_stale = matches!(checkout, Checkout::Http1 { may_be_stale: true, .. });
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !is_stale || !is_safe || !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(SentRequestBody::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}
