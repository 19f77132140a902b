//! Test tables of rules, for `tollgate rules test`: requests, times and expected decisions, run in memory on a clock that
//! only the table moves.
//!
//! | module | provides |
//! |---|---|
//! | [`input`] | input files of bounded size, or standard input |
//! | [`load`] | rules files, read and compiled |
//! | [`request`] | requests from flags, from JSON or from a step |
//! | [`suite`] | tables, and what running them found |
//!
//! The other commands that work on files share the first three.

pub mod input;
pub mod load;
pub mod request;
pub mod suite;
