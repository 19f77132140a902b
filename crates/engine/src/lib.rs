//! Tollgate as a library: decides requests by rules and a store.
//!
//! ```
//! use tollgate_engine::{Attribute, Engine, ManualClock, Request, Span, Time};
//!
//! let rules = "
//! rules:
//!   - match: { endpoint: 'POST /api/*' }
//!     limit: { requests: 1, window: 1s, burst: 2 }
//! key_by: user_id
//! ";
//! let clock = ManualClock::at(Time::from_secs(1_700_000_000)); // in production: Engine::in_memory(rules)
//! let engine = Engine::on_clock(tollgate_engine::rules_from_yaml(rules).unwrap(), clock.clone());
//!
//! let request = Request::new().with(Attribute::UserId, "42").with(Attribute::Endpoint, "POST /api/orders");
//! assert!(engine.decide_now(&request).is_allowed());
//! assert!(engine.decide_now(&request).is_allowed());
//! let denied = engine.decide_now(&request);
//! assert_eq!(denied.retry_after().span(), Some(Span::SECOND));
//!
//! let waited = engine.limiter(request).acquire_blocking(1).unwrap(); // on a manual clock, waiting moves the time
//! assert_eq!(waited, Span::SECOND);
//! ```
//!
//! This crate is the front door for programs: it re-exports what its interface is made of, so one dependency is enough. With the
//! feature `redis` that includes the store that a fleet shares.
//!
//! A decision never fails: if the store does, the failure policy of each rule decides. See [`DecidedBy`].

/// Compiles and runs the Rust examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Pages;

mod caller_deadline;
mod conclude;
mod correction;
mod decision;
mod decision_id;
mod denial_queue;
mod engine;
mod extension;
mod failure;
mod forget;
#[doc(hidden)]
pub mod fuzzing;
mod generation;
mod limiter;
mod look;
mod matched;
mod observer;
mod penalty;
pub mod random;
mod receipt_codec;
mod refund;
mod reservation;
mod settlement;
mod shards;
mod single_decision;
mod sleep;
mod switch;
mod usage;
mod used_after;

pub use caller_deadline::with_deadline;
pub use correction::{Correction, Settlement, UnchargedUnits, UnitChange, UsageAfter};
pub use decision::{DecidedBy, Decision, Reason, Ruling, Verdict};
pub use decision_id::DecisionId;
pub use denial_queue::{Penalty, UncountedReason};
pub use engine::{Engine, EngineConfig, Undecided};
pub use extension::Extension;
pub use forget::RequestCounters;
pub use generation::{Generation, Pinned};
pub use limiter::{AcquireError, Limiter};
pub use matched::MatchedRequests;
pub use observer::Observer;
pub use random::random_slot;
pub use reservation::{RESERVED_MAX, Reservation};
pub use settlement::{SETTLE_WITHIN, Settled};
pub use single_decision::SingleDecision;
pub use sleep::{RealTime, Sleep};
pub use usage::{RuleUsage, UsageError};

/// Requests, limits, clocks: the crate below everything, for what is not named here.
pub use tollgate_core as core;
pub use tollgate_core::{Attribute, Enforcement, ManualClock, Purpose, Request, SlotId, Span, Time, Wait};
/// The language of rules.
pub use tollgate_rules as rules;
pub use tollgate_rules::Report;
pub use tollgate_ruleset::{CompileOptions, RequestError, RuleSet};
/// Stores: in memory, and what a node of a fleet decides alone.
pub use tollgate_store as store;
pub use tollgate_store::{Memory, MemoryConfig, Store, StoreError};
/// The store that a fleet shares in Redis or Valkey.
#[cfg(feature = "redis")]
pub use tollgate_store_redis as redis;

/// Reads and compiles the YAML of one rules file, with a secret of this process.
pub fn rules_from_yaml(text: &str) -> Result<RuleSet, Report> {
    let file = tollgate_rules::read("rules", text)?;
    let options = CompileOptions { secret: random::random_secret(), seed: random::unpredictable() };
    RuleSet::compile(&[file], &options).map_err(|problems| Report::new("rules", text, problems))
}

/// The same with a secret of the caller: nodes that share a store need the same one, or they do not share buckets. It is never
/// logged, and not kept in the store.
pub fn rules_with_secret(text: &str, secret: [u8; 16]) -> Result<RuleSet, Report> {
    let file = tollgate_rules::read("rules", text)?;
    let mut hasher = tollgate_core::KeyHasher::new(tollgate_core::Secret::new(secret));
    hasher.part(b"draws of soft limits");
    let tollgate_core::Digest([seed, _]) = hasher.finish();
    let options = CompileOptions { secret: tollgate_core::Secret::new(secret), seed };
    RuleSet::compile(&[file], &options).map_err(|problems| Report::new("rules", text, problems))
}
