//! Upstreams: servers that are alike. Chooses one, sends the request over a connection of its pool, and reads the
//! response as it arrives.
//!
//! | file | what |
//! |---|---|
//! | `choice` | which server |
//! | `retry` | whether a request is sent once more |
//! | `pool`, `connection`, `driven_connection` | the connections of a server |
//! | `server` | its load, and whether it is used |
//! | `health` | active checks |
//! | `protection` | how much it is given to do |
//! | `sent_body`, `received_response` | bodies on their way, in both directions |
//! | `response_check` | which heads of responses are passed on |
//! | `tls` | whose certificates are trusted |

mod choice;
mod connection;
mod driven_connection;
mod error;
mod health;
mod pool;
mod protection;
mod received_response;
mod response_check;
mod retry;
mod sent_body;
mod server;
mod tls;

pub(crate) use error::{UpstreamError, UpstreamStep};
pub(crate) use health::check_health;
pub(crate) use pool::ConnectionPool;
pub(crate) use protection::ProtectedPermit;
pub(crate) use received_response::{ReceivedResponse, ResponseTimes};
pub(crate) use sent_body::{BodyProgress, SentRequestBody};
pub(crate) use server::{ServerPermit, UpstreamServer};
pub(crate) use tls::client_config;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anyhow::Result;
use http::{Method, Request, Response, header};
use hyper::body::{Body, Incoming};
use smallvec::SmallVec;
use tokio::time::{Instant, sleep_until, timeout_at};
use tollgate_core::Clock;
use tollgate_net::Deadline;
use tollgate_web::HttpError;

use self::pool::{Checkout, UpgradeSender};
use self::protection::Protection;
use self::response_check::{check_framing, check_response};
use self::retry::{FailedAttempt, Retries, copy_of, pause};
use self::server::Outliers;
use crate::duration_histogram::DurationHistogram;
use crate::spec::UpstreamSpec;

/// Servers that are alike.
pub(crate) struct Upstream {
    pub(crate) spec: UpstreamSpec,
    servers: Vec<Arc<UpstreamServer>>,
    pub(crate) protection: Arc<Protection>,
    retries: Retries,
    /// From the first attempt to the head of the response.
    pub(crate) first_byte: DurationHistogram,
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
        let outliers = Arc::new(Outliers::new(&spec, clock.clone()));
        let servers = spec.servers.iter().enumerate();
        let servers = servers
            .map(|(index, url)| Arc::new(UpstreamServer::new(url, index, &spec, &outliers, tls.clone())))
            .collect();
        let protection = Arc::new(Protection::new(&spec.protection, clock));
        let retries = Retries::new(&spec.retries);
        Ok(Upstream { spec, servers, protection, retries, first_byte: DurationHistogram::default() })
    }

    pub(crate) fn servers(&self) -> &[Arc<UpstreamServer>] {
        &self.servers
    }

    /// Requests that were sent again, and those that the budget of retries had no room for.
    pub(crate) fn retries(&self) -> (u64, u64) {
        self.retries.counts()
    }

    /// Sends a request, with the caller's `Host` in place; once more if it fails and may be retried.
    pub(crate) async fn send(
        &self,
        mut request: Request<SentRequestBody>,
        progress: BodyProgress,
        exchange: &Exchange<'_>,
    ) -> Result<Response<ReceivedResponse>, UpstreamError> {
        self.retries.record_request();
        let start = Instant::now();
        let mut server = self.choose(exchange, &[]).ok_or(UpstreamError::NoServer)?;
        let mut tried: SmallVec<[Arc<UpstreamServer>; 2]> = SmallVec::new();
        // Of an attempt that reached a server: what the request cost is not taken back, though the next one sent nothing.
        let mut reached: Option<UpstreamError> = None;
        loop {
            let retries = tried.len() as u32;
            let FailedAttempt { error, again } =
                match self.attempt(&server, request, &progress, exchange, retries).await {
                    Ok(response) => {
                        self.first_byte.observe(start.elapsed());
                        return Ok(response);
                    }
                    Err(failed) => failed,
                };
            tried.push(server.clone());
            let next = again.filter(|_| self.retries.has_left(retries)).zip(self.choose(exchange, &tried));
            let error = reached.filter(|_| error.is_unsent()).unwrap_or(error);
            let Some((copy, other)) = next else { return Err(error) };
            let wait = if Arc::ptr_eq(&other, &server) { pause(retries) } else { Duration::ZERO };
            let resume = Instant::now() + wait;
            if exchange.end.is_some_and(|end| end <= resume) || !self.retries.try_again() {
                return Err(error);
            }
            if !wait.is_zero() {
                sleep_until(resume).await;
            }
            reached = (!error.is_unsent()).then_some(error);
            (request, server) = (*copy, other);
        }
    }

    async fn attempt(
        &self,
        server: &Arc<UpstreamServer>,
        request: Request<SentRequestBody>,
        progress: &BodyProgress,
        exchange: &Exchange<'_>,
        retries: u32,
    ) -> Result<Response<ReceivedResponse>, FailedAttempt> {
        let sent = pin!(self.send_to(server.enter(), request, progress.clone(), exchange, retries));
        let received = match exchange.end {
            None => sent.await,
            Some(end) => {
                timeout_at(end, sent).await.unwrap_or_else(|_| Err(too_late(progress, UpstreamStep::Total).into()))
            }
        };
        match &received {
            Ok(response) => server.judge(response.status()),
            Err(failed) if failed.error.blames_server() => server.failed(),
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
        let server = self.choose(exchange, &[]).ok_or(UpstreamError::NoServer)?;
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
        retries: u32,
    ) -> Result<Response<ReceivedResponse>, FailedAttempt> {
        let server = in_flight.server().clone();
        exchange.set_host(&mut request, &server);
        let mut opened = server.pool().checkout().await;
        loop {
            let mut checkout = match opened {
                Ok(checkout) => checkout,
                Err(error) => return Err(FailedAttempt { error, again: Some(Box::new(request)) }), // nothing was sent
            };
            let (is_stale, is_pooled) = (may_be_stale(&checkout, &request), checkout.is_pooled());
            let copy = (is_stale || self.retries.has_left(retries)).then(|| copy_of(&request)).flatten();
            let mut deadline = checkout.deadline(Instant::now() + self.spec.timeouts.first_byte);
            let mut sent = pin!(checkout.send(request, &server.url));
            let (error, unsent) = match self.in_time(&progress, &mut deadline, sent.as_mut()).await? {
                Ok((response, connection)) => {
                    check_response(&response)?;
                    let connection = connection.after(progress);
                    let times = ResponseTimes { deadline, idle: self.spec.timeouts.idle, end: exchange.end };
                    return Ok(response.map(|body| ReceivedResponse::new(body, connection, in_flight, times)));
                }
                Err(failed) => failed,
            };
            if let Some(failure) = progress.failure() {
                return Err(UpstreamError::RequestBody(failure).into());
            }
            // The server closed an idle connection just when it was taken: it has answered nothing. Once is enough: the
            // next connection is a new one.
            let was_closed = is_pooled && (unsent.is_some() || is_stale);
            let answered = unsent.is_none() && error.is_parse();
            match unsent.or(copy).filter(|_| !answered) {
                Some(again) if was_closed => request = again,
                again => return Err(FailedAttempt { error: UpstreamError::of(error), again: again.map(Box::new) }),
            }
            opened = Box::pin(server.pool().open()).await;
        }
    }

    /// Waits for the head of a response. The time of the server begins when it has all of the request; a caller that
    /// sends its body slowly has the deadlines of its own connection, and is not the server's fault.
    async fn in_time<T>(
        &self,
        progress: &BodyProgress,
        deadline: &mut Deadline,
        mut sent: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, UpstreamError> {
        let mut was_done = progress.is_done();
        let mut bytes = progress.bytes();
        loop {
            let in_time = poll_fn(|cx| match sent.as_mut().poll(cx) {
                Poll::Ready(result) => Poll::Ready(Some(result)),
                Poll::Pending => deadline.poll(cx).map(|()| None),
            });
            if let Some(result) = in_time.await {
                return Ok(result);
            }
            deadline.set(Instant::now() + self.spec.timeouts.first_byte);
            match (progress.is_done(), was_done) {
                (true, false) => was_done = true,
                (false, _) if progress.bytes() > bytes => bytes = progress.bytes(),
                _ => return Err(too_late(progress, UpstreamStep::FirstByte)),
            }
        }
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
        let times = ResponseTimes { deadline: Deadline::new(Instant::now() + idle), idle, end };
        ReceivedResponse::new(body, sender.used(), in_flight, times)
    }
}

/// Whose fault it is that an exchange takes too long: the caller's, if the server waits for more of the body.
fn too_late(progress: &BodyProgress, step: UpstreamStep) -> UpstreamError {
    match progress.waits_for_caller() {
        true => UpstreamError::RequestBody(HttpError::TooSlow),
        false => UpstreamError::Timeout(step),
    }
}

/// Whether the server may have closed the connection while it waited, and the request is one that does nothing.
fn may_be_stale(checkout: &Checkout, request: &Request<SentRequestBody>) -> bool {
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    matches!(checkout, Checkout::Http1 { may_be_stale: true, .. }) && is_safe && request.body().is_end_stream()
}
