//! Calls that go through tonic, each in its own task.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Request, Response, Uri, Version};
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::body::Body;

use super::call::GrpcCall;
use super::convert::panicked;
use super::deadline::{before_deadline, deadline_exceeded, until_reset};
use super::incoming::{Incoming, MessageStream};
use super::message::{CallContext, UnaryMessage, budget_exhausted};
use super::outgoing;
use super::services::Services;
use super::stream::PresentedToken;
use tollgate_net::{StreamBudget, catch_panic};
use tollgate_service::trace::{TraceContext, Traced};

/// Memory of a long-lived call: tonic's read and write buffers.
const LONG_LIVED_BYTES: u64 = 16 << 10;

/// One call through tonic.
pub(super) struct TonicCall {
    pub(super) services: Arc<Services>,
    pub(super) call: GrpcCall,
    /// Only for client-streaming calls.
    pub(super) token: Option<PresentedToken>,
    pub(super) body: RecvStream,
    pub(super) respond: SendResponse<Bytes>,
    pub(super) context: CallContext,
    /// Cancelled when the connection is about to close.
    pub(super) closing: CancellationToken,
}

impl TonicCall {
    /// Runs the call and sends the response.
    pub(super) async fn run(self) {
        let TonicCall { services, call, token, body, mut respond, context, closing } = self;
        let mut reservation = StreamBudget::default();
        if call.method.is_long_lived() && reservation.grow(&context.budget, LONG_LIVED_BYTES).is_none() {
            return services.count(Some(call.method), outgoing::send_status(respond, budget_exhausted()));
        }
        let max_wait = services.limits().write_timeout;
        // Boxed, because each wrapper future would otherwise hold the inner one twice.
        let responding =
            within_trace(call.trace, Box::pin(call_tonic(&services, &call, token, body, context, closing)));
        let responding = before_deadline(
            call.deadline,
            catch_panic(Box::pin(tollgate_service::with_deadline(call.deadline, responding))),
        );
        let outcome = until_reset(&mut respond, responding).await;
        let code = match outcome {
            None => Code::Cancelled,
            Some(Some(Some(response))) => {
                // A stream decides while it is sent.
                let sending = Box::pin(outgoing::send(&mut respond, response, call.deadline, max_wait));
                let sending = within_trace(call.trace, sending);
                catch_panic(sending).await.unwrap_or(Code::Internal)
            }
            Some(Some(None)) => outgoing::send_status(respond, panicked()),
            Some(None) => outgoing::send_status(respond, deadline_exceeded()),
        };
        services.count(Some(call.method), code);
    }
}

/// Decisions of a call belong to the trace of its caller.
fn within_trace<'a, T: 'a>(
    trace: Option<TraceContext>,
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    match trace {
        None => future,
        Some(context) => Box::pin(Traced::new(context, future)),
    }
}

/// Tonic's response. A unary message is passed on only when complete: tonic would reserve the announced length.
async fn call_tonic(
    services: &Services,
    call: &GrpcCall,
    token: Option<PresentedToken>,
    body: RecvStream,
    context: CallContext,
    closing: CancellationToken,
) -> Response<Body> {
    let method = call.method;
    let (max_message_bytes, max_wait) = (services.max_message_bytes(method), services.limits().body_timeout);
    if method.is_client_streaming() {
        let messages = Box::new(MessageStream::new(body, max_message_bytes, max_wait, context, closing.clone()));
        let mut request = request(call, Incoming::Streaming(messages), closing);
        token.map(|token| request.extensions_mut().insert(token));
        return services.via_tonic(method, request).await;
    }
    let mut message = UnaryMessage::new(body, max_message_bytes);
    match message.read(&context, max_wait).await {
        Ok(whole) => services.via_tonic(method, request(call, Incoming::Unary(Some(whole)), closing)).await,
        Err(status) => status.into_http(),
    }
}

/// Builds the request for tonic. The original head is not kept: it would keep the whole read buffer alive.
fn request(call: &GrpcCall, body: Incoming, closing: CancellationToken) -> Request<Incoming> {
    let mut request = Request::new(body);
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = Uri::from_static(call.method.path());
    *request.version_mut() = Version::HTTP_2;
    request.extensions_mut().insert(closing);
    request.extensions_mut().insert(call.scope);
    request
}
