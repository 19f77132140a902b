//! Limits failed authentication by address: an address with too many bad tokens or passwords must wait before its next
//! attempt is checked. Tokens are never locked, so one client cannot lock out another.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use tollgate_core::{Ask, Charge, Clock, Digest, KeyHasher, Limit, Secret, Source, Span, Wait};
use tollgate_identity::AttemptThrottle;
use tollgate_store::{Memory, MemoryConfig, Outcomes};

/// Attempts checked per minute and address, in the long run.
const PER_MINUTE: u64 = 10;
/// Attempts checked at once.
const BURST: u64 = 20;
/// Room for addresses; further ones share an overflow bucket.
const MEMORY_BYTES: usize = 1 << 20;

/// Counts failed attempts.
pub struct AuthThrottle {
    memory: Memory,
    limit: Option<Limit>,
    secret: Secret,
}

impl AuthThrottle {
    /// An empty throttle. The secret keeps an attacker from choosing addresses that share a bucket.
    pub fn new(clock: Arc<dyn Clock>, secret: Secret) -> AuthThrottle {
        let config = MemoryConfig { max_memory: MEMORY_BYTES, shards: 4, ..MemoryConfig::default() };
        let limit = Limit::per_minute(PER_MINUTE).and_then(|limit| limit.burst(BURST)).ok();
        AuthThrottle { memory: Memory::with_clock(config, clock), limit, secret }
    }

    /// How long the next attempt from this address must wait; `None` if it may be checked now.
    pub fn wait(&self, address: Option<IpAddr>) -> Option<Span> {
        self.take(address, Ask::Peek(1))
    }

    /// Counts a failed attempt from this address.
    pub fn note(&self, address: Option<IpAddr>) {
        self.take(address, Ask::Consume(1));
    }

    fn take(&self, address: Option<IpAddr>, ask: Ask) -> Option<Span> {
        let charge = Charge { ask, ..Charge::new(self.bucket(address), self.limit?, 1) };
        let mut outcomes = Outcomes::new();
        let taken = self.memory.take_now(&[charge], &mut outcomes);
        if outcomes.iter().any(|outcome| outcome.source == Source::Overflow) {
            return None; // a flood of addresses must not lock out all others; a guess still fails
        }
        let wait = outcomes.iter().map(|outcome| outcome.wait).max().unwrap_or(Wait::None);
        (!taken.allowed).then(|| wait.span().unwrap_or(Span::SECOND))
    }

    /// Unix domain sockets count as one address.
    fn bucket(&self, address: Option<IpAddr>) -> Digest {
        let mut hasher = KeyHasher::new(self.secret);
        match address {
            None => hasher.part(b"unix"),
            Some(IpAddr::V4(address)) => hasher.part(&address.octets()),
            // IPv6 counts by /64: a client that has one address has its whole network.
            Some(IpAddr::V6(address)) => hasher.part(address.octets().get(..8).unwrap_or_default()),
        };
        hasher.finish()
    }
}

impl AttemptThrottle for AuthThrottle {
    fn may_try(&self, address: Option<IpAddr>) -> bool {
        self.wait(address).is_none()
    }

    fn note_failure(&self, address: Option<IpAddr>) {
        self.note(address);
    }
}

impl fmt::Debug for AuthThrottle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthThrottle").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{ManualClock, Time};

    use super::*;

    #[test]
    fn twenty_at_once_then_ten_a_minute_and_every_address_for_itself() {
        let clock = ManualClock::at(Time::from_secs(1_700_000_000));
        let throttle = AuthThrottle::new(Arc::new(clock.clone()), Secret::new([7; 16]));
        let (here, there) = (Some(IpAddr::from([192, 0, 2, 1])), Some(IpAddr::from([192, 0, 2, 2])));
        for count in 0..20 {
            assert_eq!(throttle.wait(here), None, "{count}");
            throttle.note(here);
        }
        assert_eq!(throttle.wait(here), Some(Span::from_secs(6)));
        assert_eq!((throttle.wait(there), throttle.wait(None)), (None, None));
        clock.advance(Span::from_secs(6));
        assert_eq!(throttle.wait(here), None);
        throttle.note(here);
        assert_eq!(throttle.wait(here), Some(Span::from_secs(6)));
    }
}
