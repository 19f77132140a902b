//! Client-side adaptive throttling: a client whose calls are refused stops most of them itself (SPEC 5.8).
//!
//! Refusing costs the upstream work too. The gateway is its client: it lets about K times as many calls through as are
//! accepted, which is enough to notice that the upstream is back.

use tollgate_core::{Span, Time};

use crate::chance::happens;

/// Parts of the window.
const PARTS: usize = 24;

/// How strict a throttle is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrottleConfig {
    /// Calls per accepted call that pass.
    pub k: f64,
    /// The time that counts.
    pub window: Span,
    /// The largest share of calls that is rejected: the rest are probes.
    pub cap: f64,
}

impl Default for ThrottleConfig {
    fn default() -> ThrottleConfig {
        ThrottleConfig { k: 2.0, window: Span::from_secs(120), cap: 0.95 }
    }
}

/// Calls to one upstream and how many were accepted.
#[derive(Clone, Debug)]
pub struct ClientThrottle {
    config: ThrottleConfig,
    parts: [Part; PARTS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    number: u64,
    requests: u64,
    accepts: u64,
}

impl ClientThrottle {
    /// Nothing was called yet.
    pub fn new(config: ThrottleConfig) -> ClientThrottle {
        ClientThrottle { config, parts: [Part::default(); PARTS] }
    }

    /// Counts an attempt; whether it may be sent.
    pub fn admits(&mut self, now: Time, random: u64) -> bool {
        let probability = self.probability(now);
        if let Some(part) = self.part(now) {
            part.requests += 1;
        }
        !happens(probability, random)
    }

    /// The upstream accepted a call: any answer but a refusal for load, a timeout or a failed connection.
    pub fn accepted(&mut self, now: Time) {
        if let Some(part) = self.part(now) {
            part.accepts += 1;
        }
    }

    /// The probability with which the next call is rejected.
    pub fn probability(&self, now: Time) -> f64 {
        let oldest = self.number(now).saturating_sub(PARTS as u64 - 1);
        let recent = self.parts.iter().filter(|part| part.number >= oldest && part.number <= self.number(now));
        let (requests, accepts) = recent.fold((0u64, 0u64), |(requests, accepts), part| {
            (requests.saturating_add(part.requests), accepts.saturating_add(part.accepts))
        });
        reject_probability(requests, accepts, self.config.k).min(self.config.cap)
    }

    fn part(&mut self, now: Time) -> Option<&mut Part> {
        let number = self.number(now);
        let part = self.parts.get_mut(number as usize % PARTS)?;
        if part.number < number {
            *part = Part { number, requests: 0, accepts: 0 };
        }
        Some(part)
    }

    fn number(&self, now: Time) -> u64 {
        now.nanos() / (self.config.window.nanos() / PARTS as u64).max(1)
    }
}

/// The formula of Google's SRE book.
pub(crate) fn reject_probability(requests: u64, accepts: u64, k: f64) -> f64 {
    let requests = requests as f64;
    ((requests - k * accepts as f64) / (requests + 1.0)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::mix;

    #[test]
    fn a_healthy_upstream_is_not_throttled() {
        let mut throttle = ClientThrottle::new(ThrottleConfig::default());
        for second in 0..600 {
            let now = Time::from_secs(1_000 + second);
            assert!(throttle.admits(now, 0));
            throttle.accepted(now);
        }
    }

    #[test]
    fn probes_get_through_a_dead_upstream_and_find_it_alive() {
        let mut throttle = ClientThrottle::new(ThrottleConfig::default());
        let (mut random, mut now, mut sent) = (1, Time::from_secs(1_000), 0);
        let mut call = |throttle: &mut ClientThrottle, now| {
            random = mix(random);
            throttle.admits(now, random)
        };
        for _ in 0..10_000 {
            now = now.after(Span::from_millis(10));
            sent += u32::from(call(&mut throttle, now));
        }
        assert!((400..700).contains(&sent), "about one in twenty: {sent}");
        assert_eq!(throttle.probability(now), 0.95);
        for _ in 0..30_000 {
            now = now.after(Span::from_millis(10));
            if call(&mut throttle, now) {
                throttle.accepted(now);
            }
        }
        assert!(throttle.probability(now) < 0.01, "{}", throttle.probability(now));
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let mut throttle = ClientThrottle::new(ThrottleConfig::default());
        for _ in 0..100 {
            throttle.admits(Time::from_secs(1_000), 0);
        }
        assert_eq!(throttle.probability(Time::from_secs(1_100)), 0.95);
        assert_eq!(throttle.probability(Time::from_secs(1_121)), 0.0);
    }
}
