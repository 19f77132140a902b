//! One call and its repetitions: a state machine without a clock.

use http::Method;
use tollgate_core::{Span, Time};

use crate::{Later, RetryAllowance, RetryPolicy};

/// One call and its repetitions.
///
/// ```
/// use http::{Method, Response};
/// use tollgate_core::{Span, Time};
/// use tollgate_retry::{Attempts, Later, NextAttempt, RetryAllowance, RetryPolicy};
///
/// let (now, allowance) = (Time::from_secs(1_800_000_000), RetryAllowance::default());
/// let mut attempts = Attempts::start(RetryPolicy::default(), Method::POST, false, now, &allowance);
/// let refused = Response::builder().status(429).header("Retry-After", "2").body(()).unwrap();
/// let later = Later::read(&refused, now).unwrap();
/// let random = 0; // from 0 to 2^64 − 1
/// assert_eq!(attempts.next(&later, now, random, &allowance), NextAttempt::After(Span::from_secs(2)));
/// ```
#[derive(Clone, Debug)]
pub struct Attempts {
    policy: RetryPolicy,
    method: Method,
    has_key: bool,
    until: Time,
    made: u32,
}

/// What follows a response that says "later".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAttempt {
    /// Another attempt, after this wait.
    After(Span),
    /// None: this response is the result.
    None,
}

impl Attempts {
    /// The first attempt of a call begins. `has_key`: it carries an idempotency key.
    pub fn start(
        policy: RetryPolicy,
        method: Method,
        has_key: bool,
        now: Time,
        allowance: &RetryAllowance,
    ) -> Attempts {
        allowance.record_call();
        Attempts { policy, method, has_key, until: now.after(policy.deadline), made: 1 }
    }

    /// Whether there can be another attempt after this one: if not, the request need not be kept.
    pub fn may_continue(&self) -> bool {
        self.made < self.policy.attempts
    }

    /// What follows. Takes a retry from the allowance only if nothing else forbids it.
    pub fn next(&mut self, later: &Later, now: Time, random: u64, allowance: &RetryAllowance) -> NextAttempt {
        if !self.may_continue() || !later.may_repeat(&self.method, self.has_key) {
            return NextAttempt::None;
        }
        let wait = match later.wait {
            Some(wait) => RetryPolicy::named(wait, random),
            None => self.policy.backoff(self.made + 1, random),
        };
        if wait > self.until.since(now) || !allowance.try_retry(now) {
            return NextAttempt::None;
        }
        self.made += 1;
        NextAttempt::After(wait)
    }
}
