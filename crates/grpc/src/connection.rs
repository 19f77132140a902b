//! One connection: takes calls in, answers what it can at once, and gives the others tasks.

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

use super::call::{Call, PresentedToken, Refused};
use super::fast_path;
use super::io_activity::TrackedIo;
use super::keep_alive::{KeepAlive, KeepAliveAction};
use super::message::{Line, Message};
use super::method::Method;
use super::outgoing;
use super::services::Services;
use super::via_tonic::Carry;
use tollgate_net::{ListenerContext, Stream};

/// Calls of one connection at the same time.
const STREAMS_MAX: u32 = 100;
/// Tasks of one connection: a call that was given up may leave one that is just ending.
const TASKS_MAX: usize = 2 * STREAMS_MAX as usize;
/// Windows: what a caller may send before we have read it.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// What is kept of an answer that the caller has no room for.
const SEND_BYTES: usize = 64 << 10;
/// Calls that are opened and given up before we look at them, and other faults of single calls: more end the connection.
const RESETS_MAX: usize = 20;
const FAULTS_MAX: usize = 100;
/// What is remembered of calls that we gave up, so that late frames for them do no harm.
const GIVEN_UP_MAX: usize = 50;
const GIVEN_UP_FOR: Duration = Duration::from_secs(5);

type H2 = server::Connection<TrackedIo, Bytes>;

/// Serves a connection until it ends.
pub(super) async fn serve(services: &Arc<Services>, stream: Stream, context: &ListenerContext) {
    let (felt, io_activity) = TrackedIo::new(stream);
    // In a box, as it is large and soon over: what is left is all that an idle connection holds.
    let shaken = timeout(context.limits.head_timeout, Box::pin(builder(context).handshake(felt))).await;
    let Ok(Ok(mut h2)) = shaken else { return }; // what is no HTTP/2 is closed
    let mut keep_alive = KeepAlive::new(&mut h2, io_activity.clone(), services.max_age, context);
    let leave = keep_alive.leave().clone();
    let line = Line { share: context.budget.for_connection(), io_activity };
    let mut calls = Calls { services, line, leave, tasks: JoinSet::new() };
    let mut drain = pin!(context.drain.begun());
    let (mut listening, mut draining) = (false, false);
    poll_fn(|cx| {
        loop {
            if take_in(&mut h2, &mut calls, &mut keep_alive, cx).is_ready() {
                return Poll::Ready(());
            }
            while let Poll::Ready(Some(_)) = calls.tasks.poll_join_next(cx) {}
            // Looked at once, and then when it has begun: the waker of a task stays the same, and a look is a lock that
            // all connections share.
            let look = !draining && (!listening || context.drain.has_begun());
            listening = true;
            if look && drain.as_mut().poll(cx).is_ready() {
                draining = true;
                keep_alive.drain(&mut h2);
                continue; // what was just said is to be sent
            }
            match keep_alive.keep(&mut h2, !calls.tasks.is_empty(), cx) {
                KeepAliveAction::Over => return Poll::Ready(()),
                KeepAliveAction::HealthUpdates => {}
                KeepAliveAction::Well => return Poll::Pending,
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
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(Some(FAULTS_MAX))
        .max_concurrent_reset_streams(GIVEN_UP_MAX)
        .reset_stream_duration(GIVEN_UP_FOR);
    builder
}

/// Begins every call that has come in; ready when the connection has ended.
///
/// All that are there are taken before any is answered: h2 writes whenever it is asked for the next one, and answers that
/// are made together are to leave together.
fn take_in(h2: &mut H2, calls: &mut Calls<'_>, keep_alive: &mut KeepAlive, cx: &mut Context<'_>) -> Poll<()> {
    let mut come = Vec::new();
    loop {
        let next = if come.len() < STREAMS_MAX as usize { h2.poll_accept(cx) } else { Poll::Pending };
        match next {
            Poll::Ready(Some(Ok(call))) => come.push(call),
            Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()), // only the caller could mind
            Poll::Pending if come.is_empty() => return Poll::Pending,
            Poll::Pending => {
                for (request, respond) in come.drain(..) {
                    keep_alive.called();
                    calls.begin(request, respond, cx);
                }
            }
        }
    }
}

/// The calls of a connection.
struct Calls<'a> {
    services: &'a Arc<Services>,
    line: Line,
    leave: CancellationToken,
    /// Calls that take time. Dropped with the connection, they end.
    tasks: JoinSet<()>,
}

impl Calls<'_> {
    fn begin(&mut self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>, cx: &mut Context<'_>) {
        let services = self.services;
        let (head, body) = request.into_parts();
        let call = match Call::open(services, &head) {
            Ok(call) => call,
            Err(Refused::Http(status)) => return outgoing::refuse(respond, status),
            Err(Refused::Grpc(method, status)) => return services.count(method, outgoing::fail(respond, *status)),
        };
        if self.tasks.len() >= TASKS_MAX {
            services.count(Some(call.method), Code::Unavailable);
            return respond.send_reset(Reason::REFUSED_STREAM);
        }
        match call.method {
            Method::Check | Method::ShouldRateLimit => {
                let message = Message::new(body, services.longest(call.method));
                if let Some(rest) = fast_path::begin(services, call, message, &self.line, respond, cx) {
                    self.tasks.spawn(rest.finish());
                }
            }
            _ => {
                let (services, line, leave) = (services.clone(), self.line.clone(), self.leave.clone());
                let token = call.method.takes_many().then(|| PresentedToken::of(&head.headers)).flatten();
                self.tasks.spawn(Carry { services, call, token, body, respond, line, leave }.run());
            }
        }
    }
}
