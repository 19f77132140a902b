//! Following the database: what it says, in memory, and fresh.
//!
//! A node reads everything once, and from then on only what changed: a rule edit reads that rule,
//! an override or a client only what is known of that one client, whose place among a million others is a small delta
//! ([`Directory`](tollgate_rules::Directory)). It hears of changes by a notification, by looking now and then, and by
//! being told; whichever comes first.
//!
//! While the database is away the last word stands. A copy of it on disk lets a node start without its database.

mod copy;
mod draft;
mod follow;
mod load;
mod namespace;
mod state;
mod table;

pub use copy::Copy;
pub use follow::{Adopt, Feed, Following};
pub use load::{Identities, Loaded, Terms};
pub use namespace::LoadedNamespace;
pub use state::{FeedState, Origin};
