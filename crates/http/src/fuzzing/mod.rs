//! Fuzz targets of this crate and the replay of their corpora: bytes in, a panic if a promise is broken.

mod forwarded;
mod head;

pub use forwarded::forwarded;
pub use head::http_head;
