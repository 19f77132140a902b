//! The control plane: rules, overrides, clients, keys, tokens, violations and audit, in a relational database.
//!
//! SQLite serves one machine and needs no set-up; PostgreSQL serves a fleet. Both have the same tables, which people
//! may read with their own tools ([`migrations`](Control::migrate)). Decisions never query the database: a node loads
//! what it needs into memory and follows the changes.
//!
//! All changes go through [`Control::apply`]: it commits all edits of a change set, as one generation with one audit
//! row each, or none.

mod apply;
mod audit;
mod author;
pub mod change_feed;
mod control;
mod db;
mod edit;
mod error;
mod hex;
mod kind;
mod page;
pub mod record;
mod retention;
mod token_secret;
mod write_tx;

pub use author::Author;
pub use control::{
    ApiKeyDraft, ApiKeyFilter, AuditFilter, AuditRecord, BegunPenalty, ChangedKeys, ClientFilter, Control, DatedRows,
    DeliveryAttempt, DeliveryDraft, FleetState, GenerationListener, GenerationRecord, GrantFilter, GroupBy,
    LoadedApiKeys, Offender, OverrideFilter, PenaltyFilter, PeriodUsage, PeriodUsageFilter, PeriodUsageRecord,
    Quarantined, RuleFilter, Snapshot, TokenDraft, Verified, Violation, ViolationFilter, ViolationRecord,
    WaitingDeliveries, WebhookDraft,
};
pub use db::{DatabaseTimeouts, Schema};
pub use edit::{AppliedChanges, Change, ChangeSet, Dependents, Edit, Precondition};
pub use error::{Error, FieldError, Result};
pub use kind::RecordKind;
pub use page::{Listing, Page};
pub use retention::Retention;
pub use tollgate_core::Enforcement;
pub use tollgate_sql::{DatabaseUrl, Instant};
