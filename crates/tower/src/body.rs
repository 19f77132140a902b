//! The body of a response, which holds what the request was granted until it has ended.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

use crate::hold::HoldGuard;

pin_project_lite::pin_project! {
    /// The body of the application, or that of a refusal. Dropping it, or reading it to its end, ends what the request
    /// holds.
    pub struct LimitedBody<B> {
        #[pin]
        inner: InnerBody<B>,
        held: Option<HoldGuard>,
    }
}

pin_project_lite::pin_project! {
    #[project = InnerBodyProjection]
    enum InnerBody<B> {
        Application { #[pin] body: B },
        Refusal { body: Full<Bytes> },
    }
}

impl<B> LimitedBody<B> {
    pub(crate) fn application(body: B, held: Option<HoldGuard>) -> LimitedBody<B> {
        LimitedBody { inner: InnerBody::Application { body }, held }
    }

    pub(crate) fn refusal(body: Full<Bytes>) -> LimitedBody<B> {
        LimitedBody { inner: InnerBody::Refusal { body }, held: None }
    }
}

impl<B: Body<Data = Bytes>> Body for LimitedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let frame = match this.inner.project() {
            InnerBodyProjection::Application { body } => std::task::ready!(body.poll_frame(context)),
            InnerBodyProjection::Refusal { body } => match Pin::new(body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => Some(Ok(frame)),
                _ => None, // a body in memory neither waits nor fails
            },
        };
        if !matches!(frame, Some(Ok(_))) {
            *this.held = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            InnerBody::Application { body } => body.is_end_stream(),
            InnerBody::Refusal { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            InnerBody::Application { body } => body.size_hint(),
            InnerBody::Refusal { body } => body.size_hint(),
        }
    }
}

/// An empty body.
impl<B> Default for LimitedBody<B> {
    fn default() -> LimitedBody<B> {
        LimitedBody::refusal(Full::default())
    }
}

impl<B> std::fmt::Debug for LimitedBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LimitedBody").field("holds", &self.held.is_some()).finish_non_exhaustive()
    }
}
