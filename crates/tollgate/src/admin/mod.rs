//! Client side of the admin API: connection flags, calls, and what commands print.

mod admin_client;
mod args;
mod change;
mod consent;
mod delete;
mod details;
mod first_token;
mod list_table;
mod period;

pub use admin_client::AdminClient;
pub use args::{DEFAULT_ADMIN_URL, EveryScopeArgs, ScopeArgs, ScopeReadArgs, ServerArgs, ServerReadArgs};
pub use change::{ChangeArgs, DRY_RUN, changes, idempotency_key, print_warnings, show, warning_lines};
pub use consent::{ConsentArgs, ConsentOutcome};
pub use delete::{DeleteArgs, delete};
pub use details::{details, print_record};
pub use first_token::find as first_token;
pub use list_table::{ListArgs, ListTable, author};
pub use period::PeriodArgs;
