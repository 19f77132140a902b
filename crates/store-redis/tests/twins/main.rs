//! The scripts against the core they are twins of, on a real server.
//!
//! Each property runs 300 cases of up to 100 calls; `TOLLGATE_CASES` sets another number. A failing seed is written to
//! `proptest-regressions/`, is committed, and runs first from then on.

#![expect(clippy::indexing_slicing, reason = "a test that reads out of bounds has found its bug")]

mod batches;
mod rig;
mod suite;
mod together;
mod traps;
