//! Follows the database and keeps its content in memory.
//!
//! A node loads everything once, and then only changes: after a rule edit that rule, after a change of an override or a
//! client only that client, which is a small delta in the [`Directory`](tollgate_ruleset::Directory) of a million others.
//! It learns of changes by a notification of the database, by polling, and by a trigger in the process, whichever comes
//! first.
//!
//! While the database is unavailable the loaded state stays active. A copy on disk lets a node start without its
//! database.

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
