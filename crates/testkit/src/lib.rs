//! What the tests of every crate share: test vectors, models, oracles. Never part of a shipped program.
//!
//! | module | answers |
//! |---|---|
//! | [`vectors`] | does a [`Subject`] answer the published vectors, field by field? |
//! | [`mod@reference`] | what should a store answer? The whole of all-or-nothing, on a map, without any cleverness |
//! | [`model`] | what should an algorithm answer? SPEC section 5 once more, in unbounded integers and from other state |
//! | [`oracle`] | do the promises hold? Keeps everything that was admitted, and searches instead of computing |
//! | [`suite`] | does a store keep what [`Store`](tollgate_store::Store) promises? |
//! | [`fuzzing`] | does it hold for any bytes? |
//! | [`checker`] | and did it keep its promises? Reads decision logs and what clients noted, and searches for a broken bound |

#![expect(clippy::indexing_slicing, reason = "a test that reads out of bounds has found its bug")]

pub mod answer;
pub mod bucket;
pub mod checker;
pub mod config;
pub mod envoy;
pub mod fuzzing;
pub mod model;
pub mod oracle;
pub mod redis;
pub mod reference;
pub mod subject;
pub mod suite;
pub mod vectors;

pub use answer::Answer;
pub use bucket::Bucket;
pub use config::Config;
pub use reference::Reference;
pub use subject::Subject;
