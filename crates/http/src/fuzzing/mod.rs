//! Fuzz targets of this crate, also replayed on their corpora: each takes bytes and panics if an invariant fails.
//!
//! | target | what |
//! |---|---|
//! | [`http_head`] | HTTP/1 heads against a naive reader, and cut at every byte |
//! | [`forwarded()`] | X-Forwarded-For against a naive reader |

mod forwarded;
mod head;

pub use forwarded::forwarded;
pub use head::http_head;
