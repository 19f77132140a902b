//! How long a denied caller should wait: never too short, and with jitter.

use std::str::FromStr;

use tollgate_core::{Span, Wait};
use tollgate_rules::duration;
use tollgate_rules::problem::ParseError;

/// What `Retry-After` adds to waits of two seconds and more, so that callers denied together do not retry together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// Nothing.
    None,
    /// Up to this many percent of the wait.
    Percent(u32),
    /// Up to this long.
    Span(Span),
}

impl Default for Jitter {
    /// A tenth of the wait.
    fn default() -> Self {
        Jitter::Percent(10)
    }
}

impl Jitter {
    /// Most seconds that are added while the store is away: all callers are denied then, at the same time.
    const WHILE_AWAY: u64 = 2;

    /// The shortest wait with jitter.
    const FROM: Span = Span::from_secs(2);

    /// The most it adds to a wait.
    fn most(self, wait: Span) -> Span {
        match self {
            _ if wait < Jitter::FROM => Span::ZERO,
            Jitter::None => Span::ZERO,
            Jitter::Span(span) => span,
            Jitter::Percent(percent) => {
                let part = u128::from(wait.nanos()) * u128::from(percent) / 100;
                Span::from_nanos(u64::try_from(part).unwrap_or(u64::MAX))
            }
        }
    }

    /// Whole seconds that cover `wait`: uniform between the wait and the wait with the largest jitter; `random`
    /// selects.
    pub fn spread(self, wait: Span, random: u64) -> u64 {
        let (first, last) = (wait.secs_ceil(), wait.plus(self.most(wait)).secs_ceil());
        first.saturating_add(chosen(last - first, random))
    }

    /// Whole seconds to wait while the store is away.
    fn while_away(self, random: u64) -> u64 {
        let most = if self == Jitter::None { 0 } else { Jitter::WHILE_AWAY };
        1 + chosen(most, random)
    }
}

/// A uniform number from 0 to `most`; `random` selects.
fn chosen(most: u64, random: u64) -> u64 {
    ((u128::from(random) * (u128::from(most) + 1)) >> 64) as u64
}

const ALLOWED: &str = "write a share of the wait such as 10%, a time such as 5s, or off";

impl FromStr for Jitter {
    type Err = ParseError;

    /// Reads `10%`, `5s`, `off`.
    fn from_str(text: &str) -> Result<Jitter, ParseError> {
        if matches!(text, "off" | "none") {
            return Ok(Jitter::None);
        }
        let Some(digits) = text.strip_suffix('%') else {
            return match duration::parse(text) {
                Ok(nanos) => Ok(Jitter::Span(Span::from_nanos(nanos))),
                Err(fault) => Err(ParseError::new(fault.message, ALLOWED)),
            };
        };
        match digits.parse() {
            Ok(percent @ 0..=100) if digits.bytes().all(|digit| digit.is_ascii_digit()) => Ok(Jitter::Percent(percent)),
            _ => Err(ParseError::new(format!("`{text}` is no share from 0% to 100%"), ALLOWED)),
        }
    }
}

/// When a caller should retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryHint {
    /// The request was allowed.
    Now,
    /// After so many whole seconds: `header` with jitter, `secs` without; the true wait is `millis`, rounded up.
    After { header: u64, secs: u64, millis: u64 },
    /// Waiting does not help.
    Never,
}

impl RetryHint {
    /// Never earlier than `next`, which callers see as `t`: a cost of zero, denied by a bucket in debt, waits for less
    /// than one unit.
    #[inline]
    pub(super) fn of(wait: Wait, next: Option<Span>, jitter: Jitter, random: u64) -> RetryHint {
        match wait {
            Wait::None => RetryHint::Now,
            Wait::Never => RetryHint::Never,
            Wait::For(wait) => {
                let least = next.map_or(1, Span::secs_ceil).max(1);
                let (header, secs) = (jitter.spread(wait, random).max(least), wait.secs_ceil().max(least));
                RetryHint::After { header, secs, millis: wait.millis_ceil() }
            }
        }
    }

    /// For callers that are shed: the load is what it is for a while, and they must not return together.
    pub(super) fn while_shedding(jitter: Jitter, random: u64) -> RetryHint {
        const SECS: u64 = 30;
        let most = if jitter == Jitter::None { 0 } else { SECS / 2 };
        RetryHint::After { header: SECS + chosen(most, random), secs: SECS, millis: SECS * 1000 }
    }

    /// For callers that are denied because the store is away.
    pub(super) fn while_away(jitter: Jitter, random: u64) -> RetryHint {
        RetryHint::After { header: jitter.while_away(random), secs: 1, millis: 1000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOTS: [u64; 5] = [0, 1 << 62, 1 << 63, 3 << 62, u64::MAX];

    fn secs(wait: Span, jitter: &str, random: u64) -> u64 {
        match RetryHint::of(Wait::For(wait), None, jitter.parse().unwrap(), random) {
            RetryHint::After { header, .. } => header,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn jitter_spreads_over_whole_seconds() {
        let spread = |wait, jitter| LOTS.map(|random| secs(wait, jitter, random));
        assert_eq!(spread(Span::from_secs(60), "10%"), [60, 61, 63, 65, 66]);
        assert_eq!(spread(Span::from_secs(60), "5s"), [60, 61, 63, 64, 65]);
        assert_eq!(spread(Span::from_secs(4), "100%"), [4, 5, 6, 7, 8]);
        assert_eq!(spread(Span::from_secs(2), "10%"), [2, 2, 3, 3, 3]);
        assert_eq!(spread(Span::from_millis(1999), "100%"), [2; 5], "below two seconds nothing is added");
        assert_eq!(spread(Span::from_nanos(1), "5s"), [1; 5]);
        assert_eq!(spread(Span::from_secs(60), "off"), [60; 5]);
    }

    #[test]
    fn what_is_not_the_header_is_exact() {
        let retry = RetryHint::of(Wait::For(Span::from_millis(59_500)), None, Jitter::default(), u64::MAX);
        assert_eq!(retry, RetryHint::After { header: 66, secs: 60, millis: 59_500 });
    }

    #[test]
    fn retries_are_spread_while_the_store_is_away() {
        let header = |jitter: Jitter| LOTS.map(|random| jitter.while_away(random));
        assert_eq!(header(Jitter::default()), [1, 1, 2, 3, 3]);
        assert_eq!(header(Jitter::None), [1; 5]);
    }

    #[test]
    fn jitter_only_ever_adds() {
        for nanos in (0..64).map(|shift| u64::MAX >> shift).chain([0, 1, 2_000_000_000, 2_000_000_001]) {
            let wait = Span::from_nanos(nanos);
            for jitter in ["off", "0%", "1%", "100%", "1ms", "5s", "7d"] {
                let most = jitter.parse::<Jitter>().unwrap().most(wait);
                for random in LOTS {
                    let told = secs(wait, jitter, random);
                    assert!(told >= wait.secs_ceil().max(1), "{wait} {jitter} {random}");
                    assert!(told <= wait.plus(most).secs_ceil().max(1), "{wait} {jitter} {random}");
                }
            }
        }
    }

    #[test]
    fn no_retry_before_the_next_unit() {
        let retry = RetryHint::of(Wait::For(Span::from_millis(10)), Some(Span::from_secs(7)), Jitter::None, 0);
        assert_eq!(retry, RetryHint::After { header: 7, secs: 7, millis: 10 });
    }

    #[test]
    fn jitter_is_read_or_refused_with_advice() {
        let read = |text: &str| text.parse::<Jitter>();
        assert_eq!(read("10%"), Ok(Jitter::Percent(10)));
        assert_eq!(read("5s"), Ok(Jitter::Span(Span::from_secs(5))));
        assert_eq!(read("off"), Ok(Jitter::None));
        for text in ["101%", "-1%", "+1%", "%", "1.5%", "ten", "", "5"] {
            let fault = read(text).expect_err(text);
            assert_eq!(fault.help, ALLOWED);
        }
        assert_eq!(
            read("200%").unwrap_err().to_string(),
            "`200%` is no share from 0% to 100%; write a share of the wait such as 10%, a time such as 5s, or off"
        );
    }
}
