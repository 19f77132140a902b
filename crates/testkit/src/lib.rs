//! What the tests of every crate share and needs no process: vectors, models, oracles. Never part of a shipped program.
//!
//! | module | checks |
//! |---|---|
//! | [`vectors`] | that a [`Subject`] agrees with the published vectors, field by field |
//! | [`mod@reference`] | what a store must answer: all or nothing, on a plain map |
//! | [`model`] | what an algorithm must answer: SPEC section 5 again, in unbounded integers and with other state |
//! | [`oracle`] | the promises of an algorithm, by search over everything that was admitted |
//! | [`suite`] | that a store keeps what [`Store`](tollgate_store::Store) promises |
//! | [`fuzzing`] | the same for any bytes |
//! | [`checker`] | the promises of a fleet, from decision logs and from what clients observed |
//!
//! What starts real processes is in `tollgate-lab`.

#![expect(clippy::indexing_slicing, reason = "a test that reads out of bounds has found its bug")]

pub mod bucket;
pub mod checker;
pub mod envoy;
pub mod fuzzing;
pub mod limit_config;
pub mod model;
pub mod oracle;
pub mod redis;
pub mod reference;
pub mod spec_outcome;
pub mod subject;
pub mod subject_kind;
pub mod suite;
pub mod vectors;

pub use bucket::Bucket;
pub use limit_config::LimitConfig;
pub use reference::Reference;
pub use spec_outcome::SpecOutcome;
pub use subject::Subject;
pub use subject_kind::SubjectKind;
