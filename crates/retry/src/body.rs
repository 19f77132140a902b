//! A body whose beginning was read, and which still is the whole body.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

pin_project_lite::pin_project! {
    /// A body whose beginning was read: yields that again, then the rest.
    #[derive(Debug)]
    pub struct PeekedBody<B> {
        read: std::collections::VecDeque<Frame<Bytes>>,
        read_bytes: u64,
        #[pin]
        rest: B,
    }
}

/// Most that is read of a body to find a name in it.
const PEEK_MAX: u64 = 64 << 10;

impl<B: Body<Data = Bytes>> PeekedBody<B> {
    /// A body of which nothing was read.
    pub fn unread(rest: B) -> PeekedBody<B> {
        PeekedBody { read: Default::default(), read_bytes: 0, rest }
    }
}

impl<B: Body<Data = Bytes> + Unpin> PeekedBody<B> {
    /// Reads the first 64 KiB, or all if it is shorter, and returns what was read. An error is kept for the reader: it
    /// ends the reading.
    pub async fn peek(&mut self) -> Result<Vec<u8>, B::Error> {
        let mut seen = Vec::new();
        while self.read_bytes < PEEK_MAX {
            let Some(frame) = self.rest.frame().await else { break };
            let frame = frame?;
            if let Some(data) = frame.data_ref() {
                seen.extend_from_slice(data);
                self.read_bytes += data.len() as u64;
            }
            self.read.push_back(frame);
        }
        Ok(seen)
    }
}

impl<B: Body<Data = Bytes>> Body for PeekedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        match this.read.pop_front() {
            Some(frame) => {
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                *this.read_bytes = this.read_bytes.saturating_sub(length);
                Poll::Ready(Some(Ok(frame)))
            }
            None => this.rest.poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(self.read_bytes));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(self.read_bytes)) {
            hint.set_upper(upper);
        }
        hint
    }
}
