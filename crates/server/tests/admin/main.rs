//! The admin API over real sockets and real databases: what people who have read its description expect of it.

#![allow(clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod rig;
mod rules;
