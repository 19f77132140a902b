//! Shared by all HTTP servers: request heads, the handler trait, metrics, and HTTP/2 over hyper.
//!
//! A [`Handler`] answers requests and does not depend on the framing. HTTP/1.1 is framed by hand in `tollgate-http`,
//! for strictness and speed on the check path; HTTP/2 runs on hyper.
//!
//! | item | what |
//! |---|---|
//! | [`Handler`] | answers a request: prepares from the head, then handles the body |
//! | [`Head`], [`ReceivedHeaders`] | the parts of a request head that handlers read, and all other fields by name |
//! | [`Authority`] | host and port of a request, parsed strictly |
//! | [`HttpError`], [`http_error`] | why a message cannot be read, and the response to it |
//! | [`h2`], [`h2_head`] | HTTP/2 connections, and the checks of their heads |
//! | [`HttpMetrics`] | responses by path and status |

mod authority;
mod errors;
pub mod h2;
pub mod h2_head;
mod handler;
pub mod head;
mod metrics;
mod received_headers;

pub use authority::Authority;
pub use errors::http_error;
pub use handler::{Handler, PendingResponse, handle_or_fail};
pub use head::{Head, HttpError};
pub use metrics::HttpMetrics;
pub use received_headers::{HeaderLookup, ReceivedHeaders};
