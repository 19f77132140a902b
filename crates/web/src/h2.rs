//! HTTP/2 over hyper. hyper handles framing, flow control and floods; this module adds caps, deadlines and the drain.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::{Instant, sleep_until, timeout};

use tollgate_net::{BudgetPermit, ListenerContext, Peer, Rewound, Stream};
use tollgate_service::Reply;

use crate::head::HOSTS_MANY;
use crate::{Handler, Head, HttpError, ReceivedHeaders, h2_head, handle_or_fail};

/// Concurrent streams per connection.
const STREAMS_MAX: u32 = 100;
/// Interval of the pings on a silent connection, and the time limit for the reply.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the client to close the connection after GOAWAY and its last response.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves an HTTP/2 connection until it ends.
pub async fn serve<H: Handler>(
    read: Vec<u8>,
    stream: Stream,
    peer: &Peer,
    context: &ListenerContext,
    handler: &Arc<H>,
) {
    let peer = *peer;
    let ListenerContext { limits, drain, .. } = context;
    let activity = Arc::new(ConnectionActivity::new());
    let service = service_fn(|request: Request<Incoming>| {
        let (handler, context, active) = (handler.clone(), context.clone(), ActiveStream::enter(&activity));
        async move { Ok::<_, Infallible>(respond(request, &peer, &context, &*handler, active).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(limits.max_head).unwrap_or(u32::MAX))
        .max_send_buf_size(64 << 10)
        .initial_stream_window_size(64 << 10)
        .initial_connection_window_size(256 << 10)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Rewound::new(read, stream)), service));
    let mut ending = None;
    loop {
        let is_active = activity.count.load(Ordering::Relaxed) > 0;
        let limit = match ending {
            _ if is_active => limits.body_timeout.max(limits.write_timeout),
            // hyper would wait for the client to close; a client that does not is cut off.
            Some(_) => CLOSE_TIMEOUT,
            None => limits.idle_timeout,
        };
        let since = activity.last().max(ending.unwrap_or(activity.start));
        tokio::select! {
            _ = connection.as_mut() => return, // an error concerns only the client
            () = drain.begun(), if ending.is_none() => {
                ending = Some(Instant::now());
                connection.as_mut().graceful_shutdown();
            }
            () = sleep_until(since + limit) => {
                match ending {
                    _ if activity.last() > since => {} // a request moved meanwhile
                    _ if is_active => return, // the client does not read its responses
                    Some(_) => return,
                    None => {
                        ending = Some(Instant::now());
                        connection.as_mut().graceful_shutdown();
                    }
                }
            }
        }
    }
}

/// The open requests of a connection, and when one of them last made progress.
struct ConnectionActivity {
    start: Instant,
    count: AtomicUsize,
    /// Last progress, in milliseconds after `start`.
    last: AtomicU64,
}

impl ConnectionActivity {
    fn new() -> ConnectionActivity {
        ConnectionActivity { start: Instant::now(), count: AtomicUsize::new(0), last: AtomicU64::new(0) }
    }

    fn last(&self) -> Instant {
        self.start + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }

    fn touch(&self) {
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.fetch_max(elapsed, Ordering::Relaxed);
    }
}

/// Counts a stream as active until hyper has taken the last byte of its response.
struct ActiveStream(Arc<ConnectionActivity>);

impl ActiveStream {
    fn enter(activity: &Arc<ConnectionActivity>) -> ActiveStream {
        activity.count.fetch_add(1, Ordering::Relaxed);
        activity.touch();
        ActiveStream(activity.clone())
    }
}

impl Drop for ActiveStream {
    fn drop(&mut self) {
        self.0.touch();
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of a response, and what is held until it is sent. Split into frames: hyper polls for the next one only when
/// the flow control window has room, which shows that the client reads.
struct ResponseBody {
    body: Bytes,
    active: ActiveStream,
    _permit: BudgetPermit,
}

/// Largest frame of a response body.
const FRAME_BYTES: usize = 16 << 10;

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.active.0.touch();
        let some = self.body.len().min(FRAME_BYTES);
        Poll::Ready((some > 0).then(|| Ok(Frame::data(self.body.split_to(some)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.len() as u64)
    }
}

async fn respond<H: Handler>(
    request: Request<Incoming>,
    peer: &Peer,
    context: &ListenerContext,
    handler: &H,
    active: ActiveStream,
) -> Response<ResponseBody> {
    let limits = &context.limits;
    let (parts, body) = request.into_parts();
    let mut reply = Reply::default();
    reply.clear();
    let field = |name: header::HeaderName| parts.headers.get(name).map(HeaderValue::as_bytes);
    let head = Head {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query(),
        authorization: field(header::AUTHORIZATION),
        accept: field(header::ACCEPT),
        content_type: field(header::CONTENT_TYPE),
        content_encoding: field(header::CONTENT_ENCODING),
        host: parts.uri.authority().map(|host| host.as_str().as_bytes()).or_else(|| field(header::HOST)),
        origin: field(header::ORIGIN),
        sec_fetch_site: parts.headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes),
        if_match: field(header::IF_MATCH),
        if_none_match: field(header::IF_NONE_MATCH),
        idempotency_key: parts.headers.get(IDEMPOTENCY_KEY).map(HeaderValue::as_bytes),
        request_timeout: parts.headers.get("request-timeout").map(HeaderValue::as_bytes),
        headers: ReceivedHeaders::Http2(&parts.headers),
        repeated: has_repeated_field(&parts.headers).then_some("a header field that may be sent once is repeated"),
    };
    let error = match parts.headers.len() > limits.max_headers {
        true => Some(HttpError::HeadTooLarge),
        false => {
            let repeated = head.repeated.filter(|_| !handler.may_repeat(&head));
            let no_host = head.host.is_none().then_some(HOSTS_MANY);
            h2_head::check(&parts).err().or(no_host).or(repeated).map(HttpError::Malformed)
        }
    };
    let prepared = match error {
        Some(error) => {
            handler.reject(error, &mut reply);
            None
        }
        None => handler.prepare(peer, &head, &mut reply),
    };
    let mut permit = Some(BudgetPermit::default());
    if let Some((prepared, max_body)) = &prepared {
        let max_body = *max_body;
        let bytes = body.size_hint().exact().unwrap_or(max_body as u64).min(max_body as u64);
        permit = context.budget.reserve(bytes);
        let body = match permit {
            Some(_) => timeout(limits.body_timeout, Limited::new(body, max_body).collect()).await.map(Some),
            None => Ok(None),
        };
        match body.map(Option::transpose) {
            Ok(Ok(None)) => handler.reject(HttpError::NoRoom, &mut reply),
            Ok(Ok(Some(body))) => handle_or_fail(handler, prepared, &body.to_bytes(), &mut reply).await,
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                handler.reject(HttpError::BodyTooLarge, &mut reply);
            }
            Ok(Err(_)) => handler.reject(HttpError::Malformed("the body ended early"), &mut reply),
            Err(_) => handler.reject(HttpError::TooSlow, &mut reply),
        }
    }
    handler.completed(prepared.as_ref().map(|(prepared, _)| prepared), reply.status);
    let body = if parts.method == http::Method::HEAD { Vec::new() } else { std::mem::take(&mut reply.body) };
    let permit = context.budget.reserve(body.len() as u64).or(permit).unwrap_or_default();
    response(&reply, ResponseBody { body: Bytes::from(body), active, _permit: permit })
}

/// Names of fields that the `http` crate has no constant for.
const SEC_FETCH_SITE: &str = "sec-fetch-site";
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// True if a field that handlers read is repeated: readers disagree about which one counts.
fn has_repeated_field(headers: &HeaderMap) -> bool {
    headers.len() > headers.keys_len()
        && [
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
            header::ORIGIN,
            header::IF_MATCH,
            header::IF_NONE_MATCH,
            header::HeaderName::from_static(SEC_FETCH_SITE),
            header::HeaderName::from_static(IDEMPOTENCY_KEY),
        ]
        .iter()
        .any(|name| headers.get_all(name).iter().nth(1).is_some())
}

fn response(reply: &Reply, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(reply.status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in reply.fields.iter() {
        let name = header::HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}
