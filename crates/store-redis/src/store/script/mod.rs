//! What runs inside the store, and how it is asked.
//!
//! A script decides: it reads the buckets of a call, the time once, and writes what was decided, each bucket at most
//! once, at the end. It answers little: the time, a verdict per question, and the buckets as it found them. From these
//! the caller's side replays the very steps of `tollgate-core`, and so learns what was granted and what to tell. Scripts
//! therefore hold no hint, no rounding for people and no product: only sums and comparisons of exact nanoseconds.
//!
//! Nothing here does any I/O: [`Batch`] and [`Returns`] write commands into a buffer and read replies.

mod batch;
mod blob;
mod call;
mod charge;
mod reply;
mod returns;
mod state;

pub use batch::{Batch, ScriptRequest};
pub use call::{Script, ScriptCall};
pub use reply::{BadReply, BatchReply, ReturnReply, ScriptAnswer};
pub use returns::Returns;
pub(crate) use state::{BucketValue, counts, number};
