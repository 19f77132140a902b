//! The admin API over real sockets and real databases.

#![allow(clippy::indexing_slicing, reason = "a test that cannot go on may panic")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod api_keys;
mod browsers;
mod clients;
mod corpus;
mod description;
mod exchange;
mod file_entries;
mod grants;
mod history;
mod modes;
mod nodes;
mod overrides;
mod permissions;
mod plans;
mod rig;
mod rules;
mod secrets;
mod streams;
mod tokens;
mod traffic;
mod usage;
mod violations;
