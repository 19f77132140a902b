//! The admin API of a server: where it is, who we are there, and what its calls have in common.

mod admin_client;
mod args;
mod change;
mod consent;
mod delete;
mod details;
mod first_token;
mod listing;

pub use admin_client::AdminClient;
pub use args::{DEFAULT_ADMIN_URL, EveryScopeArgs, ScopeArgs, ServerArgs};
pub use change::{ChangeArgs, DRY_RUN, change, changes, idempotency_key, show};
pub use consent::{ConsentArgs, ConsentOutcome};
pub use delete::{DeleteArgs, delete};
pub use details::details;
pub use first_token::find as first_token;
pub use listing::{ListArgs, Look, author, list, table};
