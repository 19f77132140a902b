//! What the tests of every crate share: test vectors, models, oracles. Never part of a shipped program.
//!
//! | module | answers |
//! |---|---|
//! | [`vectors`] | does a [`Subject`] answer the published vectors, field by field? |
//! | [`mod@reference`] | what should a store answer? The whole of all-or-nothing, on a map, without any cleverness |
//! | [`model`] | what should an algorithm answer? SPEC section 5 once more, in unbounded integers and from other state |
//! | [`oracle`] | do the promises hold? Keeps everything that was admitted, and searches instead of computing |
//! | [`suite`] | does a store keep what [`Store`](tollgate_store::Store) promises? |
//! | [`plot`] | what does it look like? Line charts as SVG, for the documents |
//! | [`pictures`] | what do the algorithms admit over time? Driven, measured and drawn |
//! | [`fuzzing`] | does it hold for any bytes? |
//! | [`redis`] | and with a real server? Redis and Valkey, alone, under Sentinels, as a cluster, on free ports |
//! | [`postgres`] | and with a real database? PostgreSQL, on free ports, with a fresh database for each test |
//! | [`proxies`] | and behind a real proxy? nginx, Caddy, HAProxy and Envoy, on free ports |
//! | [`proxy`] | and when the network is bad? Delays, losses and resets between a node and its store |
//! | [`checker`] | and did it keep its promises? Reads decision logs and what clients noted, and searches for a broken bound |
//! | [`faults`] | and when everything breaks? The fault matrix, done to a fleet of real processes |
//! | [`process`], [`program`], [`patience`], [`ports`], [`shim`] | what real processes take: an end, a program, time, a port, a clock that steps |

#![expect(clippy::indexing_slicing, reason = "a test that reads out of bounds has found its bug")]

pub mod answer;
pub mod bucket;
pub mod checker;
pub mod config;
pub mod envoy;
pub mod faults;
pub mod fuzzing;
pub mod model;
pub mod oracle;
pub mod patience;
pub mod pictures;
pub mod plot;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod program;
pub mod proxies;
pub mod proxy;
pub mod redis;
pub mod reference;
pub mod shim;
pub mod subject;
pub mod suite;
pub mod vectors;

pub use answer::Answer;
pub use bucket::Bucket;
pub use config::Config;
pub use reference::Reference;
pub use subject::Subject;
