//! What a platform can carry: state machines that protect an upstream from more work than it can finish.
//!
//! Rate limits say what a caller may use; this crate says what the servers behind the gateway can do. Everything here is
//! a state machine that takes time, and random numbers, as values: no sockets, no clock of its own, and a test replays
//! any sequence. Only [`AdmissionController`] waits, for a place in a bounded queue.
//!
//! | question | answered by |
//! |---|---|
//! | how many requests may be in flight? | [`AdaptiveLimit`], shared as [`ConcurrencyLimiter`] |
//! | who waits, in which order, how long? | [`WaitQueue`], shared as [`AdmissionController`] |
//! | which request matters more? | [`Priorities`], [`Priority`] |
//! | are the workers saturated? | [`UtilisationShedder`], by [`ShedLadder`] |
//! | is the reserved share of the fleet in use? | [`fleet_admits`] |
//! | does the upstream accept anything? | [`ClientThrottle`], [`CircuitBreaker`] |
//! | may a request be tried again? | [`RetryBudget`] |
//! | which server? | [`least_loaded`], [`preferred`], among those that [`HealthTracker`] and [`OutlierDetector`] leave |
//! | when to come back? | [`retry_after_overload`] |
//!
//! ```
//! use std::sync::Arc;
//! use tollgate_core::ManualClock;
//! use tollgate_overload::{AdaptiveConfig, ConcurrencyLimiter};
//!
//! let limiter = ConcurrencyLimiter::new(AdaptiveConfig::fixed(1), Arc::new(ManualClock::default()), 0);
//! let permit = limiter.try_acquire().expect("a slot is free");
//! assert!(limiter.try_acquire().is_none());
//! drop(permit); // however the request ends
//! assert_eq!(limiter.in_flight(), 0);
//! ```
//!
//! Estimates (limits, probabilities) are doubles, as SPEC 5.8 says; what admits counts in integers.

mod adaptive;
mod admission;
mod balance;
mod chance;
mod circuit_breaker;
mod client_throttle;
mod fleet_shedder;
mod health;
mod limiter;
mod outlier;
mod priority;
mod retry_after;
mod retry_budget;
pub mod spec;
mod utilisation;
mod wait_queue;

pub use adaptive::{
    AdaptiveAlgorithm, AdaptiveConfig, AdaptiveLimit, Aimd, EnvoyGradient, Gradient2, GradientMode, RttSample,
    SampleWindow, Vegas, WindowConfig,
};
pub use admission::{AdmissionConfig, AdmissionController, AdmissionPermit, AdmissionStats};
pub use balance::{ServerLoad, least_loaded, preferred};
pub use circuit_breaker::{BreakerConfig, BreakerPass, BreakerPhase, CircuitBreaker};
pub use client_throttle::{ClientThrottle, ThrottleConfig};
pub use fleet_shedder::fleet_admits;
pub use health::HealthTracker;
pub use limiter::{ConcurrencyLimiter, LimiterPermit};
pub use outlier::{OutlierConfig, OutlierDetector};
pub use priority::{Priorities, Priority};
pub use retry_after::retry_after_overload;
pub use retry_budget::{RetryBudget, RetryBudgetConfig};
pub use utilisation::{ShedLadder, UtilisationConfig, UtilisationShedder};
pub use wait_queue::{Pushed, QueueConfig, QueueDiscipline, ShedReason, WaitQueue};

/// The samples of the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/overload.md")]
struct Guide;
