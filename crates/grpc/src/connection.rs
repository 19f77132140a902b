//! The gRPC protocol and its connection loop: accepts calls, completes the fast ones in place and spawns tasks for the others.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::call::{CallRejection, GrpcCall, token};
use super::fast_path;
use super::io_activity::TrackedIo;
use super::keep_alive::{H2Connection, KeepAlive, KeepAliveAction};
use super::message::{CallContext, UnaryMessage};
use super::method::GrpcMethod;
use super::outgoing;
use super::services::{GrpcConfig, Services};
use super::stream::PresentedToken;
use super::via_tonic::TonicCall;
use tollgate_net::{ListenerContext, Peer, Protocol, Stream};

/// Concurrent calls per connection.
const STREAMS_MAX: u32 = 100;
/// Tasks per connection. More than streams, because the task of a reset call may still be ending.
const TASKS_MAX: usize = 2 * STREAMS_MAX as usize;
/// Flow-control windows: bytes that a client may send before the server has read them.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// Response bytes buffered per stream while the client's window is full.
const SEND_BYTES: usize = 64 << 10;
/// Streams that the client resets before they are accepted, and stream errors: h2 closes the connection beyond these.
const PENDING_RESETS_MAX: usize = 20;
const STREAM_ERRORS_MAX: usize = 100;
/// Reset streams that h2 remembers, and for how long, so that late frames for them are ignored.
const RESET_STREAMS_MAX: usize = 50;
const RESET_STREAM_TTL: Duration = Duration::from_secs(5);

/// The gRPC protocol, as served by a listener.
pub struct Grpc(Arc<Services>);

impl Grpc {
    /// Builds the transport.
    pub fn new(config: GrpcConfig) -> Grpc {
        Grpc(Arc::new(Services::new(config)))
    }
}

impl Protocol for Grpc {
    async fn serve(&self, stream: Stream, _peer: &Peer, context: &ListenerContext) {
        serve(&self.0, stream, context).await;
    }

    fn too_many_connections(&self) -> &'static [u8] {
        b"" // HTTP/2 has no error reply before the client's settings arrive
    }
}

/// Serves a connection until it ends.
async fn serve(services: &Arc<Services>, stream: Stream, context: &ListenerContext) {
    let (io, io_activity) = TrackedIo::new(stream);
    // Boxed, because the handshake future is large and short-lived: an idle connection should not hold its space.
    let handshake = timeout(context.limits.head_timeout, Box::pin(builder(context).handshake(io))).await;
    let Ok(Ok(mut h2)) = handshake else { return }; // not HTTP/2, or too slow
    let mut keep_alive = KeepAlive::new(&mut h2, io_activity.clone(), services.max_age, context);
    let closing = keep_alive.closing().clone();
    let call_context = CallContext { budget: context.budget.for_connection(), io_activity };
    let mut calls = Calls { services, call_context, closing, tasks: JoinSet::new() };
    let mut drain = pin!(context.drain.begun());
    let (mut is_registered, mut is_draining) = (false, false);
    poll_fn(|cx| {
        loop {
            if accept_calls(&mut h2, &mut calls, &mut keep_alive, cx).is_ready() {
                return Poll::Ready(());
            }
            while let Poll::Ready(Some(_)) = calls.tasks.poll_join_next(cx) {}
            // Polled once to register the waker, and again when the drain has begun: the waker of a task stays the
            // same, and each poll takes a lock that all connections share.
            let poll_drain = !is_draining && (!is_registered || context.drain.has_begun());
            is_registered = true;
            if poll_drain && drain.as_mut().poll(cx).is_ready() {
                is_draining = true;
                keep_alive.drain(&mut h2);
                continue; // h2 must be polled to send GOAWAY
            }
            match keep_alive.poll(&mut h2, !calls.tasks.is_empty(), cx) {
                KeepAliveAction::Close => return Poll::Ready(()),
                KeepAliveAction::Flush => {}
                KeepAliveAction::Wait => return Poll::Pending,
            }
        }
    })
    .await;
}

fn builder(context: &ListenerContext) -> server::Builder {
    let mut builder = server::Builder::new();
    builder
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(context.limits.max_head).unwrap_or(u32::MAX))
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buffer_size(SEND_BYTES)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .max_local_error_reset_streams(Some(STREAM_ERRORS_MAX))
        .max_concurrent_reset_streams(RESET_STREAMS_MAX)
        .reset_stream_duration(RESET_STREAM_TTL);
    builder
}

/// Starts every call that has arrived; ready when the connection has ended.
///
/// Accepts all available calls before it answers any: `poll_accept` also writes, so responses produced together leave
/// in one write.
fn accept_calls(
    h2: &mut H2Connection,
    calls: &mut Calls<'_>,
    keep_alive: &mut KeepAlive,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let mut accepted = Vec::new();
    loop {
        let next = if accepted.len() < STREAMS_MAX as usize { h2.poll_accept(cx) } else { Poll::Pending };
        match next {
            Poll::Ready(Some(Ok(call))) => accepted.push(call),
            Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()), // closed or failed: the client knows
            Poll::Pending if accepted.is_empty() => return Poll::Pending,
            Poll::Pending => {
                for (request, respond) in accepted.drain(..) {
                    keep_alive.record_call();
                    calls.start(request, respond, cx);
                }
            }
        }
    }
}

/// The running calls of a connection.
struct Calls<'a> {
    services: &'a Arc<Services>,
    call_context: CallContext,
    closing: CancellationToken,
    /// Calls that did not complete at once. Dropping the connection aborts them.
    tasks: JoinSet<()>,
}

impl Calls<'_> {
    fn start(&mut self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>, cx: &mut Context<'_>) {
        let services = self.services;
        let (head, body) = request.into_parts();
        let call = match GrpcCall::from_head(services, &head) {
            Ok(call) => call,
            Err(CallRejection::Http(status)) => return outgoing::reject_http(respond, status),
            Err(CallRejection::Grpc(method, status)) => {
                return services.count(method, outgoing::send_status(respond, *status));
            }
        };
        if self.tasks.len() >= TASKS_MAX {
            services.count(Some(call.method), Code::Unavailable);
            return respond.send_reset(Reason::REFUSED_STREAM);
        }
        match call.method {
            GrpcMethod::Check | GrpcMethod::ShouldRateLimit => {
                let message = UnaryMessage::new(body, services.max_message_bytes(call.method));
                if let Some(task) = fast_path::start(services, call, message, &self.call_context, respond, cx) {
                    self.tasks.spawn(task.finish());
                }
            }
            _ => {
                let (services, context, closing) = (services.clone(), self.call_context.clone(), self.closing.clone());
                let token = token(&head.headers).filter(|_| call.method.is_client_streaming());
                let token = token.map(|token| PresentedToken(token.into()));
                self.tasks.spawn(TonicCall { services, call, token, body, respond, context, closing }.run());
            }
        }
    }
}
