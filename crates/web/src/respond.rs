//! From a request of hyper to its response, over HTTP/1 or HTTP/2.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tollgate_net::{BudgetPermit, ListenerContext, Peer, catch_panic};

use crate::app::{WebApp, WebRequest, WebResponse};
use crate::body_gate::BodyGate;
use crate::h2_activity::ActiveStream;
use crate::h2_head;
use crate::head::{HOSTS_MANY, HttpError};
use crate::interim::InterimResponses;
use crate::received_body::ReceivedBody;
use crate::response_body::{Content, ResponseBody, STREAM_BYTES, StreamError};

/// The connection that a request came by.
pub(crate) enum Via {
    Http1(Arc<BodyGate>),
    Http2(ActiveStream),
}

/// Answers a request.
pub(crate) async fn respond<A: WebApp>(
    app: &A,
    peer: &Peer,
    context: &ListenerContext,
    request: Request<Incoming>,
    via: Via,
) -> Response<SentBody> {
    let (parts, incoming) = request.into_parts();
    let (error, gate) = match &via {
        Via::Http1(gate) => (gate.refusal(), Some(gate.clone())),
        Via::Http2(_) => (check_http2(&parts, context), None),
    };
    let is_head = parts.method == Method::HEAD;
    let response = match error {
        Some(error) => app.reject(error),
        None => {
            let known = gate.as_ref().filter(|_| parts.version >= Version::HTTP_11);
            let interim = known.map(|gate| InterimResponses::new(gate.clone())).unwrap_or_default();
            let body = ReceivedBody::new(incoming, gate, context);
            let request = WebRequest { peer: peer.clone(), parts, body, interim };
            catch_panic(app.respond(request)).await.unwrap_or_else(|| app.reject(HttpError::Panicked))
        }
    };
    send(app, context, response, is_head, via)
}

/// The error of an HTTP/2 head. HTTP/1 is checked before hyper reads it.
fn check_http2(parts: &Parts, context: &ListenerContext) -> Option<HttpError> {
    if parts.headers.len() > context.limits.max_headers {
        return Some(HttpError::HeadTooLarge);
    }
    let has_host = parts.uri.authority().is_some() || parts.headers.contains_key(header::HOST);
    let no_host = (!has_host).then_some(HOSTS_MANY);
    h2_head::check(parts).err().or(no_host).map(HttpError::Malformed)
}

/// Completes the head of the response, and reserves what its body takes.
fn send<A: WebApp>(
    app: &A,
    context: &ListenerContext,
    mut response: WebResponse,
    is_head: bool,
    via: Via,
) -> Response<SentBody> {
    let permit = match response.body().is_full() {
        // A complete body is in memory already: refusing it would free nothing.
        true => context.budget.reserve(response.body().size_hint().lower()).unwrap_or_default(),
        false => context.budget.reserve(STREAM_BYTES).unwrap_or_else(|| {
            response = app.reject(HttpError::NoRoom);
            BudgetPermit::default()
        }),
    };
    if let Content::Events(events) = &mut response.body_mut().0 {
        events.drain_begun = Some(Box::pin(context.drain.begun_owned()));
    }
    if is_head {
        leave_out_body(&mut response);
    }
    let mut answered = None;
    let active = match via {
        Via::Http1(gate) => {
            gate.close_interim();
            let is_last = context.drain.has_begun() && !gate.has_more();
            answered = Some(AnsweredMessage(gate.clone()));
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                gate.set_tunnel(response.extensions_mut().remove());
            } else if is_last || gate.is_abandoned() {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            None
        }
        Via::Http2(active) => {
            response.headers_mut().remove(header::CONNECTION); // HTTP/2 has none
            Some(active)
        }
    };
    response.map(|body| SentBody { body, active, _permit: permit, _answered: answered })
}

/// The response to HEAD: the length of the body, and no body.
fn leave_out_body(response: &mut WebResponse) {
    let body = std::mem::replace(response.body_mut(), ResponseBody::empty());
    let has_length = !matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if let Some(length) = body.size_hint().exact().filter(|_| has_length && body.is_full()) {
        // A server behind a proxy has said how long its body would be.
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
}

/// The body of a response, and what is held until it is sent.
pub(crate) struct SentBody {
    body: ResponseBody,
    active: Option<ActiveStream>,
    _permit: BudgetPermit,
    /// HTTP/1: the next message may be read behind it.
    _answered: Option<AnsweredMessage>,
}

/// Tells the connection that a message was answered, once it is dropped.
struct AnsweredMessage(Arc<BodyGate>);

impl Drop for AnsweredMessage {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Some(active) = &mut self.active {
            active.set_waiting(frame.is_pending());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
