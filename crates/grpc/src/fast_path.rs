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
use super::convert;
use super::decide::{Decided, decide};
use super::message::{Line, Message, PREFIX_BYTES};
use super::method::Method;
use super::outgoing::{self, Unsent, framed};
use super::services::Services;
use super::via_tonic::{panicked, until_gone, within};
use tollgate_net::catch_panic;
use tollgate_service::Service;
use tollgate_service::rls::{self, RlsAnswer, RlsError, RlsOutcome};
use tollgate_telemetry::RlsCallEnd;

/// An answer, framed; or why there is none.
type Answer = Result<Bytes, Status>;
type Awaited = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// What is left to do for a call.
pub(super) struct Rest {
    services: Arc<Services>,
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
    services: &Arc<Services>,
    call: Call,
    mut message: Message,
    line: &Line,
    respond: SendResponse<Bytes>,
    cx: &mut Context<'_>,
) -> Option<Rest> {
    let rest = |left| Some(Rest { services: services.clone(), call, left });
    match message.poll(line, cx) {
        Poll::Pending => rest(Left::Read(message, line.clone(), respond)),
        Poll::Ready(read) => {
            match read.map_or_else(|status| Answered::Now(Err(status)), |read| answer(services, call, read)) {
                Answered::Now(answer) => {
                    reply(services, call, answer, respond).and_then(|unsent| rest(Left::Send(unsent)))
                }
                Answered::Later(awaited) => rest(Left::Await(awaited, respond)),
            }
        }
    }
}

impl Rest {
    /// Does it.
    pub(super) async fn finish(self) {
        let Rest { services, call, left } = self;
        let patience = services.limits().write_timeout;
        let (answering, mut respond): (Awaited, _) = match left {
            Left::Send(unsent) => return unsent.send(patience).await,
            Left::Await(awaited, respond) => (awaited, respond),
            Left::Read(message, line, respond) => {
                (Box::pin(read_and_answer(services.clone(), call, message, line)), respond)
            }
        };
        let answering =
            within(call.deadline, catch_panic(Box::pin(tollgate_engine::with_deadline(call.deadline, answering))));
        let answer = match until_gone(&mut respond, answering).await {
            None => return services.count(Some(call.method), Code::Cancelled),
            Some(None) => Err(too_late()),
            Some(Some(None)) => Err(panicked()),
            Some(Some(Some(answer))) => answer,
        };
        if let Some(unsent) = reply(&services, call, answer, respond) {
            unsent.send(patience).await;
        }
    }
}

async fn read_and_answer(services: Arc<Services>, call: Call, mut message: Message, line: Line) -> Answer {
    let read = message.read(&line, services.limits().body_timeout).await?;
    match answer(&services, call, read) {
        Answered::Now(answer) => answer,
        Answered::Later(awaited) => awaited.await,
    }
}

/// Sends an answer, and counts it.
fn reply(services: &Services, call: Call, answer: Answer, respond: SendResponse<Bytes>) -> Option<Unsent> {
    match answer {
        Ok(message) => {
            services.count(Some(call.method), Code::Ok);
            outgoing::answer(respond, message)
        }
        Err(status) => {
            services.count(Some(call.method), outgoing::fail(respond, status));
            None
        }
    }
}

/// Answers a message. What panics is a bug, and is answered as such; it takes nothing else down.
fn answer(services: &Services, call: Call, mut message: Bytes) -> Answered {
    message.advance(PREFIX_BYTES);
    if call.is_over() {
        return Answered::Now(Err(too_late())); // nothing is charged for nobody
    }
    let service = &services.service;
    let answering = AssertUnwindSafe(|| match call.method {
        Method::ShouldRateLimit => should_rate_limit(service, call, message),
        _ => check(service, call, message),
    });
    catch_unwind(answering).unwrap_or_else(|_| Answered::Now(Err(panicked())))
}

fn unreadable(error: &prost::DecodeError) -> Answered {
    Answered::Now(Err(Status::invalid_argument(error.to_string())))
}

fn check(service: &Arc<Service>, call: Call, message: Bytes) -> Answered {
    let request = match CheckRequest::decode(message) {
        Ok(request) => request,
        Err(error) => return unreadable(&error),
    };
    let namespace = if request.namespace.is_empty() { Request::DEFAULT_NAMESPACE } else { &request.namespace };
    if !call.scope.is_for_all() && !service.may_ask(call.scope, namespace) {
        return Answered::Now(Err(other_namespace()));
    }
    let tell = |decision: &Decision| convert::response(decision).map(|response| framed(&response));
    match decide(service, request, tell) {
        Ok(Decided::Now(answer)) => Answered::Now(answer),
        Ok(Decided::Later(later)) => {
            let service = service.clone();
            Answered::Later(Box::pin(async move { later.decide(&service, tell).await }))
        }
        Err(fault) => Answered::Now(Err(convert::unreadable(&fault))),
    }
}

fn should_rate_limit(service: &Arc<Service>, call: Call, message: Bytes) -> Answered {
    let request = match RateLimitRequest::decode(message) {
        Ok(request) => request,
        Err(error) => return unreadable(&error),
    };
    if !call.scope.is_for_all() && !service.may_ask(call.scope, &request.domain) {
        return Answered::Now(Err(other_namespace()));
    }
    let tell = |service: &Service, answer: Result<RlsAnswer, RlsError>| {
        answer.map(|answer| framed(&answer.response)).map_err(|refused| of_refused(service, &refused))
    };
    match rls::try_now(service, &request) {
        RlsOutcome::Done(answer) => Answered::Now(tell(service, answer)),
        RlsOutcome::Later(begun) => {
            let service = service.clone();
            Answered::Later(Box::pin(
                async move { tell(&service, rls::should_rate_limit(&service, &request, begun).await) },
            ))
        }
    }
}

fn of_refused(service: &Service, refused: &RlsError) -> Status {
    let calls = &service.rls_stats.calls;
    match refused {
        RlsError::Invalid(_) => calls.count(RlsCallEnd::ServiceError),
        RlsError::StoreUnavailable => calls.count(RlsCallEnd::StoreError),
    }
    match refused {
        refused if service.rls.unknown_errors => Status::unknown(refused.to_string()),
        RlsError::Invalid(why) => Status::invalid_argument(why),
        RlsError::StoreUnavailable => Status::unavailable(refused.to_string()),
    }
}
