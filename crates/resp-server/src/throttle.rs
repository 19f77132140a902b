//! Limits that come with every call: `CL.THROTTLE` as redis-cell has it, `THROTTLE` as throttlecrab has it.
//!
//! | | `CL.THROTTLE` | `THROTTLE` |
//! |---|---|---|
//! | capacity | max_burst + 1 | max_burst |
//! | first field | 0 for allowed | 1 for allowed |
//! | last fields | retry, reset | reset, retry |
//! | retry when allowed | −1 | 0 |
//!
//! Both count in one bucket per key. Its parameters are no part of its name: other ones find the time that is owed, up to
//! one full bucket of their own. redis-cell has no such bound, and locks a key for as long as a clock stepped back.

use tollgate_core::{Charge, Enforcement, Gcra, KeyHasher, Limit, LimitError, Owner, Secret, Span, Wait};
use tollgate_engine::SingleDecision;
use tollgate_resp::{Arguments, ReplyWriter, excerpt};

use tollgate_config::RespRounding;

/// Longest key.
const KEY_BYTES_MAX: usize = 16 << 10;

/// Percent of the store's memory that keys of these commands may fill: rules keep the rest.
const SHARE: u8 = 50;

/// Names buckets.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    hasher: KeyHasher,
    owner: u32,
    namespace: u32,
    /// Whether the store keeps the buckets of one identity together, and must be told whose they are.
    identities: bool,
}

impl Buckets {
    /// Names under a secret, for a store that may be shared.
    pub fn new(secret: Secret, service: bool) -> Buckets {
        let mut hasher = KeyHasher::new(secret);
        hasher.part(b"resp");
        let [namespace, _] = hasher.finish().0;
        let mut public = KeyHasher::new(Secret::new([0; 16]));
        public.part(b"resp");
        let [owner, _] = public.finish().0;
        Buckets { hasher, owner: owner as u32, namespace: namespace as u32, identities: service }
    }

    /// The bucket of a key for those who want it forgotten, whatever its limit is.
    pub fn of(&self, key: &[u8]) -> Option<Charge> {
        Gcra::new(1, Span::SECOND, 1).ok().map(|limit| self.charge(key, limit, 0))
    }

    /// A charge on the bucket of a key.
    #[inline]
    pub fn charge(&self, key: &[u8], limit: Gcra, quantity: u64) -> Charge {
        let mut hasher = self.hasher;
        hasher.part(key);
        let bucket = hasher.finish();
        let [bits, _] = bucket.0;
        // Keys that find no room share a bucket with those of about the same limit, not with one of a thousand times it.
        let class = u64::BITS - limit.tolerance().nanos().leading_zeros();
        let owner = Owner { id: self.owner.wrapping_add(class), share: SHARE, namespace: self.namespace };
        let identity = if self.identities { bits as u32 } else { 0 };
        Charge { owner, identity, ..Charge::new(bucket, Limit::Gcra(limit), quantity) }
    }
}

/// Whose order and meaning a command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// redis-cell's.
    Cell,
    /// throttlecrab's.
    Crab,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    style: Style,
    /// What is asked of the store.
    pub charge: Charge,
}

/// Why a call cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused<'a> {
    /// It has too few or too many arguments.
    Arity,
    /// The key is too long.
    Key,
    /// No whole number, in this place.
    NoNumber(usize, &'a [u8]),
    /// Below zero, in this place.
    Negative(usize),
    /// Zero where that is no limit, in this place.
    Zero(usize),
    /// More than one unit per nanosecond.
    TooFast,
    /// A bucket that takes longer to fill than anybody will wait.
    TooLong,
}

impl Throttle {
    /// Reads a call: key, max_burst, count, period in seconds, and maybe a quantity.
    #[inline]
    pub fn read<'a>(style: Style, arguments: Arguments<'a>, buckets: &Buckets) -> Result<Throttle, Refused<'a>> {
        if !(5..=6).contains(&arguments.len()) {
            return Err(Refused::Arity);
        }
        let key = arguments.get(1).unwrap_or_default();
        if key.len() > KEY_BYTES_MAX {
            return Err(Refused::Key);
        }
        let number = |place: usize| number(place, arguments.get(place).unwrap_or_default());
        let (max_burst, count, period) = (number(2)?, number(3)?, number(4)?);
        let quantity = if arguments.len() == 6 { number(5)? } else { 1 };
        let capacity = match style {
            Style::Cell => max_burst + 1, // of 63 bits
            Style::Crab => max_burst,
        };
        let zero = [(2, capacity), (3, count), (4, period)].into_iter().find(|(_, value)| *value == 0);
        if let Some((place, _)) = zero {
            return Err(Refused::Zero(place));
        }
        let limit = limit(count, period, capacity).map_err(|error| match error {
            LimitError::TooLong => Refused::TooLong,
            _ => Refused::TooFast,
        })?;
        let charge = buckets.charge(key, limit, quantity);
        // A quantity of 0 reads, and is never refused: not even by a bucket that owes more than this limit holds.
        let enforcement = if quantity == 0 { Enforcement::Shadow } else { charge.enforcement };
        Ok(Throttle { style, charge: Charge { enforcement, ..charge } })
    }

    /// Whose order and meaning it has.
    pub fn style(&self) -> Style {
        self.style
    }

    /// Writes the five integers.
    #[inline]
    pub fn write(&self, lone: &SingleDecision, rounding: RespRounding, out: &mut ReplyWriter<'_>) {
        let seconds = |span: Span| i64::try_from(round(span, rounding)).unwrap_or(i64::MAX);
        let reset = seconds(lone.outcome.reset_after);
        let retry = match (lone.allowed, lone.outcome.wait) {
            (false, Wait::For(wait)) => Some(seconds(wait)),
            (false, _) => Some(-1), // no waiting helps
            (true, _) => None,
        };
        out.array(5);
        match self.style {
            Style::Cell => out.integer(i64::from(!lone.allowed)),
            Style::Crab => out.integer(i64::from(lone.allowed)),
        }
        out.unsigned(self.charge.limit.capacity());
        out.unsigned(lone.outcome.remaining);
        match self.style {
            Style::Cell => [retry.unwrap_or(-1), reset],
            Style::Crab => [reset, retry.unwrap_or(0)],
        }
        .into_iter()
        .for_each(|number| out.integer(number));
    }
}

impl Refused<'_> {
    /// Writes the error, as those who know the original expect it.
    pub fn write(self, style: Style, out: &mut ReplyWriter<'_>) {
        match style {
            Style::Cell => self.write_cell(out),
            Style::Crab => self.write_crab(out),
        }
    }

    fn write_cell(self, out: &mut ReplyWriter<'_>) {
        const PREFIX: &[u8] = b"ERR Cell error: Store error: ";
        match self {
            Refused::Arity => {
                out.error(&[PREFIX, b"Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"])
            }
            Refused::Key => out.error(&[PREFIX, b"The key is longer than 16384 bytes"]),
            Refused::NoNumber(_, sent) => out.error(&[PREFIX, b"Couldn't parse as integer: ", excerpt(sent)]),
            Refused::Negative(_) => out.error(&[PREFIX, b"Negative values are not supported"]),
            Refused::Zero(_) | Refused::TooFast => out.error(&[PREFIX, b"Zero rates are not supported"]),
            Refused::TooLong => out.error(&[PREFIX, b"A full bucket would last longer than 292 years"]),
        }
    }

    fn write_crab(self, out: &mut ReplyWriter<'_>) {
        const NAMES: [&str; 4] = ["max_burst", "count_per_period", "period", "quantity"];
        match self {
            Refused::Arity => out.error(&[b"ERR wrong number of arguments for 'throttle' command"]),
            Refused::Key => out.error(&[b"ERR invalid key: longer than 16384 bytes"]),
            Refused::NoNumber(place, _) | Refused::Negative(place) | Refused::Zero(place) => {
                let name = NAMES.get(place.saturating_sub(2)).copied().unwrap_or_default();
                out.error(&[b"ERR invalid ", name.as_bytes()]);
            }
            Refused::TooFast => out.error(&[b"ERR invalid count_per_period: more than one per nanosecond"]),
            Refused::TooLong => out.error(&[b"ERR invalid max_burst: a full bucket would last longer than 292 years"]),
        }
    }
}

/// A whole number of at most 63 bits.
#[inline]
fn number(place: usize, sent: &[u8]) -> Result<u64, Refused<'_>> {
    let (digits, is_negative) = match sent {
        [b'-', digits @ ..] => (digits, true),
        [b'+', digits @ ..] => (digits, false),
        digits => (digits, false),
    };
    let mut value: u64 = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        let next = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit)));
        value = next.filter(|_| digit <= 9).ok_or(Refused::NoNumber(place, sent))?;
    }
    match (i64::try_from(value), is_negative) {
        _ if digits.is_empty() => Err(Refused::NoNumber(place, sent)),
        (Ok(0), _) => Ok(0),
        (_, true) if value <= i64::MIN.unsigned_abs() => Err(Refused::Negative(place)),
        (Ok(_), false) => Ok(value),
        _ => Err(Refused::NoNumber(place, sent)),
    }
}

/// `count` per `period` seconds. Exact also where the period alone is longer than anything we measure.
#[inline]
fn limit(count: u64, period: u64, capacity: u64) -> Result<Gcra, LimitError> {
    let nanos = u128::from(period) * u128::from(Span::SECOND.nanos());
    match u64::try_from(nanos) {
        Ok(nanos) => Gcra::new(count, Span::from_nanos(nanos), capacity),
        Err(_) => {
            let interval = u64::try_from(nanos / u128::from(count)).map_err(|_| LimitError::TooLong)?;
            Gcra::new(1, Span::from_nanos(interval), capacity)
        }
    }
}

/// Whole seconds: enough to wait, or as redis-cell counts them, which drops what is below a millisecond.
#[inline]
fn round(span: Span, rounding: RespRounding) -> u64 {
    match rounding {
        RespRounding::Strict => span.secs_ceil(),
        RespRounding::RedisCell => Span::from_nanos(span.nanos() / 1_000_000 * 1_000_000).secs_ceil(),
    }
}
