//! The connections of one server.
//!
//! HTTP/1.1 connections wait on a stack: the last one used is the next one taken, so that those that are not needed grow
//! old and close. A connection goes back when the response has been read to its end; whether the server has also taken
//! all of the request shows when it is taken again. HTTP/2 connections are shared by up to [`STREAMS_MAX`] requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri, header};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use tokio::time::{Instant, timeout};
use tollgate_net::Deadline;

use super::connection::{Opened, open};
use super::driven_connection::{DrivenConnection, Unanswered};
use super::error::{UpstreamError, UpstreamStep};
use super::sent_body::{BodyProgress, SentRequestBody};
use super::tls::UpstreamTls;
use crate::spec::{ServerScheme, UpstreamUrl};

/// How long an idle connection is kept: less than the minute or more that most servers keep theirs.
const IDLE_MAX: Duration = Duration::from_secs(50);
/// A connection that was idle for longer may have been closed by the server in this very moment.
const FRESH: Duration = Duration::from_secs(1);
/// Idle connections that are looked at for one that is ready.
const LOOKS_MAX: usize = 8;
/// Requests that share an HTTP/2 connection.
const STREAMS_MAX: usize = 100;

/// The connections of one server.
pub(crate) struct ConnectionPool {
    url: UpstreamUrl,
    tls: Option<UpstreamTls>,
    connect_timeout: Duration,
    max_idle: usize,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    /// The oldest first.
    idle: VecDeque<IdleConnection>,
    shared: Vec<SharedConnection>,
}

struct IdleConnection {
    connection: DrivenConnection,
    deadline: Deadline,
    since: Instant,
}

/// An HTTP/2 connection. The count of its requests is that of the clones of `streams`.
#[derive(Clone)]
struct SharedConnection {
    sender: http2::SendRequest<SentRequestBody>,
    streams: Arc<()>,
}

/// A connection for one request.
pub(crate) enum Checkout {
    Http1 {
        connection: DrivenConnection,
        /// The timer of the connection, if it has one already.
        deadline: Option<Deadline>,
        /// It waited for so long that the server may have closed it meanwhile.
        may_be_stale: bool,
        /// It has served a request before.
        is_pooled: bool,
    },
    Http2 {
        sender: http2::SendRequest<SentRequestBody>,
        /// Counts the request until it is dropped.
        stream: Arc<()>,
        is_pooled: bool,
    },
}

impl ConnectionPool {
    pub(crate) fn new(
        url: UpstreamUrl,
        tls: Option<UpstreamTls>,
        connect_timeout: Duration,
        max_idle: usize,
    ) -> ConnectionPool {
        ConnectionPool { url, tls, connect_timeout, max_idle, state: Mutex::default() }
    }

    /// A connection: one that is open, or a new one.
    pub(crate) async fn checkout(&self) -> Result<Checkout, UpstreamError> {
        match self.take() {
            Some(open) => Ok(open),
            // Boxed: a handshake's future is large, and requests on open connections should not move it.
            None => Box::pin(self.open()).await,
        }
    }

    /// A new connection, for a request that failed on one that was closed meanwhile.
    pub(crate) async fn open(&self) -> Result<Checkout, UpstreamError> {
        let opened = timeout(self.connect_timeout, open(&self.url, self.tls.as_ref().map(|tls| &tls.any))).await;
        match opened.map_err(|_| UpstreamError::Timeout(UpstreamStep::Connect))?? {
            Opened::Http1(sender, driver) => Ok(Checkout::new(DrivenConnection::new(sender, driver))),
            Opened::Http2(sender) => {
                let connection = SharedConnection { sender, streams: Arc::default() };
                self.state().shared.push(connection.clone());
                Ok(Checkout::Http2 { sender: connection.sender, stream: connection.streams, is_pooled: false })
            }
        }
    }

    /// A new connection for one request alone, which is not kept.
    pub(crate) async fn open_unshared(&self) -> Result<Checkout, UpstreamError> {
        let opened = timeout(self.connect_timeout, open(&self.url, self.tls.as_ref().map(|tls| &tls.any))).await;
        Ok(match opened.map_err(|_| UpstreamError::Timeout(UpstreamStep::Connect))?? {
            Opened::Http1(sender, driver) => {
                let mut connection = DrivenConnection::new(sender, driver);
                connection.spawn();
                Checkout::new(connection)
            }
            Opened::Http2(sender) => Checkout::Http2 { sender, stream: Arc::default(), is_pooled: false },
        })
    }

    /// A new connection of HTTP/1.1, whatever the server prefers: for an upgrade.
    pub(crate) async fn open_http1(&self) -> Result<UpgradeSender, UpstreamError> {
        let opened = timeout(self.connect_timeout, open(&self.url, self.tls.as_ref().map(|tls| &tls.http1))).await;
        match opened.map_err(|_| UpstreamError::Timeout(UpstreamStep::Connect))?? {
            Opened::Http1(sender, driver) => {
                let mut connection = DrivenConnection::new(sender, driver);
                connection.spawn();
                Ok(UpgradeSender(connection))
            }
            Opened::Http2(_) => Err(UpstreamError::NoUpgrade),
        }
    }

    /// Gives a connection back, behind a response that was read to its end.
    pub(crate) fn put_back(&self, mut connection: DrivenConnection, deadline: Deadline) {
        if self.max_idle == 0 || !connection.is_reusable() {
            return;
        }
        let mut state = self.state();
        if state.idle.len() >= self.max_idle {
            state.idle.pop_front();
        }
        state.idle.push_back(IdleConnection { connection, deadline, since: Instant::now() });
    }

    /// Closes connections that have been idle for long, or that the server has closed.
    pub(crate) fn close_idle(&self) {
        let mut state = self.state();
        state.idle.retain_mut(|idle| idle.since.elapsed() < IDLE_MAX && idle.connection.is_open());
        state.shared.retain(|shared| !shared.sender.is_closed());
    }

    /// Open connections that wait, and requests on shared ones.
    pub(crate) fn idle(&self) -> usize {
        self.state().idle.len()
    }

    fn take(&self) -> Option<Checkout> {
        let mut state = self.state();
        state.shared.retain(|shared| !shared.sender.is_closed());
        let room = state.shared.iter().find(|shared| Arc::strong_count(&shared.streams) <= STREAMS_MAX);
        if let Some(shared) = room {
            let SharedConnection { sender, streams } = shared.clone();
            return Some(Checkout::Http2 { sender, stream: streams, is_pooled: true });
        }
        let mut at = state.idle.len();
        for _ in 0..LOOKS_MAX {
            at = at.checked_sub(1)?;
            let idle = state.idle.get(at)?;
            if idle.connection.is_closed() || idle.since.elapsed() >= IDLE_MAX {
                state.idle.remove(at);
            } else if idle.connection.is_ready() {
                let IdleConnection { connection, deadline, since } = state.idle.remove(at)?;
                let (deadline, may_be_stale) = (Some(deadline), since.elapsed() >= FRESH);
                return Some(Checkout::Http1 { connection, deadline, may_be_stale, is_pooled: true });
            }
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a response occupies until its body ends.
pub(crate) enum UsedConnection {
    /// A connection of its own, and how much of the request the server has taken.
    Http1(DrivenConnection, BodyProgress),
    /// Its part of a shared connection.
    Http2(#[expect(dead_code, reason = "held, not read")] Arc<()>),
}

/// The connection that a response came by.
pub(crate) enum AnsweredBy {
    Http1(DrivenConnection),
    Http2(Arc<()>),
}

impl AnsweredBy {
    /// What stays in use until the response has been read.
    pub(crate) fn after(self, progress: BodyProgress) -> UsedConnection {
        match self {
            AnsweredBy::Http1(mut connection) => {
                if !progress.is_done() {
                    connection.spawn(); // the request goes on although the caller may not read its response
                }
                UsedConnection::Http1(connection, progress)
            }
            AnsweredBy::Http2(stream) => UsedConnection::Http2(stream),
        }
    }
}

impl Checkout {
    /// A connection that was just opened.
    const fn new(connection: DrivenConnection) -> Checkout {
        Checkout::Http1 { connection, deadline: None, may_be_stale: false, is_pooled: false }
    }

    /// A deadline for the response: a connection keeps its timer, because registering one costs a part of a request.
    pub(crate) fn deadline(&mut self, at: Instant) -> Deadline {
        let kept = match self {
            Checkout::Http1 { deadline, .. } => deadline.take(),
            Checkout::Http2 { .. } => None,
        };
        match kept {
            Some(mut deadline) => {
                deadline.set(at);
                deadline
            }
            None => Deadline::new(at),
        }
    }

    /// True if the connection was open before: the server may have closed it in this moment.
    pub(crate) const fn is_pooled(&self) -> bool {
        matches!(self, Checkout::Http1 { is_pooled: true, .. } | Checkout::Http2 { is_pooled: true, .. })
    }

    /// Sends the request and waits for the head of the response.
    pub(crate) async fn send(
        self,
        request: Request<SentRequestBody>,
        url: &UpstreamUrl,
    ) -> Result<(Response<Incoming>, AnsweredBy), Unanswered> {
        match self {
            Checkout::Http1 { mut connection, .. } => {
                connection.send(request).await.map(|response| (response, AnsweredBy::Http1(connection)))
            }
            Checkout::Http2 { mut sender, stream, .. } => {
                match sender.try_send_request(with_authority(request, url.scheme)).await {
                    Ok(response) => Ok((response, AnsweredBy::Http2(stream))),
                    Err(mut error) => {
                        let unsent = error.take_message().map(with_host);
                        Err((error.into_error(), unsent))
                    }
                }
            }
        }
    }
}

/// HTTP/2 has scheme and authority in place of `Host`.
fn with_authority(mut request: Request<SentRequestBody>, scheme: ServerScheme) -> Request<SentRequestBody> {
    let host = request.headers_mut().remove(header::HOST);
    let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    if let Some(authority) = authority {
        let scheme = if scheme == ServerScheme::Https { Scheme::HTTPS } else { Scheme::HTTP };
        let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path);
        if let Ok(uri) = uri.build() {
            *request.uri_mut() = uri;
        }
    }
    request
}

/// Undoes [`with_authority`]: the next server may speak HTTP/1.1.
fn with_host(mut request: Request<SentRequestBody>) -> Request<SentRequestBody> {
    let host = request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    if let (Some(host), Some(path)) = (host, request.uri().path_and_query().cloned()) {
        request.headers_mut().insert(header::HOST, host);
        *request.uri_mut() = path.into();
    }
    request
}

/// A connection of its own for a request that may become a tunnel.
pub(crate) struct UpgradeSender(DrivenConnection);

impl UpgradeSender {
    /// What stays in use until a response has been read that agreed to nothing.
    pub(crate) fn used(self) -> UsedConnection {
        UsedConnection::Http1(self.0, BodyProgress::default())
    }

    pub(crate) async fn send_request(
        &mut self,
        request: Request<SentRequestBody>,
    ) -> Result<Response<Incoming>, UpstreamError> {
        self.0.send(request).await.map_err(|(error, _)| UpstreamError::of(error))
    }
}
