//! HTTP/2, by hyper: framing, flow control and its many floods are its business; ours are caps, deadlines and the end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Answer, Fault, Head, answer_or_fail};
use crate::Reply;
use crate::net::{Drain, NetLimits, Rewound, Stream};

/// Streams of one connection at the same time.
const STREAMS_MAX: u32 = 100;
/// How often a silent caller is asked whether it is there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_WITHIN: Duration = Duration::from_secs(10);

/// How long a caller that was told to go may take to do so, once all of its requests have been answered.
const GOODBYE: Duration = Duration::from_secs(2);

/// Serves an HTTP/2 connection until it ends.
pub(super) async fn serve<A: Answer>(
    read: Vec<u8>,
    stream: Stream,
    limits: &NetLimits,
    drain: &Drain,
    answer: &Arc<A>,
) {
    let active = Arc::new(AtomicUsize::new(0));
    let service = service_fn(|request: Request<Incoming>| {
        let (answer, active, limits) = (answer.clone(), Active::enter(&active), *limits);
        async move {
            let _active = active;
            Ok::<_, Infallible>(respond(request, &limits, &*answer).await)
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(limits.max_head).unwrap_or(u32::MAX))
        .max_send_buf_size(64 << 10)
        .initial_stream_window_size(64 << 10)
        .initial_connection_window_size(1 << 20)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WITHIN);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Rewound::new(read, stream)), service));
    // Asked now and then rather than told: a connection counts as idle between one and two of its idle times.
    let mut idle_since = Instant::now();
    let mut ending = false;
    loop {
        // A caller that was told to go and does not even answer pings is not waited for.
        let look = idle_since + if ending { GOODBYE } else { limits.idle_timeout };
        tokio::select! {
            _ = connection.as_mut() => return, // however it ended, only the caller could mind
            () = drain.begun(), if !ending => {
                ending = true;
                idle_since = Instant::now();
                connection.as_mut().graceful_shutdown();
            }
            () = sleep_until(look) => {
                if active.load(Ordering::Relaxed) == 0 {
                    if ending {
                        return;
                    }
                    ending = true;
                    connection.as_mut().graceful_shutdown();
                }
                idle_since = Instant::now();
            }
        }
    }
}

/// Counts a stream as active while it lives.
struct Active(Arc<AtomicUsize>);

impl Active {
    fn enter(count: &Arc<AtomicUsize>) -> Active {
        count.fetch_add(1, Ordering::Relaxed);
        Active(count.clone())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn respond<A: Answer>(request: Request<Incoming>, limits: &NetLimits, answer: &A) -> Response<Full<Bytes>> {
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
        from_page: field(header::ORIGIN).is_some() || parts.headers.contains_key("sec-fetch-site"),
    };
    let opened = if parts.headers.len() > limits.max_headers {
        answer.refuse(Fault::HeadTooLarge, &mut reply);
        None
    } else {
        answer.open(&head, &mut reply)
    };
    let plan = opened.map(|(plan, _)| plan);
    if let Some((plan, max_body)) = opened {
        match timeout(limits.body_timeout, Limited::new(body, max_body).collect()).await {
            Ok(Ok(body)) => answer_or_fail(answer, plan, &body.to_bytes(), &mut reply).await,
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                answer.refuse(Fault::BodyTooLarge, &mut reply);
            }
            Ok(Err(_)) => answer.refuse(Fault::Malformed("the body ended early"), &mut reply),
            Err(_) => answer.refuse(Fault::TooSlow, &mut reply),
        }
    }
    answer.answered(plan, reply.status);
    response(&reply, parts.method == http::Method::HEAD)
}

fn response(reply: &Reply, head_only: bool) -> Response<Full<Bytes>> {
    let body = if head_only { Bytes::new() } else { Bytes::copy_from_slice(&reply.body) };
    let mut response = Response::new(Full::new(body));
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
