//! Interim responses (1xx) of an app: written by the checked stream in front of the response, because the server side of
//! hyper cannot send any but `100 Continue`.
//!
//! They are a courtesy to the caller: what does not fit, or comes when the response has begun, is dropped.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};

use crate::body_gate::BodyGate;

/// Bytes of all interim responses to one request: a server that sends more of them has its caller wait no less.
const BYTES_MAX: usize = 16 << 10;

/// Sends interim responses to the caller of one request. Callers of HTTP/1.0 do not know them, and hyper has no way to
/// send them over HTTP/2: there, nothing is sent.
#[derive(Clone, Default)]
pub struct InterimResponses(Option<(Arc<BodyGate>, u64)>);

impl InterimResponses {
    pub(crate) fn new(gate: Arc<BodyGate>) -> InterimResponses {
        let message = gate.message();
        InterimResponses(Some((gate, message)))
    }

    /// True if the caller can be sent any.
    pub const fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    /// Sends one. False if it is dropped: its status is no interim one, the response has begun, or there were too many.
    pub fn send(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        let Some((gate, message)) = self.0.as_ref().filter(|_| is_interim(status)) else { return false };
        let reason = status.canonical_reason().unwrap_or_default();
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
        for (name, value) in headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        gate.push_interim(*message, &head)
    }
}

/// `100 Continue` is sent by hyper when the body is read, and 101 is a response.
fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status.as_u16() > 101
}

impl fmt::Debug for InterimResponses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterimResponses").field("is_possible", &self.is_possible()).finish_non_exhaustive()
    }
}

/// Interim responses to the current message that have not been written.
#[derive(Debug, Default)]
pub(crate) struct InterimQueue {
    bytes: Vec<u8>,
    /// Bytes of all that were queued.
    total: usize,
    /// The response has begun.
    is_closed: bool,
}

impl InterimQueue {
    fn take(&mut self) -> Option<Vec<u8>> {
        (!self.bytes.is_empty()).then(|| std::mem::take(&mut self.bytes))
    }

    pub(crate) fn push(&mut self, head: &[u8]) -> bool {
        let has_room = !self.is_closed && self.total + head.len() <= BYTES_MAX;
        if has_room {
            self.total += head.len();
            self.bytes.extend_from_slice(head);
        }
        has_room
    }

    pub(crate) const fn close(&mut self) {
        self.is_closed = true;
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Before bytes of hyper. If not all before them was flushed, they may begin with the end of the last response; once
    /// this response has begun they may also contain its head, and it is too late.
    pub(crate) fn take_before_response(&mut self, is_flushed: bool) -> Option<Vec<u8>> {
        match (is_flushed, self.is_closed) {
            (true, _) => self.take(),
            (false, true) => {
                self.bytes = Vec::new();
                None
            }
            (false, false) => None,
        }
    }

    /// While hyper has nothing to write: before the response, or it is too late.
    pub(crate) fn take_while_waiting(&mut self) -> Option<Vec<u8>> {
        self.take().filter(|_| !self.is_closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(heads: &[&[u8]]) -> InterimQueue {
        let mut queue = InterimQueue::default();
        assert!(heads.iter().all(|head| queue.push(head)));
        queue
    }

    #[test]
    fn what_was_queued_comes_before_the_response_and_never_into_it() {
        assert_eq!(queue(&[b"a", b"b"]).take_while_waiting(), Some(b"ab".to_vec()));
        let mut last_minute = queue(&[b"a"]);
        last_minute.close();
        assert!(!last_minute.push(b"b"), "the response has begun");
        assert_eq!(last_minute.take_before_response(true), Some(b"a".to_vec()), "its head is not written yet");
        assert_eq!(last_minute.take_before_response(true), None);
        let mut late = queue(&[b"a"]);
        assert_eq!(late.take_before_response(false), None, "the end of the last response");
        late.close();
        assert_eq!(late.take_before_response(false), None);
        assert_eq!(late.take_before_response(true), None, "its head is out");
        let mut written = queue(&[b"a"]);
        written.close();
        assert_eq!(written.take_while_waiting(), None);
    }

    #[test]
    fn a_flood_of_them_is_cut() {
        let mut queue = InterimQueue::default();
        let head = [b'x'; 1 << 10];
        assert_eq!((0..100).filter(|_| queue.push(&head) && queue.take().is_some()).count(), 16);
    }

    #[test]
    fn only_a_request_that_waits_gets_them() {
        let gate = Arc::new(BodyGate::default());
        gate.begin();
        let first = InterimResponses::new(gate.clone());
        let sent =
            |to: &InterimResponses, status: u16| to.send(StatusCode::from_u16(status).unwrap(), &HeaderMap::new());
        assert!(sent(&first, 103) && sent(&first, 199));
        assert!(!sent(&first, 100) && !sent(&first, 101) && !sent(&first, 200));
        gate.end();
        assert!(!sent(&first, 103), "it was answered");
        gate.begin();
        assert!(!sent(&first, 103), "the next request is another one");
        assert!(sent(&InterimResponses::new(gate), 103));
        assert!(!sent(&InterimResponses::default(), 103));
    }
}
