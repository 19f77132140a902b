//! What HTTP servers share: request heads, the handler trait, metrics, and hyper over our listeners.
//!
//! A [`Handler`] answers requests without knowing which framing carried them. The data API's HTTP/1.1 is framed by hand in
//! `tollgate-http`, because the check path earns it; everything else runs on hyper.

mod authority;
mod errors;
pub mod h2;
pub mod h2_head;
mod handler;
pub mod head;
mod metrics;
mod received;

pub use authority::Authority;
pub use errors::http_error;
pub use handler::{Handler, PendingResponse, handle_or_fail};
pub use head::{Head, HttpError};
pub use metrics::HttpMetrics;
pub use received::{Found, Received};
