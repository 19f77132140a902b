//! Interim responses (1xx) of an app: written by the checked stream in front of the response, because the server side of
//! hyper cannot send any but `100 Continue`.
//!
//! They are a courtesy to the caller: what does not fit, or comes when the response has begun, is dropped.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};

use crate::body_gate::BodyGate;

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

#[cfg(test)]
mod tests {
    use super::*;

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
