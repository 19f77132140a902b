//! Calls that are answered by way of tonic, each in a task of its own; and what any call has to heed that takes time.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Request, Response, Uri, Version};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::{Code, Status};

use super::call::{Call, PresentedToken, too_late};
use super::incoming::{Incoming, Many};
use super::message::{Line, Message, no_room};
use super::outgoing;
use super::services::Services;
use tollgate_net::{Deadline, StreamBudget, catch_panic};

/// What a call takes that lasts: what tonic reads into and writes from.
const LASTING_BYTES: u64 = 16 << 10;

/// One call.
pub(super) struct Carry {
    pub(super) services: Arc<Services>,
    pub(super) call: Call,
    /// Of a call with many messages.
    pub(super) token: Option<PresentedToken>,
    pub(super) body: RecvStream,
    pub(super) respond: SendResponse<Bytes>,
    pub(super) line: Line,
    /// Cancelled when the connection is about to end.
    pub(super) leave: CancellationToken,
}

impl Carry {
    /// Answers it.
    pub(super) async fn run(self) {
        let Carry { services, call, token, body, mut respond, line, leave } = self;
        let mut place = StreamBudget::default();
        if call.method.lasts() && place.grow(&line.share, LASTING_BYTES).is_none() {
            return services.count(Some(call.method), outgoing::fail(respond, no_room()));
        }
        let patience = services.limits().write_timeout;
        // In boxes, because everything that is wrapped around them would hold them twice.
        let answering = Box::pin(answer(&services, &call, token, body, line, leave));
        let answering =
            within(call.deadline, catch_panic(Box::pin(tollgate_engine::with_deadline(call.deadline, answering))));
        let answered = until_gone(&mut respond, answering).await;
        let code = match answered {
            None => Code::Cancelled,
            Some(Some(Some(response))) => {
                let sending = Box::pin(outgoing::send(&mut respond, response, call.deadline, patience));
                catch_panic(sending).await.unwrap_or(Code::Internal)
            }
            Some(Some(None)) => outgoing::fail(respond, panicked()),
            Some(None) => outgoing::fail(respond, too_late()),
        };
        services.count(Some(call.method), code);
    }
}

/// What tonic makes of a call. It is given a message when that is all there: it would hold as much as is announced.
async fn answer(
    services: &Services,
    call: &Call,
    token: Option<PresentedToken>,
    body: RecvStream,
    line: Line,
    leave: CancellationToken,
) -> Response<Body> {
    let method = call.method;
    let (longest, patience) = (services.longest(method), services.limits().body_timeout);
    if method.takes_many() {
        let many = Box::new(Many::new(body, longest, patience, line, leave.clone()));
        let mut request = request(call, Incoming::Many(many), leave);
        token.map(|token| request.extensions_mut().insert(token));
        return services.via_tonic(method, request).await;
    }
    let mut message = Message::new(body, longest);
    match message.read(&line, patience).await {
        Ok(whole) => services.via_tonic(method, request(call, Incoming::One(Some(whole)), leave)).await,
        Err(status) => status.into_http(),
    }
}

/// A call as tonic wants it. What was sent as a head is not kept: it holds on to everything that was read with it.
fn request(call: &Call, body: Incoming, leave: CancellationToken) -> Request<Incoming> {
    let mut request = Request::new(body);
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = Uri::from_static(call.method.path());
    *request.version_mut() = Version::HTTP_2;
    request.extensions_mut().insert(leave);
    request.extensions_mut().insert(call.scope);
    request
}

/// What is told about a bug.
pub(super) fn panicked() -> Status {
    Status::internal("a bug in Tollgate; its log says more")
}

/// What comes of `future`, unless the deadline passes first: then it is not even looked at again.
pub(super) async fn within<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let Some(at) = deadline else { return Some(future.await) };
    let mut deadline = Deadline::new(at);
    poll_fn(|cx| {
        // The timer rings to the millisecond, and never early.
        if Instant::now() >= at || deadline.poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

/// What comes of `future`, unless the caller gives its call up.
pub(super) async fn until_gone<F: Future>(respond: &mut SendResponse<Bytes>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match respond.poll_reset(cx) {
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(cx).map(Some),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_too_late_is_not_even_begun() {
        let begun = Cell::new(false);
        let work = || async { begun.set(true) };
        assert_eq!(within(Some(Instant::now()), work()).await, None);
        assert!(!begun.get());
        assert_eq!(within(Some(Instant::now() + Duration::from_millis(1)), work()).await, Some(()));
        assert_eq!(within(None, work()).await, Some(()));
        let store = tokio::time::sleep(Duration::from_millis(50));
        assert_eq!(
            within(Some(Instant::now() + Duration::from_millis(20)), store).await,
            None,
            "nor waited for longer"
        );
    }
}
