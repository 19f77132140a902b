//! The strict parser of HTTP/1.1, for both implementations: the check path frames its messages with it, and the reader in
//! front of hyper checks what hyper is to read.
//!
//! | file | what |
//! |---|---|
//! | `head` | parses a request head |
//! | `chunked` | decodes or checks a chunked body |

mod chunked;
mod head;

pub use chunked::{BadChunk, Chunked};
pub use head::{BodyLength, ParsedHead, parse};
