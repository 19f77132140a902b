//! What HTTP servers share: request heads, metrics, and HTTP/1.1 and HTTP/2 by hyper over the listeners of `net`.
//!
//! A [`WebApp`] answers requests, with bodies that may stream both ways; [`Web`] puts it on a listener. An API whose bodies
//! are short implements [`Handler`], which does not depend on the framing either: [`Buffered`] makes an app of it, and
//! the check path frames HTTP/1.1 by hand in front of it, in `tollgate-http`.
//!
//! | item | what |
//! |---|---|
//! | [`Web`], [`WebApp`], [`WebRequest`], [`WebResponse`] | the protocol of a listener, and what answers its requests |
//! | [`ReceivedBody`], [`ResponseBody`] | bodies: collected or streamed; complete, streamed, or events |
//! | [`EventSender`], [`ServerSentEvent`] | server-sent events |
//! | [`InterimResponses`] | sends 1xx before the response |
//! | [`Tunnel`] | what takes a connection over behind a response of 101 |
//! | [`Handler`], [`Buffered`] | answers a request with a short body: prepares from the head, then handles the body |
//! | [`Head`], [`ReceivedHeaders`] | the parts of a request head that handlers read, and all other fields by name |
//! | [`check_encoding`], [`request_timeout`] | checks of the head that all APIs share |
//! | [`Authority`] | host and port of a request, parsed strictly |
//! | [`HttpError`], [`http_error`] | why a message cannot be read, and the response to it |
//! | [`h1`] | the strict parser of HTTP/1.1, in front of hyper and in the check path |
//! | [`h2`], [`h2_head`] | HTTP/2 connections, and the checks of their heads |
//! | [`set_fields`] | puts the fields of a decision into a header |
//! | [`HttpMetrics`] | responses by path and status |

mod app;
mod authority;
mod body_gate;
mod buffered;
mod checked_stream;
mod errors;
mod events;
pub mod h1;
mod h1_connection;
pub mod h2;
mod h2_activity;
pub mod h2_head;
mod handler;
pub mod head;
mod head_checks;
mod interim;
mod interim_queue;
mod metrics;
mod protocol;
mod received_body;
mod received_headers;
mod reply_fields;
mod respond;
mod response_body;
mod tunnel;

pub use app::{WebApp, WebRequest, WebResponse};
pub use authority::Authority;
pub use buffered::{Buffered, response_of};
pub use errors::http_error;
pub use events::{EventSender, ServerSentEvent};
pub use handler::{Handler, PendingResponse, handle_or_fail};
pub use head::{Head, HttpError};
pub use head_checks::{check_encoding, request_timeout};
pub use interim::InterimResponses;
pub use metrics::HttpMetrics;
pub use protocol::{TOO_MANY_CONNECTIONS, Web};
pub use received_body::ReceivedBody;
pub use received_headers::{HeaderLookup, ReceivedHeaders};
pub use reply_fields::set_fields;
pub use response_body::{ResponseBody, StreamError};
pub use tunnel::Tunnel;
