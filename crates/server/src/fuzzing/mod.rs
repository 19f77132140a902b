//! What fuzz targets call and what the replay of their corpus calls: bytes in, a panic if a promise is broken.
//!
//! Here and not in the testkit, because the testkit is below this crate: its own tests use it.

mod forwarded;
mod head;
mod json;
mod resp;
mod rls;

pub use forwarded::forwarded;
pub use head::http_head;
pub use json::json_check;
pub use resp::resp_request;
pub use rls::rls_request;
