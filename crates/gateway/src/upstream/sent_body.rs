//! The body of a forwarded request: the caller's as it arrives, counted and capped, or one that was read before.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::HeaderName;
use hyper::body::{Body, Frame, SizeHint};
use tollgate_web::{HttpError, ReceivedBody};

use crate::field_class::may_be_trailer;
use crate::spec::HeaderEdits;

/// Set in the count once the last byte was handed over.
const DONE: u64 = 1 << 63;
/// Set once the body was longer than it may be.
const TOO_LARGE: u64 = 1 << 62;
/// Set once the body could not be read.
const BROKEN: u64 = 1 << 61;
/// Set while the server could be given more than the caller has sent.
const WAITING: u64 = 1 << 60;
/// Set once the caller took too long to send more.
const TOO_SLOW: u64 = 1 << 59;
/// Set once there was no room for more bodies on their way.
const NO_ROOM: u64 = 1 << 58;
const FLAGS: u64 = DONE | TOO_LARGE | BROKEN | WAITING | TOO_SLOW | NO_ROOM;

/// What is known of a request body that is on its way: read by the other half of the exchange.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyProgress(Option<Arc<AtomicU64>>);

impl BodyProgress {
    /// True once the server has been given all of it. Until then its connection serves no other request.
    pub(crate) fn is_done(&self) -> bool {
        self.0.as_ref().is_none_or(|progress| progress.load(Ordering::Acquire) & DONE != 0)
    }

    /// True while the next byte has to come from the caller; false while the server does not take what is there.
    pub(crate) fn waits_for_caller(&self) -> bool {
        self.0.as_ref().is_some_and(|progress| progress.load(Ordering::Acquire) & WAITING != 0)
    }

    /// Why the rest will not come, if it will not.
    pub(crate) fn failure(&self) -> Option<HttpError> {
        let progress = self.0.as_ref()?.load(Ordering::Relaxed);
        match progress & (TOO_LARGE | BROKEN | TOO_SLOW | NO_ROOM) {
            0 => None,
            TOO_LARGE => Some(HttpError::BodyTooLarge),
            TOO_SLOW => Some(HttpError::TooSlow),
            NO_ROOM => Some(HttpError::NoRoom),
            _ => Some(HttpError::Malformed("the body ended early")),
        }
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |progress| progress.load(Ordering::Relaxed) & !FLAGS)
    }
}

/// The body of a forwarded request.
pub(crate) struct SentRequestBody(Content);

enum Content {
    Full { bytes: Bytes, progress: Option<Arc<AtomicU64>> },
    Stream { body: ReceivedBody, max_bytes: u64, progress: Arc<AtomicU64>, edits: Arc<HeaderEdits> },
}

impl SentRequestBody {
    pub(crate) const fn empty() -> SentRequestBody {
        SentRequestBody(Content::Full { bytes: Bytes::new(), progress: None })
    }

    /// A body that was read to decide the request.
    pub(crate) fn full(bytes: Bytes) -> (SentRequestBody, BodyProgress) {
        if bytes.is_empty() {
            return (SentRequestBody::empty(), BodyProgress::default());
        }
        let progress = Arc::new(AtomicU64::new(0));
        let content = Content::Full { bytes, progress: Some(progress.clone()) };
        (SentRequestBody(content), BodyProgress(Some(progress)))
    }

    /// The caller's body, of at most `max_bytes`. Fields that the route edits in the head are in no trailers either.
    pub(crate) fn stream(
        body: ReceivedBody,
        max_bytes: Option<u64>,
        edits: &Arc<HeaderEdits>,
    ) -> (SentRequestBody, BodyProgress) {
        if body.is_end_stream() {
            return (SentRequestBody::empty(), BodyProgress::default());
        }
        let progress = Arc::new(AtomicU64::new(0));
        let max_bytes = max_bytes.unwrap_or(u64::MAX);
        let content = Content::Stream { body, max_bytes, progress: progress.clone(), edits: edits.clone() };
        (SentRequestBody(content), BodyProgress(Some(progress)))
    }
}

/// A frame as the server gets it: of trailers, those that say nothing of the request.
fn passed_frame(frame: Frame<Bytes>, edits: &HeaderEdits) -> Frame<Bytes> {
    let mut fields = match frame.into_trailers() {
        Ok(fields) => fields,
        Err(data) => return data,
    };
    let is_passed = |name: &HeaderName| may_be_trailer(name.as_str()) && !edits.names().any(|edited| edited == name);
    let dropped: Vec<HeaderName> = fields.keys().filter(|name| !is_passed(name)).cloned().collect();
    for name in dropped {
        fields.remove(name);
    }
    Frame::trailers(fields)
}

impl Body for SentRequestBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        match &mut self.0 {
            Content::Full { bytes, progress } => {
                if let Some(progress) = progress {
                    progress.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    progress.fetch_or(DONE, Ordering::Release);
                }
                Poll::Ready(bytes.has_remaining().then(|| Ok(Frame::data(std::mem::take(bytes)))))
            }
            Content::Stream { body, max_bytes, progress, edits } => {
                let polled = Pin::new(&mut *body).poll_frame(cx).map_ok(|frame| passed_frame(frame, edits));
                match polled.is_pending() {
                    true => progress.fetch_or(WAITING, Ordering::Release),
                    false => progress.fetch_and(!WAITING, Ordering::Release),
                };
                if let Poll::Ready(Some(Ok(frame))) = &polled {
                    let more = frame.data_ref().map_or(0, |data| data.len() as u64);
                    if progress.fetch_add(more, Ordering::Relaxed) + more > *max_bytes {
                        progress.fetch_or(TOO_LARGE, Ordering::Relaxed);
                        return Poll::Ready(Some(Err(HttpError::BodyTooLarge)));
                    }
                }
                if let Poll::Ready(Some(Err(error))) = &polled {
                    let flag = match error {
                        HttpError::TooSlow => TOO_SLOW,
                        HttpError::NoRoom => NO_ROOM,
                        _ => BROKEN,
                    };
                    progress.fetch_or(flag, Ordering::Relaxed);
                }
                let is_last = matches!(&polled, Poll::Ready(None)) || (polled.is_ready() && body.is_end_stream());
                if is_last {
                    progress.fetch_or(DONE, Ordering::Release);
                }
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Full { bytes, .. } => bytes.is_empty(),
            Content::Stream { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Full { bytes, .. } => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream { body, .. } => body.size_hint(),
        }
    }
}
