//! Fuzz targets of this crate and the replay of their corpora: bytes in, a panic if a promise is broken.

mod json;
mod rls;

pub use json::json_check;
pub use rls::rls_request;
