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
mod control;
mod db;
mod edit;
mod enforcement;
mod error;
pub mod feed;
mod hex;
mod instant;
mod kind;
mod page;
mod place;
pub mod record;
mod secret;
mod write_tx;

pub use author::Author;
pub use control::{
    AuditFilter, AuditRecord, By, ClientFilter, Control, GenerationRecord, Listener, Offender, OverrideFilter,
    Quarantined, RuleFilter, Snapshot, State, TokenDraft, Touched, Verified, Violation, ViolationFilter,
    ViolationRecord,
};
pub use db::Schema;
pub use edit::{Applied, Change, Edit, Expect, Order};
pub use enforcement::Mode;
pub use error::{Error, Fault, Result};
pub use instant::Instant;
pub use kind::Kind;
pub use page::{Listing, Page};
pub use place::Place;
