//! The trait of what answers HTTP requests, with bodies that may stream both ways.

use http::request::Parts;
use tollgate_net::Peer;

use crate::head::{Head, HttpError};
use crate::interim::InterimResponses;
use crate::received_body::ReceivedBody;
use crate::response_body::ResponseBody;

/// A response whose body is complete, a stream, or events.
pub type WebResponse = http::Response<ResponseBody>;

/// Answers requests. One value serves all connections of a listener.
///
/// An API whose bodies are short implements [`Handler`](crate::Handler) instead and is wrapped in
/// [`Buffered`](crate::Buffered).
pub trait WebApp: Send + Sync + 'static {
    /// Answers a request. A panic becomes the response to [`HttpError::Panicked`].
    fn respond(&self, request: WebRequest) -> impl Future<Output = WebResponse> + Send;

    /// True if a client that closes its sending side has given up on its response. Otherwise it is answered, which
    /// scripts expect that send a request and close.
    fn ends_with_client(&self) -> bool {
        false
    }

    /// True if names of header fields are written in title case over HTTP/1, as people expect who read them. It costs more
    /// than all other writing of a head, so an app that passes on the responses of others does without.
    fn writes_title_case(&self) -> bool {
        true
    }

    /// The response to a message that cannot be read, or cannot be answered.
    fn reject(&self, error: HttpError) -> WebResponse;
}

/// A request. Its host and its framing are unambiguous: the connection has checked them.
#[derive(Debug)]
pub struct WebRequest {
    /// The other end of the connection.
    pub peer: Peer,
    /// Method, target and header fields.
    pub parts: Parts,
    /// The body: collect it with a cap, or read it as a stream.
    pub body: ReceivedBody,
    /// Sends interim responses to the caller.
    pub interim: InterimResponses,
}

impl WebRequest {
    /// The head, as handlers of short bodies see it.
    pub fn head(&self) -> Head<'_> {
        Head::of(&self.parts)
    }
}
