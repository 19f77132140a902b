//! When and how often a call is repeated.

use tollgate_core::Span;

/// When and how often a call is repeated. The defaults are those of every client library of Tollgate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first one included. Default 3.
    pub attempts: u32,
    /// The first wait, where the response names none; it doubles with every attempt. Default 100 ms.
    pub base: Span,
    /// The longest of these waits, before jitter. Default 20 s.
    pub cap: Span,
    /// How these waits are spread. Default [`BackoffJitter::Full`].
    pub jitter: BackoffJitter,
    /// From the first attempt on: a retry that would start later is not made. Default 60 s.
    pub deadline: Span,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            attempts: 3,
            base: Span::from_millis(100),
            cap: Span::from_secs(20),
            jitter: BackoffJitter::Full,
            deadline: Span::from_secs(60),
        }
    }
}

/// How waits that no response named are spread, so that callers that failed together do not return together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackoffJitter {
    /// From nothing to the wait.
    #[default]
    Full,
    /// From half of the wait to one and a half.
    Half,
}

impl RetryPolicy {
    /// The wait before attempt number `next` (the second is 2), where the response names none.
    pub fn backoff(&self, next: u32, random: u64) -> Span {
        let doublings = next.saturating_sub(2);
        let wait = match 1u64.checked_shl(doublings) {
            Some(factor) => Span::from_nanos(self.base.nanos().saturating_mul(factor)).min(self.cap),
            None => self.cap,
        };
        match self.jitter {
            BackoffJitter::Full => share(wait, random),
            BackoffJitter::Half => Span::from_nanos(wait.nanos() / 2).plus(share(wait, random)),
        }
    }

    /// A wait that the response named, with up to a tenth more: never less.
    pub fn named(wait: Span, random: u64) -> Span {
        wait.plus(share(Span::from_nanos(wait.nanos() / 10), random))
    }
}

/// `span × random / 2^64`, rounded to the nearest.
fn share(span: Span, random: u64) -> Span {
    Span::from_nanos(((u128::from(span.nanos()) * u128::from(random) + (1 << 63)) >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: u64 = 1 << 63;

    #[test]
    fn waits_double_up_to_the_cap() {
        let policy = RetryPolicy { cap: Span::from_millis(300), ..RetryPolicy::default() };
        let waits = [2, 3, 4, 5, 200].map(|next| policy.backoff(next, HALF).millis_ceil());
        assert_eq!(waits, [50, 100, 150, 150, 150]);
        let half = RetryPolicy { jitter: BackoffJitter::Half, ..policy };
        assert_eq!([0, HALF, u64::MAX].map(|random| half.backoff(2, random).millis_ceil()), [50, 100, 150]);
    }

    #[test]
    fn a_named_wait_only_grows() {
        for random in [0, 1, HALF, u64::MAX] {
            let wait = RetryPolicy::named(Span::from_secs(10), random);
            assert!(wait >= Span::from_secs(10) && wait <= Span::from_secs(11), "{wait}");
        }
        let longest = Span::from_nanos(u64::MAX);
        assert_eq!(RetryPolicy::named(longest, u64::MAX), longest);
    }
}
