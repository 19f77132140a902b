//! The limiter of this process, for when the server gives no decision: buckets and algorithm are those of the server.

use std::borrow::Cow;
use std::sync::Arc;

use tollgate_core::{Attribute, Charge, Clock, KeyHasher, Limit, Purpose, Request, Secret, Span, Wait};
use tollgate_store::{Memory, MemoryConfig, Outcomes, random};

use crate::RemoteDecision;

/// Keys that the limiter counts apart. Beyond that new keys share one bucket, until buckets equal unused ones again.
pub const FALLBACK_KEYS_MAX: usize = 10_000;

/// Memory for so many keys.
const FALLBACK_BYTES: usize = FALLBACK_KEYS_MAX * 64;

/// Limits each client of this process.
pub struct LocalLimiter {
    limit: Limit,
    memory: Memory,
    secret: Secret,
}

impl LocalLimiter {
    /// A limiter without usage.
    pub fn new(limit: Limit, clock: Arc<dyn Clock>) -> LocalLimiter {
        let config = MemoryConfig { max_memory: FALLBACK_BYTES, overflow_factor: 1, shards: 4 };
        let secret = [random::unpredictable().to_le_bytes(), random::unpredictable().to_le_bytes()].concat();
        let secret = Secret::new(secret.try_into().unwrap_or([0; 16]));
        LocalLimiter { limit, memory: Memory::with_clock(config, clock), secret }
    }

    /// Decides by the client of the request and its cost.
    pub fn decide(&self, request: &Request<'_>) -> RemoteDecision {
        let mut hasher = KeyHasher::new(self.secret);
        hasher.part(request.namespace.as_bytes());
        match client_of(request) {
            Some((attribute, value)) => {
                hasher.word(attribute as u64);
                hasher.part(value.as_bytes());
            }
            None => hasher.missing(),
        }
        let mut charge = Charge::new(hasher.finish(), self.limit, request.cost);
        if request.purpose == Purpose::Peek {
            charge.ask = tollgate_core::Ask::Peek(request.cost);
        }
        let mut outcomes = Outcomes::new();
        let taken = self.memory.take_now(&[charge], &mut outcomes);
        let outcome = outcomes.first().copied().unwrap_or_else(|| self.limit.unused(taken.now));
        RemoteDecision {
            limit: Some(outcome.limit),
            remaining: Some(outcome.remaining),
            reset_at: Some(taken.wall.after(outcome.reset_after).secs_ceil()),
            retry_after: match outcome.wait {
                Wait::For(wait) => Some(wait),
                Wait::None | Wait::Never => None,
            },
            never: outcome.wait == Wait::Never,
            rule: Some("fallback".to_owned()),
            mode: Cow::Borrowed("fallback"),
            delay: Span::ZERO,
            ..RemoteDecision::made_here(taken.allowed, "fallback")
        }
    }

    /// The limit of each client.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }
}

/// The attribute that tells clients apart, the most particular one that is there.
fn client_of<'a>(request: &Request<'a>) -> Option<(Attribute, &'a str)> {
    let order = [Attribute::ApiKey, Attribute::UserId, Attribute::ClientKey, Attribute::Org, Attribute::Ip];
    order.into_iter().find_map(|attribute| Some((attribute, request.get(attribute)?)))
}

impl std::fmt::Debug for LocalLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalLimiter").field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{ManualClock, Time};

    use super::*;

    fn limiter() -> (LocalLimiter, ManualClock) {
        let clock = ManualClock::at(Time::from_secs(1_800_000_000));
        (LocalLimiter::new(Limit::token_bucket(2, Span::from_secs(3600)).unwrap(), Arc::new(clock.clone())), clock)
    }

    fn user(name: &str) -> Request<'_> {
        Request::new().with(Attribute::UserId, name)
    }

    #[test]
    fn clients_are_limited_apart_whatever_their_endpoint() {
        let (limiter, clock) = limiter();
        assert!(limiter.decide(&user("a").with(Attribute::Endpoint, "GET /1")).allowed);
        assert!(limiter.decide(&user("a").with(Attribute::Endpoint, "GET /2")).allowed);
        let refused = limiter.decide(&user("a"));
        assert_eq!((refused.allowed, refused.remaining, refused.mode.as_ref()), (false, Some(0), "fallback"));
        assert_eq!(refused.retry_after, Some(Span::from_secs(1800)));
        assert!(limiter.decide(&user("b")).allowed);
        clock.advance(Span::from_secs(1800));
        assert!(limiter.decide(&user("a").peek()).allowed);
        assert!(limiter.decide(&user("a")).allowed);
        assert!(limiter.decide(&user("c").cost(3)).never);
    }

    #[test]
    fn invented_keys_share_a_bucket_and_forget_nobody() {
        let (limiter, _) = limiter();
        assert!(limiter.decide(&user("first").cost(2)).allowed);
        let allowed = (0..40_000).filter(|key| limiter.decide(&user(&key.to_string())).allowed).count();
        assert!(allowed < 2 * FALLBACK_KEYS_MAX, "{allowed}");
        assert!(!limiter.decide(&user("first")).allowed, "a flood of keys must not return what was used");
    }
}
