//! The two methods that are called all the time. Most of their calls are answered where they are taken in: the message is
//! there, the engine decides at once, and the caller has room for the answer. Only what has to wait gets a task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use h2::server::SendResponse;
use prost::Message as _;
use tollgate_core::Request;
use tollgate_engine::Decision;
use tollgate_proto::rls::RateLimitRequest;
use tollgate_proto::v1::CheckRequest;
use tonic::{Code, Status};

use super::call::{Call, other_namespace, too_late};
use super::carry::{panicked, until_gone, within};
use super::convert;
use super::decide::{Decided, decide};
use super::desk::Desk;
use super::message::{Line, Message, PREFIX_BYTES};
use super::method::Method;
use super::outgoing::{self, Unsent, framed};
use crate::api::Shared;
use crate::caught::caught;
use crate::envoy_rls::{self, Now, Refused};
use crate::telemetry::CallEnd;

/// An answer, framed; or why there is none.
type Answer = Result<Bytes, Status>;
type Awaited = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// What is left to do for a call.
pub(super) struct Rest {
    desk: Arc<Desk>,
    call: Call,
    left: Left,
}

enum Left {
    /// Its message is not all there.
    Read(Message, Line, SendResponse<Bytes>),
    /// Somebody has to be waited for.
    Await(Awaited, SendResponse<Bytes>),
    /// The caller has no room for the answer.
    Send(Unsent),
}

enum Answered {
    Now(Answer),
    Later(Awaited),
}

/// Answers a call, if that can be done at once.
pub(super) fn begin(
    desk: &Arc<Desk>,
    call: Call,
    mut message: Message,
    line: &Line,
    respond: SendResponse<Bytes>,
    cx: &mut Context<'_>,
) -> Option<Rest> {
    let rest = |left| Some(Rest { desk: desk.clone(), call, left });
    match message.poll(line, cx) {
        Poll::Pending => rest(Left::Read(message, line.clone(), respond)),
        Poll::Ready(read) => {
            match read.map_or_else(|status| Answered::Now(Err(status)), |read| answer(desk, call, read)) {
                Answered::Now(answer) => reply(desk, call, answer, respond).and_then(|unsent| rest(Left::Send(unsent))),
                Answered::Later(awaited) => rest(Left::Await(awaited, respond)),
            }
        }
    }
}

impl Rest {
    /// Does it.
    pub(super) async fn finish(self) {
        let Rest { desk, call, left } = self;
        let patience = desk.limits().write_timeout;
        let (answering, mut respond): (Awaited, _) = match left {
            Left::Send(unsent) => return unsent.send(patience).await,
            Left::Await(awaited, respond) => (awaited, respond),
            Left::Read(message, line, respond) => {
                (Box::pin(read_and_answer(desk.clone(), call, message, line)), respond)
            }
        };
        let answering = within(call.deadline, caught(Box::pin(tollgate_engine::until(call.deadline, answering))));
        let answer = match until_gone(&mut respond, answering).await {
            None => return desk.count(Some(call.method), Code::Cancelled),
            Some(None) => Err(too_late()),
            Some(Some(None)) => Err(panicked()),
            Some(Some(Some(answer))) => answer,
        };
        if let Some(unsent) = reply(&desk, call, answer, respond) {
            unsent.send(patience).await;
        }
    }
}

async fn read_and_answer(desk: Arc<Desk>, call: Call, mut message: Message, line: Line) -> Answer {
    let read = message.read(&line, desk.limits().body_timeout).await?;
    match answer(&desk, call, read) {
        Answered::Now(answer) => answer,
        Answered::Later(awaited) => awaited.await,
    }
}

/// Sends an answer, and counts it.
fn reply(desk: &Desk, call: Call, answer: Answer, respond: SendResponse<Bytes>) -> Option<Unsent> {
    match answer {
        Ok(message) => {
            desk.count(Some(call.method), Code::Ok);
            outgoing::answer(respond, message)
        }
        Err(status) => {
            desk.count(Some(call.method), outgoing::fail(respond, status));
            None
        }
    }
}

/// Answers a message. What panics is a bug, and is answered as such; it takes nothing else down.
fn answer(desk: &Desk, call: Call, mut message: Bytes) -> Answered {
    message.advance(PREFIX_BYTES);
    if call.is_over() {
        return Answered::Now(Err(too_late())); // nothing is charged for nobody
    }
    let shared = &desk.shared;
    let answering = AssertUnwindSafe(|| match call.method {
        Method::ShouldRateLimit => should_rate_limit(shared, call, message),
        _ => check(shared, call, message),
    });
    catch_unwind(answering).unwrap_or_else(|_| Answered::Now(Err(panicked())))
}

fn unreadable(error: &prost::DecodeError) -> Answered {
    Answered::Now(Err(Status::invalid_argument(error.to_string())))
}

fn check(shared: &Arc<Shared>, call: Call, message: Bytes) -> Answered {
    let request = match CheckRequest::decode(message) {
        Ok(request) => request,
        Err(error) => return unreadable(&error),
    };
    let namespace = if request.namespace.is_empty() { Request::DEFAULT_NAMESPACE } else { &request.namespace };
    if !call.pass.is_for_all() && !shared.may_ask(call.pass, namespace) {
        return Answered::Now(Err(other_namespace()));
    }
    let tell = |decision: &Decision| convert::response(decision).map(|response| framed(&response));
    match decide(shared, request, tell) {
        Ok(Decided::Now(answer)) => Answered::Now(answer),
        Ok(Decided::Later(later)) => {
            let shared = shared.clone();
            Answered::Later(Box::pin(async move { later.decide(&shared, tell).await }))
        }
        Err(fault) => Answered::Now(Err(convert::unreadable(&fault))),
    }
}

fn should_rate_limit(shared: &Arc<Shared>, call: Call, message: Bytes) -> Answered {
    let request = match RateLimitRequest::decode(message) {
        Ok(request) => request,
        Err(error) => return unreadable(&error),
    };
    if !call.pass.is_for_all() && !shared.may_ask(call.pass, &request.domain) {
        return Answered::Now(Err(other_namespace()));
    }
    let tell = |shared: &Shared, answer: Result<envoy_rls::Answered, Refused>| {
        answer.map(|answer| framed(&answer.response)).map_err(|refused| of_refused(shared, &refused))
    };
    match envoy_rls::try_now(shared, &request) {
        Now::Answered(answer) => Answered::Now(tell(shared, answer)),
        Now::Later(begun) => {
            let shared = shared.clone();
            Answered::Later(Box::pin(async move {
                tell(&shared, envoy_rls::should_rate_limit(&shared, &request, begun).await)
            }))
        }
    }
}

fn of_refused(shared: &Shared, refused: &Refused) -> Status {
    let calls = &shared.metrics.domains.calls;
    match refused {
        Refused::Invalid(_) => calls.count(CallEnd::ServiceError),
        Refused::StoreAway => calls.count(CallEnd::StoreError),
    }
    match refused {
        refused if shared.envoy.unknown_errors => Status::unknown(refused.to_string()),
        Refused::Invalid(why) => Status::invalid_argument(why),
        Refused::StoreAway => Status::unavailable(refused.to_string()),
    }
}
