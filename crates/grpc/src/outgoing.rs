//! Answers on their way out: as fast as the caller takes them, and no longer than it may take.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{BufMut, Bytes};
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::body::Body;
use prost::Message;
use tokio::time::{Instant, timeout};
use tonic::{Code, Status};

use super::call::too_late;
use super::message::PREFIX_BYTES;
use super::via_tonic::within;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// What is handed over at a time.
const PIECE_BYTES: usize = 16 << 10;

/// A message with its prefix.
pub(super) fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + length);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX)); // answers are far shorter
    message.encode_raw(&mut bytes);
    Bytes::from(bytes)
}

/// Refuses what is no gRPC.
pub(super) fn refuse(mut respond: SendResponse<Bytes>, status: StatusCode) {
    let mut response = Response::new(());
    *response.status_mut() = status;
    let _ = respond.send_response(response, true); // fails if the caller has gone
}

/// Answers with an error, all in one head; answers its code.
pub(super) fn fail(mut respond: SendResponse<Bytes>, status: Status) -> Code {
    let code = status.code();
    let _ = respond.send_response(status.into_http(), true); // fails if the caller has gone
    code
}

/// An answer for which the caller has no room yet.
pub(super) struct Unsent {
    stream: SendStream<Bytes>,
    message: Bytes,
}

/// Answers with one message: at once, if the caller has room for it.
pub(super) fn answer(mut respond: SendResponse<Bytes>, message: Bytes) -> Option<Unsent> {
    let mut response = Response::new(());
    *response.headers_mut() = only(CONTENT_TYPE, GRPC);
    let mut stream = respond.send_response(response, false).ok()?;
    stream.reserve_capacity(message.len());
    if stream.capacity() < message.len() {
        return Some(Unsent { stream, message });
    }
    let sent = stream.send_data(message, false).and_then(|()| stream.send_trailers(all_is_well()));
    let _ = sent; // fails if the caller has gone
    None
}

impl Unsent {
    /// Sends it when there is room, or gives it up.
    pub(super) async fn send(mut self, patience: Duration) {
        if give(&mut self.stream, self.message, patience).await {
            let _ = self.stream.send_trailers(all_is_well());
        }
    }
}

fn all_is_well() -> HeaderMap {
    only(STATUS, OK)
}

/// One field, in no more room than that takes.
fn only(name: HeaderName, value: HeaderValue) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(1);
    fields.insert(name, value);
    fields
}

/// Sends what tonic made, until the deadline; answers what became of it.
pub(super) async fn send(
    respond: &mut SendResponse<Bytes>,
    response: Response<tonic::body::Body>,
    deadline: Option<Instant>,
    patience: Duration,
) -> Code {
    let (head, mut body) = response.into_parts();
    let code = code_in(&head.headers);
    let is_whole = body.is_end_stream();
    let Ok(mut stream) = respond.send_response(Response::from_parts(head, ()), is_whole) else {
        return Code::Cancelled;
    };
    if is_whole {
        return code.unwrap_or(Code::Ok);
    }
    loop {
        let next = poll_fn(|cx| match stream.poll_reset(cx) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => Pin::new(&mut body).poll_frame(cx).map(Some),
        });
        let Some(next) = within(deadline, next).await else { return end(&mut stream, &too_late()) };
        match next {
            None => return Code::Cancelled,
            Some(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => {
                    if !give(&mut stream, data, patience).await {
                        return Code::Cancelled;
                    }
                }
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    let code = code_in(&trailers).unwrap_or(Code::Unknown);
                    let _ = stream.send_trailers(trailers);
                    return code;
                }
            },
            Some(Some(Err(status))) => return end(&mut stream, &status),
            Some(None) => return end(&mut stream, &Status::internal("the answer has no end")),
        }
    }
}

/// Ends an answer that has begun.
fn end(stream: &mut SendStream<Bytes>, status: &Status) -> Code {
    let mut trailers = HeaderMap::new();
    match status.add_header(&mut trailers) {
        Ok(()) => drop(stream.send_trailers(trailers)),
        Err(_) => stream.send_reset(Reason::INTERNAL_ERROR),
    }
    status.code()
}

fn code_in(headers: &HeaderMap) -> Option<Code> {
    headers.get(STATUS).map(|value| Code::from_bytes(value.as_bytes()))
}

/// Hands bytes over as there is room for them; false if the caller has gone, or does not take them in time.
async fn give(stream: &mut SendStream<Bytes>, mut bytes: Bytes, patience: Duration) -> bool {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len().min(PIECE_BYTES));
        let room = match stream.capacity() {
            0 => timeout(patience, poll_fn(|cx| stream.poll_capacity(cx))).await,
            room => Ok(Some(Ok(room))),
        };
        match room {
            Ok(Some(Ok(room))) => {
                if stream.send_data(bytes.split_to(room.min(bytes.len())), false).is_err() {
                    return false;
                }
            }
            Ok(_) => return false,
            Err(_) => {
                stream.send_reset(Reason::CANCEL); // nobody takes it
                return false;
            }
        }
    }
    true
}
