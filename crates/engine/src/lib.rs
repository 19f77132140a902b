//! Tollgate as a library: rules and a store brought together into decisions.
//!
//! ```
//! use tollgate_core::{Attribute, ManualClock, Request, Span, Time};
//! use tollgate_engine::Engine;
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
//! let waited = engine.limiter(request).acquire_blocking(1).unwrap(); // on a manual clock, waiting moves its hands
//! assert_eq!(waited, Span::SECOND);
//! ```
//!
//! A decision never fails. What goes wrong below becomes a decision by the policy of each rule: see [`Mode`].

/// The Rust of the README and of the guide compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/guide/library.md")]
struct Pages;

mod counted;
mod decision;
mod engine;
mod failure;
mod generation;
mod lone;
mod lot;
mod observer;
mod parcel;
mod parts;
mod patience;
mod refund;
mod reservation;
mod switch;
mod wait;

pub use decision::{Decision, Mode, Reason, Ruling, Verdict};
pub use engine::{Engine, EngineConfig, Undecided};
pub use generation::{Generation, Pinned};
pub use lone::Lone;
pub use observer::Observer;
pub use patience::until;
pub use reservation::{Reservation, Settled};
pub use switch::Switch;
pub use wait::{AcquireError, Limiter, RealTime, Sleep};

pub use lot::{random_slot, spread as lot};

use tollgate_rules::Report;
use tollgate_rules::ruleset::{CompileOptions, RuleSet};

/// Reads and compiles one file's worth of YAML, with a secret of this process.
pub fn rules_from_yaml(text: &str) -> Result<RuleSet, Report> {
    let file = tollgate_rules::read("rules", text)?;
    let options = CompileOptions { secret: lot::random_secret(), seed: lot::random() };
    RuleSet::compile(&[file], &options).map_err(|problems| Report::new("rules", text, problems))
}
