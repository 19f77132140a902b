//! Sends responses within the client's flow-control window, with a time limit for blocked writes.

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

use super::deadline::{before_deadline, deadline_exceeded};
use super::message::PREFIX_BYTES;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// Bytes passed to h2 at a time.
const PIECE_BYTES: usize = 16 << 10;

/// Encodes a message with its prefix.
pub(super) fn encode_frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + length);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX)); // responses are far shorter
    message.encode_raw(&mut bytes);
    Bytes::from(bytes)
}

/// Rejects a request that is not gRPC.
pub(super) fn reject_http(mut respond: SendResponse<Bytes>, status: StatusCode) {
    let mut response = Response::new(());
    *response.status_mut() = status;
    let _ = respond.send_response(response, true); // fails if the client has gone
}

/// Sends an error as a trailers-only response; returns its code.
pub(super) fn send_status(mut respond: SendResponse<Bytes>, status: Status) -> Code {
    let code = status.code();
    let _ = respond.send_response(status.into_http(), true); // fails if the client has gone
    code
}

/// A response that waits for the client's flow-control window.
pub(super) struct PendingSend {
    stream: SendStream<Bytes>,
    message: Bytes,
}

/// Sends a response of one message, or returns it if the client's window is too small.
pub(super) fn send_unary(mut respond: SendResponse<Bytes>, message: Bytes) -> Option<PendingSend> {
    let mut response = Response::new(());
    *response.headers_mut() = single_header(CONTENT_TYPE, GRPC);
    let mut stream = respond.send_response(response, false).ok()?;
    stream.reserve_capacity(message.len());
    if stream.capacity() < message.len() {
        return Some(PendingSend { stream, message });
    }
    let sent = stream.send_data(message, false).and_then(|()| stream.send_trailers(ok_trailers()));
    let _ = sent; // fails if the client has gone
    None
}

impl PendingSend {
    /// Sends the response as the window opens; gives up after `max_wait` without progress.
    pub(super) async fn send(mut self, max_wait: Duration) {
        if send_bytes(&mut self.stream, self.message, max_wait).await {
            let _ = self.stream.send_trailers(ok_trailers());
        }
    }
}

fn ok_trailers() -> HeaderMap {
    single_header(STATUS, OK)
}

/// A map of one header, without spare capacity.
fn single_header(name: HeaderName, value: HeaderValue) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(1);
    fields.insert(name, value);
    fields
}

/// Sends tonic's response until the deadline; returns the final status code.
pub(super) async fn send(
    respond: &mut SendResponse<Bytes>,
    response: Response<tonic::body::Body>,
    deadline: Option<Instant>,
    max_wait: Duration,
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
        let Some(next) = before_deadline(deadline, next).await else {
            return end_with_status(&mut stream, &deadline_exceeded());
        };
        match next {
            None => return Code::Cancelled,
            Some(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => {
                    if !send_bytes(&mut stream, data, max_wait).await {
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
            Some(Some(Err(status))) => return end_with_status(&mut stream, &status),
            Some(None) => return end_with_status(&mut stream, &Status::internal("the answer has no end")),
        }
    }
}

/// Ends a response whose head was already sent.
fn end_with_status(stream: &mut SendStream<Bytes>, status: &Status) -> Code {
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

/// Sends bytes as the window opens; false if the client has gone or does not read in time.
async fn send_bytes(stream: &mut SendStream<Bytes>, mut bytes: Bytes, max_wait: Duration) -> bool {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len().min(PIECE_BYTES));
        let room = match stream.capacity() {
            0 => timeout(max_wait, poll_fn(|cx| stream.poll_capacity(cx))).await,
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
                stream.send_reset(Reason::CANCEL); // the client does not read
                return false;
            }
        }
    }
    true
}
