//! HTTP/2 over hyper. hyper handles framing, flow control and floods; this module adds caps, deadlines and the drain.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::{Instant, sleep_until};
use tollgate_net::{ListenerContext, Peer, Rewound, Stream};

use crate::app::WebApp;
use crate::h2_activity::{ActiveStream, ConnectionActivity};
use crate::respond::{Via, respond};

/// The first bytes of an HTTP/2 client with prior knowledge.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Concurrent streams per connection.
const STREAMS_MAX: u32 = 100;
/// Interval of the pings on a silent connection, and the time limit for the reply.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the client to close the connection after GOAWAY and its last response.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// True if the TLS handshake agreed on HTTP/2.
pub fn is_agreed(stream: &Stream) -> bool {
    matches!(stream, Stream::Tls(tls) if tls.get_ref().1.alpn_protocol() == Some(b"h2"))
}

/// Serves an HTTP/2 connection until it ends.
pub async fn serve<A: WebApp>(read: Vec<u8>, stream: Stream, peer: &Peer, context: &ListenerContext, app: &Arc<A>) {
    let ListenerContext { limits, drain, .. } = context;
    let activity = Arc::new(ConnectionActivity::new());
    let service = service_fn(|request: Request<Incoming>| {
        let (app, peer, context) = (app.clone(), peer.clone(), context.clone());
        let via = Via::Http2(ActiveStream::enter(&activity));
        async move { Ok::<_, Infallible>(respond(&*app, &peer, &context, request, via).await) }
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
    let stall_limit = limits.body_timeout.max(limits.write_timeout);
    loop {
        let (is_active, is_open) = (activity.is_active(), activity.is_open());
        let limit = match ending {
            _ if is_active => stall_limit,
            // Responses that wait for their next bytes, such as events. Pings tell whether the client is there.
            _ if is_open => PING_INTERVAL,
            // hyper would wait for the client to close; a client that does not is cut off.
            Some(_) => CLOSE_TIMEOUT,
            None => limits.idle_timeout,
        };
        let since = match is_open && !is_active {
            true => Instant::now(),
            false => activity.last().max(ending.unwrap_or(activity.start)),
        };
        let due = since + limit;
        // A request that opens meanwhile has less time than an idle connection.
        let look_again = due.min(Instant::now() + stall_limit);
        tokio::select! {
            _ = connection.as_mut() => return, // an error concerns only the client
            () = drain.begun(), if ending.is_none() => {
                ending = Some(Instant::now());
                connection.as_mut().graceful_shutdown();
            }
            () = sleep_until(look_again) => {
                match ending {
                    _ if look_again < due => {}
                    _ if activity.last() > since || (is_open && !is_active) => {} // a request moved meanwhile
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
