//! Rules, overrides, clients and namespaces: queries, changes and audit. Every test runs on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "../databases/mod.rs"]
mod databases;
mod drafts;

mod audit;
mod away;
mod bad_text;
mod by_hand;
mod cascades;
mod columns;
mod constraints;
mod copy;
mod crud;
mod expect;
mod file_rules;
mod filters;
mod follow;
mod forms;
mod grants;
mod low_role;
mod names;
mod odd;
mod plans;
mod quarantine;
mod replay;
mod rollback;
mod tables;
mod writers;
