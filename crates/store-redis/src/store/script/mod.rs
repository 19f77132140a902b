//! The Lua scripts: encoding of their calls and decoding of their replies.
//!
//! A script decides: it reads the buckets of a call and the time once, and writes the result, each bucket at most once,
//! at the end. Its reply is short: the time, a verdict per request, and the buckets as it found them. From these the
//! caller replays the steps of `tollgate-core`, which yields what was granted and what to report. So scripts contain no
//! hints, no rounding for display and no products: only sums and comparisons of exact nanoseconds.
//!
//! Nothing here does I/O: [`Batch`] and [`Returns`] write commands into a buffer and read replies.

mod batch;
mod encode;
mod lua;
mod reply;
mod returns;

pub use batch::{Batch, ScriptRequest};
pub use encode::ScriptCall;
pub use lua::Script;
pub use reply::{BadReply, BatchReply, ReturnReply, ScriptAnswer};
pub(crate) use reply::{BucketValue, counts, number};
pub use returns::Returns;
