//! The body of a response: complete, a stream, or server-sent events.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, SizeHint};

use crate::events::{EventSender, EventStream};

/// Bytes of a stream that may be on their way at once: what hyper buffers of it.
pub(crate) const STREAM_BYTES: u64 = 64 << 10;

/// Why a stream failed. The client sees that the response is incomplete.
pub type StreamError = Box<dyn Error + Send + Sync>;

/// The body of a response.
pub struct ResponseBody(pub(crate) Content);

pub(crate) enum Content {
    Full(Bytes),
    Stream(UnsyncBoxBody<Bytes, StreamError>),
    Events(EventStream),
}

/// Largest frame of a complete body: hyper asks for the next one only when there is room, which shows that the client
/// reads.
const FRAME_BYTES: usize = 16 << 10;

impl ResponseBody {
    /// No body.
    pub const fn empty() -> ResponseBody {
        ResponseBody(Content::Full(Bytes::new()))
    }

    /// A complete body.
    pub fn full(bytes: impl Into<Bytes>) -> ResponseBody {
        ResponseBody(Content::Full(bytes.into()))
    }

    /// A stream: it is asked for its next frame when the client has room for it. A drain waits for its end, up to the
    /// drain timeout.
    pub fn stream<B>(body: B) -> ResponseBody
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<StreamError>,
    {
        ResponseBody(Content::Stream(body.map_err(Into::into).boxed_unsync()))
    }

    /// Server-sent events: what is given to the sender. The stream ends with the sender, and when the server drains. The
    /// response needs `Content-Type: text/event-stream`.
    pub fn events() -> (EventSender, ResponseBody) {
        let (sender, stream) = EventStream::new();
        (sender, ResponseBody(Content::Events(stream)))
    }

    /// True if all bytes are there.
    pub(crate) const fn is_full(&self) -> bool {
        matches!(self.0, Content::Full(_))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        match &mut self.0 {
            Content::Full(bytes) => {
                let some = bytes.len().min(FRAME_BYTES);
                Poll::Ready((some > 0).then(|| Ok(Frame::data(bytes.split_to(some)))))
            }
            Content::Stream(body) => Pin::new(body).poll_frame(cx),
            Content::Events(events) => events.poll_next(cx).map(|event| event.map(|event| Ok(Frame::data(event)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Full(bytes) => bytes.is_empty(),
            Content::Stream(body) => body.is_end_stream(),
            Content::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(body) => body.size_hint(),
            Content::Events(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Content::Full(_) => "Full",
            Content::Stream(_) => "Stream",
            Content::Events(_) => "Events",
        })
    }
}
