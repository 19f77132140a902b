//! What the checked stream and the service of a connection tell each other about the current message.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::head::HttpError;
use crate::interim_queue::InterimQueue;
use crate::tunnel::Tunnel;

/// The state of the current message. Its body is not read before a handler asks for it.
#[derive(Debug, Default)]
pub(crate) struct BodyGate(Mutex<GateState>);

#[derive(Debug, Default)]
struct GateState {
    refused: Option<HttpError>,
    /// Longest body; `None` until a handler asks for the body.
    max_body: Option<u64>,
    waker: Option<Waker>,
    is_abandoned: bool,
    has_more: bool,
    /// The response has not been sent to its end.
    is_answering: bool,
    tunnel: Option<Tunnel>,
    /// Counts messages.
    message: u64,
    interim: InterimQueue,
}

impl BodyGate {
    /// A new message.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        let message = state.message.wrapping_add(1);
        *state = GateState { is_answering: true, message, ..GateState::default() };
    }

    /// The number of the message.
    pub(crate) fn message(&self) -> u64 {
        self.state().message
    }

    /// Queues an interim response to a message, unless its response has begun. False if it is dropped.
    pub(crate) fn push_interim(&self, message: u64, head: &[u8]) -> bool {
        let mut state = self.state();
        let is_queued = state.message == message && state.is_answering && state.interim.push(head);
        if let Some(waker) = state.waker.take_if(|_| is_queued) {
            waker.wake();
        }
        is_queued
    }

    /// The response begins: no interim response can come before it any more.
    pub(crate) fn close_interim(&self) {
        self.state().interim.close();
    }

    /// What to write before the next bytes of hyper. `is_flushed` if all bytes before those of the response have been
    /// written, so that interim responses do not end up in the message before.
    pub(crate) fn interim_before_write(&self, is_flushed: bool) -> Option<Vec<u8>> {
        self.state().interim.take_before_response(is_flushed)
    }

    /// What to write while hyper has nothing to write. The task is woken when there is more.
    pub(crate) fn interim_while_idle(&self, cx: &Context<'_>) -> Option<Vec<u8>> {
        let mut state = self.state();
        if state.is_answering && !state.interim.is_closed() {
            state.waker = Some(cx.waker().clone());
        }
        state.interim.take_while_waiting()
    }

    /// The response to the message has been sent, or will never be.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_answering = false;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// True until the response to the last message has been sent; then the task is woken.
    pub(crate) fn is_answering(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state();
        if state.is_answering {
            state.waker = Some(cx.waker().clone());
        }
        state.is_answering
    }

    /// Whether bytes of the next message have been read.
    pub(crate) fn set_more(&self, has_more: bool) {
        self.state().has_more = has_more;
    }

    /// The message cannot be read.
    pub(crate) fn refuse(&self, error: HttpError) {
        self.state().refused = Some(error);
    }

    /// Ready with the longest body once a handler has asked for the body.
    pub(crate) fn poll_max_body(&self, cx: &Context<'_>) -> Poll<u64> {
        let mut state = self.state();
        match state.max_body {
            Some(max_body) => Poll::Ready(max_body),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Asks for the body.
    pub(crate) fn open(&self, max_body: u64) {
        let mut state = self.state();
        state.max_body = Some(max_body);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Why the message cannot be read, if it cannot.
    pub(crate) fn refusal(&self) -> Option<HttpError> {
        self.state().refused
    }

    /// The rest of the body will not be read.
    pub(crate) fn abandon(&self) {
        self.state().is_abandoned = true;
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.state().is_abandoned
    }

    pub(crate) fn has_more(&self) -> bool {
        self.state().has_more
    }

    /// What takes the connection over behind the response.
    pub(crate) fn set_tunnel(&self, tunnel: Option<Tunnel>) {
        self.state().tunnel = tunnel;
    }

    pub(crate) fn take_tunnel(&self) -> Option<Tunnel> {
        self.state().tunnel.take()
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
