//! The body of a request: collected with a cap, or read as a stream. Every wait for the client has a deadline.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, timeout};
use tollgate_net::{BudgetPermit, ByteBudget, Deadline, FREE_BYTES, ListenerContext};

use crate::body_gate::BodyGate;
use crate::head::HttpError;
use crate::response_body::STREAM_BYTES;

/// The body of a request. It is a [`Body`], so that a client of hyper can send it on as it arrives: what is not taken is
/// not read from the connection.
pub struct ReceivedBody {
    incoming: Incoming,
    /// HTTP/1: the body is not read before it is asked for.
    gate: Option<Arc<BodyGate>>,
    budget: ByteBudget,
    timeout: Duration,
    /// While a frame is waited for.
    deadline: Option<Deadline>,
    permit: Option<BudgetPermit>,
    is_complete: bool,
}

impl ReceivedBody {
    pub(crate) fn new(incoming: Incoming, gate: Option<Arc<BodyGate>>, context: &ListenerContext) -> ReceivedBody {
        ReceivedBody {
            is_complete: incoming.is_end_stream(),
            incoming,
            gate,
            budget: context.budget.clone(),
            timeout: context.limits.body_timeout,
            deadline: None,
            permit: None,
        }
    }

    /// The whole body, at most `max_bytes`. All of it has to arrive within the body timeout. The bytes count towards the
    /// byte budget until they are dropped.
    pub async fn collect(mut self, max_bytes: usize) -> Result<Bytes, HttpError> {
        let expected = self.incoming.size_hint().exact();
        if expected.is_some_and(|bytes| bytes > max_bytes as u64) {
            return Err(HttpError::BodyTooLarge);
        }
        self.open(max_bytes as u64);
        let limit = self.timeout;
        let collected = timeout(limit, self.read_all(max_bytes)).await;
        let collected = collected.unwrap_or(Err(HttpError::TooSlow))?;
        self.is_complete = true;
        Ok(Bytes::from_owner(collected))
    }

    /// Reserves what has arrived, step by step: a promise of many bytes takes no room from those that send theirs.
    async fn read_all(&mut self, max_bytes: usize) -> Result<BudgetedBytes, HttpError> {
        let (mut bytes, mut permits, mut reserved) = (Vec::new(), Vec::new(), FREE_BYTES);
        while let Some(frame) = self.incoming.frame().await {
            let Ok(frame) = frame else { return Err(self.failure()) };
            let Some(data) = frame.data_ref() else { continue };
            if bytes.len() + data.len() > max_bytes {
                return Err(HttpError::BodyTooLarge);
            }
            while bytes.len() as u64 + data.len() as u64 > reserved {
                permits.push(self.budget.reserve(STREAM_BYTES).ok_or(HttpError::NoRoom)?);
                reserved += STREAM_BYTES;
            }
            bytes.extend_from_slice(data);
        }
        Ok(BudgetedBytes { bytes, _permits: permits })
    }

    fn open(&self, max_bytes: u64) {
        if let Some(gate) = &self.gate {
            gate.open(max_bytes);
        }
    }

    fn failure(&self) -> HttpError {
        let refusal = self.gate.as_ref().and_then(|gate| gate.refusal());
        refusal.unwrap_or(HttpError::Malformed("the body ended early"))
    }
}

/// Bytes that hold their part of the budget.
struct BudgetedBytes {
    bytes: Vec<u8>,
    _permits: Vec<BudgetPermit>,
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// As a stream: each frame has to arrive within the body timeout, counted while it is waited for.
impl Body for ReceivedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if self.permit.is_none() {
            self.permit = self.budget.reserve(self.incoming.size_hint().exact().unwrap_or(u64::MAX).min(STREAM_BYTES));
            if self.permit.is_none() {
                return Poll::Ready(Some(Err(HttpError::NoRoom)));
            }
            self.open(u64::MAX);
        }
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(frame) => {
                self.deadline = None;
                self.is_complete |= frame.is_none();
                Poll::Ready(frame.map(|frame| frame.map_err(|_| self.failure())))
            }
            Poll::Pending => {
                let limit = self.timeout;
                let deadline = self.deadline.get_or_insert_with(|| Deadline::new(Instant::now() + limit));
                deadline.poll(cx).map(|()| Some(Err(HttpError::TooSlow)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_complete || self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// A connection whose request was not read to its end cannot be used again.
impl Drop for ReceivedBody {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.as_ref().filter(|_| !self.is_end_stream()) {
            gate.abandon();
        }
    }
}

impl fmt::Debug for ReceivedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedBody").field("is_complete", &self.is_complete).finish_non_exhaustive()
    }
}
