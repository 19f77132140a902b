//! ChangeFeedConfig the database: what it says, in memory, and fresh.
//!
//! A node reads everything once, and from then on only what changed: a rule edit reads that rule,
//! an override or a client only what is known of that one client, whose place among a million others is a small delta
//! ([`Directory`](tollgate_rules::Directory)). It hears of changes by a notification, by looking now and then, and by
//! being told; whichever comes first.
//!
//! While the database is away the last word stands. A copy of it on disk lets a node start without its database.

mod builder;
mod copy;
mod follow;
mod load;
mod namespace;
mod state;
mod table;

pub use copy::LocalCopy;
pub use follow::{Adopt, ChangeFeed, ChangeFeedConfig};
pub use load::{Identities, LoadContext, LoadedState};
pub use namespace::LoadedNamespace;
pub use state::{ChangeFeedState, SnapshotOrigin};
