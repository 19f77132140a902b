//! The control plane: rules, overrides, clients, tokens, violations and audit, in a relational database.
//!
//! SQLite serves one machine and needs no set-up; PostgreSQL serves a fleet. Both hold the same tables, which people may
//! read with tools of their own ([`migrations`](Control::migrate)). Nothing here is asked on the path of a decision: a
//! node reads what it needs into memory and follows what changes.
//!
//! There is one way to change anything: [`Control::apply`] takes edits, and either all of them are committed, as one
//! generation with one audit row each, or none.

mod apply;
mod audit;
mod author;
pub mod change_feed;
mod control;
mod database_url;
mod db;
mod edit;
mod enforcement;
mod error;
mod hex;
mod instant;
mod kind;
mod page;
pub mod record;
mod token_secret;
mod write_tx;

pub use author::Author;
pub use control::{
    AuditFilter, AuditRecord, ChangedKeys, ClientFilter, Control, FleetState, GenerationListener, GenerationRecord,
    GroupBy, Offender, OverrideFilter, Quarantined, RuleFilter, Snapshot, TokenDraft, Verified, Violation,
    ViolationFilter, ViolationRecord,
};
pub use database_url::DatabaseUrl;
pub use db::Schema;
pub use edit::{AppliedChanges, Change, ChangeSet, Edit, Precondition};
pub use enforcement::Enforcement;
pub use error::{Error, FieldError, Result};
pub use instant::Instant;
pub use kind::RecordKind;
pub use page::{Listing, Page};
