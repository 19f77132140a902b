//! The hot methods, `Check` and `ShouldRateLimit`. Most of their calls finish in the connection's task: the message is
//! complete, the store answers without waiting, and the client's window has room for the response. Only calls that
//! must wait get a task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use h2::server::SendResponse;
use prost::Message as _;
use tollgate_core::Request;
use tollgate_proto::rls::RateLimitRequest;
use tollgate_proto::v1::CheckRequest;
use tollgate_service::Decision;
use tollgate_service::trace::{self, Traced};
use tonic::{Code, Status};

use super::call::GrpcCall;
use super::convert::{self, other_namespace, panicked};
use super::deadline::{before_deadline, deadline_exceeded, until_reset};
use super::decide::{CheckOutcome, decide};
use super::message::{CallContext, PREFIX_BYTES, UnaryMessage};
use super::method::GrpcMethod;
use super::outgoing::{self, PendingSend, encode_frame};
use super::services::Services;
use tollgate_net::catch_panic;
use tollgate_service::Service;
use tollgate_service::rls::{RlsAnswer, RlsError};

/// The framed response message, or an error status.
type UnaryResult = Result<Bytes, Status>;
type PendingUnary = Pin<Box<dyn Future<Output = UnaryResult> + Send>>;

/// A call that must wait, to be finished in a task.
pub(super) struct UnaryTask {
    services: Arc<Services>,
    call: GrpcCall,
    step: UnaryStep,
}

enum UnaryStep {
    /// The message is incomplete.
    Read(UnaryMessage, CallContext, SendResponse<Bytes>),
    /// The store must be awaited.
    Await(PendingUnary, SendResponse<Bytes>),
    /// The client's flow-control window is too small for the response.
    Send(PendingSend),
}

enum UnaryOutcome {
    Ready(UnaryResult),
    Pending(PendingUnary),
}

/// Handles a call; returns the remaining work if the call must wait.
pub(super) fn start(
    services: &Arc<Services>,
    call: GrpcCall,
    mut message: UnaryMessage,
    context: &CallContext,
    respond: SendResponse<Bytes>,
    cx: &mut Context<'_>,
) -> Option<UnaryTask> {
    let task = |step| Some(UnaryTask { services: services.clone(), call, step });
    match message.poll(context, cx) {
        Poll::Pending => task(UnaryStep::Read(message, context.clone(), respond)),
        Poll::Ready(read) => {
            match read.map_or_else(|status| UnaryOutcome::Ready(Err(status)), |read| handle(services, call, read)) {
                UnaryOutcome::Ready(result) => {
                    send_result(services, call, result, respond).and_then(|pending| task(UnaryStep::Send(pending)))
                }
                UnaryOutcome::Pending(pending) => task(UnaryStep::Await(pending, respond)),
            }
        }
    }
}

impl UnaryTask {
    /// Completes the call.
    pub(super) async fn finish(self) {
        let UnaryTask { services, call, step } = self;
        let max_wait = services.limits().write_timeout;
        let (handling, mut respond): (PendingUnary, _) = match step {
            UnaryStep::Send(pending) => return pending.send(max_wait).await,
            UnaryStep::Await(pending, respond) => (pending, respond),
            UnaryStep::Read(message, context, respond) => {
                (Box::pin(read_and_handle(services.clone(), call, message, context)), respond)
            }
        };
        let handling = before_deadline(
            call.deadline,
            catch_panic(Box::pin(tollgate_service::with_deadline(call.deadline, handling))),
        );
        let result = match until_reset(&mut respond, handling).await {
            None => return services.count(Some(call.method), Code::Cancelled),
            Some(None) => Err(deadline_exceeded()),
            Some(Some(None)) => Err(panicked()),
            Some(Some(Some(result))) => result,
        };
        if let Some(pending) = send_result(&services, call, result, respond) {
            pending.send(max_wait).await;
        }
    }
}

async fn read_and_handle(
    services: Arc<Services>,
    call: GrpcCall,
    mut message: UnaryMessage,
    context: CallContext,
) -> UnaryResult {
    let read = message.read(&context, services.limits().body_timeout).await?;
    match handle(&services, call, read) {
        UnaryOutcome::Ready(result) => result,
        UnaryOutcome::Pending(pending) => pending.await,
    }
}

/// Sends the result and counts the call.
fn send_result(
    services: &Services,
    call: GrpcCall,
    result: UnaryResult,
    respond: SendResponse<Bytes>,
) -> Option<PendingSend> {
    match result {
        Ok(message) => {
            services.count(Some(call.method), Code::Ok);
            outgoing::send_unary(respond, message)
        }
        Err(status) => {
            services.count(Some(call.method), outgoing::send_status(respond, status));
            None
        }
    }
}

/// Handles a message. A panic is answered with `INTERNAL` and does not affect other calls of the connection.
fn handle(services: &Services, call: GrpcCall, mut message: Bytes) -> UnaryOutcome {
    message.advance(PREFIX_BYTES);
    if call.is_expired() {
        return UnaryOutcome::Ready(Err(deadline_exceeded())); // the caller no longer waits: charge nothing
    }
    let service = &services.service;
    let handling = AssertUnwindSafe(|| match call.method {
        GrpcMethod::ShouldRateLimit => should_rate_limit(service, call, message),
        _ => check(service, call, message),
    });
    let handled = trace::during(call.trace, || catch_unwind(handling));
    match (handled.unwrap_or_else(|_| UnaryOutcome::Ready(Err(panicked()))), call.trace) {
        (UnaryOutcome::Pending(pending), Some(context)) => {
            UnaryOutcome::Pending(Box::pin(Traced::new(context, pending)))
        }
        (outcome, _) => outcome,
    }
}

fn unreadable(error: &prost::DecodeError) -> UnaryOutcome {
    UnaryOutcome::Ready(Err(Status::invalid_argument(error.to_string())))
}

fn check(service: &Arc<Service>, call: GrpcCall, message: Bytes) -> UnaryOutcome {
    let request = match CheckRequest::decode(message) {
        Ok(request) => request,
        Err(error) => return unreadable(&error),
    };
    let namespace = if request.namespace.is_empty() { Request::DEFAULT_NAMESPACE } else { &request.namespace };
    if !call.scope.is_for_all() && !service.may_ask(call.scope, namespace) {
        return UnaryOutcome::Ready(Err(other_namespace()));
    }
    let encode = |decision: &Decision, service: &Service| {
        convert::response(decision, &service.render).map(|response| encode_frame(&response))
    };
    match decide(service, request, |decision| encode(decision, service)) {
        Ok(CheckOutcome::Ready(result)) => UnaryOutcome::Ready(result),
        Ok(CheckOutcome::Pending(pending)) => {
            let service = service.clone();
            UnaryOutcome::Pending(Box::pin(async move {
                pending.decide(&service, |decision| encode(decision, &service)).await
            }))
        }
        Err(fault) => UnaryOutcome::Ready(Err(convert::unreadable(&fault))),
    }
}

fn should_rate_limit(service: &Arc<Service>, call: GrpcCall, message: Bytes) -> UnaryOutcome {
    let request = match RateLimitRequest::decode(message) {
        Ok(request) => request,
        Err(error) => return unreadable(&error),
    };
    if !call.scope.is_for_all() && !service.may_ask(call.scope, &request.domain) {
        return UnaryOutcome::Ready(Err(other_namespace()));
    }
    let encode = |service: &Service, result: Result<RlsAnswer, RlsError>| {
        result.map(|result| encode_frame(&result.response)).map_err(|error| rls_status(service, &error))
    };
    match service.try_rate_limit(&request) {
        Ok(result) => UnaryOutcome::Ready(encode(service, result)),
        Err(pending) => {
            let service = service.clone();
            UnaryOutcome::Pending(Box::pin(async move {
                encode(&service, service.rate_limit_pending(&request, pending).await)
            }))
        }
    }
}

fn rls_status(service: &Service, error: &RlsError) -> Status {
    match error {
        error if service.rls.unknown_errors => Status::unknown(error.to_string()),
        RlsError::Invalid(why) => Status::invalid_argument(why),
        RlsError::StoreUnavailable => Status::unavailable(error.to_string()),
    }
}
