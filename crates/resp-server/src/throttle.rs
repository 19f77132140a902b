//! Throttle commands, which carry their own limit: `CL.THROTTLE` of redis-cell and `THROTTLE` of throttlecrab.
//!
//! | | `CL.THROTTLE` | `THROTTLE` |
//! |---|---|---|
//! | capacity | max_burst + 1 | max_burst |
//! | first field | 0 for allowed | 1 for allowed |
//! | last fields | retry, reset | reset, retry |
//! | retry when allowed | −1 | 0 |
//!
//! Both share one bucket per key. The limit is not part of the bucket key: a changed limit inherits the debt of the old
//! one, up to one full bucket of the new one. redis-cell has no such bound, and locks a key for as long as a clock
//! stepped back.

use tollgate_core::{Charge, Enforcement, Gcra, KeyHasher, Limit, LimitError, Owner, Secret, Span, Wait};
use tollgate_resp::{Arguments, ReplyWriter, excerpt};
use tollgate_service::SingleDecision;

use tollgate_config::RespRounding;

/// Longest key.
const KEY_BYTES_MAX: usize = 16 << 10;

/// Percent of the store's memory that throttle keys may fill; the rest is reserved for rules.
const STORE_SHARE_PERCENT: u8 = 50;

/// Builds bucket keys of throttle commands.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    hasher: KeyHasher,
    owner: u32,
    namespace: u32,
    /// Whether the store groups buckets by identity, so that charges must carry one.
    identities: bool,
}

impl Buckets {
    /// Bucket keys hashed with `secret`; `shared` for a shared store.
    pub fn new(secret: Secret, shared: bool) -> Buckets {
        let mut hasher = KeyHasher::new(secret);
        hasher.part(b"resp");
        let [namespace, _] = hasher.finish().0;
        let mut public = KeyHasher::new(Secret::new([0; 16]));
        public.part(b"resp");
        let [owner, _] = public.finish().0;
        Buckets { hasher, owner: owner as u32, namespace: namespace as u32, identities: shared }
    }

    /// A charge that identifies the bucket of a key for deletion; the limit is irrelevant.
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
        // Keys without space in the store share an overflow bucket per class of similar limits.
        let class = u64::BITS - limit.tolerance().nanos().leading_zeros();
        let owner = Owner { id: self.owner.wrapping_add(class), share: STORE_SHARE_PERCENT, namespace: self.namespace };
        let identity = if self.identities { bits as u32 } else { 0 };
        Charge { owner, identity, ..Charge::new(bucket, Limit::Gcra(limit), quantity) }
    }
}

/// Syntax and reply format of a throttle command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottleDialect {
    /// `CL.THROTTLE` of redis-cell.
    RedisCell,
    /// `THROTTLE` of throttlecrab.
    Throttlecrab,
}

/// A parsed throttle command.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    dialect: ThrottleDialect,
    /// The charge on the store.
    pub charge: Charge,
}

/// Why the arguments are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottleArgumentError<'a> {
    /// Wrong number of arguments.
    Arity,
    /// The key is too long.
    Key,
    /// Not a whole number, at this argument.
    NoNumber(usize, &'a [u8]),
    /// Negative, at this argument.
    Negative(usize),
    /// Zero where a limit needs a positive value, at this argument.
    Zero(usize),
    /// More than one unit per nanosecond.
    TooFast,
    /// The bucket takes longer to refill than can be represented.
    TooLong,
}

impl Throttle {
    /// Parses key, max_burst, count, period in seconds, and optionally a quantity.
    #[inline]
    pub fn read<'a>(
        dialect: ThrottleDialect,
        arguments: Arguments<'a>,
        buckets: &Buckets,
    ) -> Result<Throttle, ThrottleArgumentError<'a>> {
        if !(5..=6).contains(&arguments.len()) {
            return Err(ThrottleArgumentError::Arity);
        }
        let key = arguments.get(1).unwrap_or_default();
        if key.len() > KEY_BYTES_MAX {
            return Err(ThrottleArgumentError::Key);
        }
        let number = |position: usize| number(position, arguments.get(position).unwrap_or_default());
        let (max_burst, count, period) = (number(2)?, number(3)?, number(4)?);
        let quantity = if arguments.len() == 6 { number(5)? } else { 1 };
        let capacity = match dialect {
            ThrottleDialect::RedisCell => max_burst + 1, // at most 63 bits: no overflow
            ThrottleDialect::Throttlecrab => max_burst,
        };
        let zero = [(2, capacity), (3, count), (4, period)].into_iter().find(|(_, value)| *value == 0);
        if let Some((position, _)) = zero {
            return Err(ThrottleArgumentError::Zero(position));
        }
        let limit = limit(count, period, capacity).map_err(|error| match error {
            LimitError::TooLong => ThrottleArgumentError::TooLong,
            _ => ThrottleArgumentError::TooFast,
        })?;
        let charge = buckets.charge(key, limit, quantity);
        // A quantity of 0 only reads and is never denied, even if the bucket's debt exceeds this limit.
        let enforcement = if quantity == 0 { Enforcement::Shadow } else { charge.enforcement };
        Ok(Throttle { dialect, charge: Charge { enforcement, ..charge } })
    }

    /// Syntax and reply format.
    pub fn dialect(&self) -> ThrottleDialect {
        self.dialect
    }

    /// Writes the five integers.
    #[inline]
    pub fn write(&self, decision: &SingleDecision, rounding: RespRounding, out: &mut ReplyWriter<'_>) {
        let seconds = |span: Span| i64::try_from(round(span, rounding)).unwrap_or(i64::MAX);
        let reset = seconds(decision.outcome.reset_after);
        let retry = match (decision.allowed, decision.outcome.wait) {
            (false, Wait::For(wait)) => Some(seconds(wait)),
            (false, _) => Some(-1), // exceeds the capacity: never allowed
            (true, _) => None,
        };
        out.array(5);
        match self.dialect {
            ThrottleDialect::RedisCell => out.integer(i64::from(!decision.allowed)),
            ThrottleDialect::Throttlecrab => out.integer(i64::from(decision.allowed)),
        }
        out.unsigned(self.charge.limit.capacity());
        out.unsigned(decision.outcome.remaining);
        match self.dialect {
            ThrottleDialect::RedisCell => [retry.unwrap_or(-1), reset],
            ThrottleDialect::Throttlecrab => [reset, retry.unwrap_or(0)],
        }
        .into_iter()
        .for_each(|number| out.integer(number));
    }
}

impl ThrottleArgumentError<'_> {
    /// Writes the error with the text of the original implementation.
    pub fn write(self, dialect: ThrottleDialect, out: &mut ReplyWriter<'_>) {
        match dialect {
            ThrottleDialect::RedisCell => self.write_redis_cell(out),
            ThrottleDialect::Throttlecrab => self.write_throttlecrab(out),
        }
    }

    fn write_redis_cell(self, out: &mut ReplyWriter<'_>) {
        const PREFIX: &[u8] = b"ERR Cell error: Store error: ";
        match self {
            ThrottleArgumentError::Arity => {
                out.error(&[PREFIX, b"Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"])
            }
            ThrottleArgumentError::Key => out.error(&[PREFIX, b"The key is longer than 16384 bytes"]),
            ThrottleArgumentError::NoNumber(_, sent) => {
                out.error(&[PREFIX, b"Couldn't parse as integer: ", excerpt(sent)])
            }
            ThrottleArgumentError::Negative(_) => out.error(&[PREFIX, b"Negative values are not supported"]),
            ThrottleArgumentError::Zero(_) | ThrottleArgumentError::TooFast => {
                out.error(&[PREFIX, b"Zero rates are not supported"])
            }
            ThrottleArgumentError::TooLong => out.error(&[PREFIX, b"A full bucket would last longer than 292 years"]),
        }
    }

    fn write_throttlecrab(self, out: &mut ReplyWriter<'_>) {
        const NAMES: [&str; 4] = ["max_burst", "count_per_period", "period", "quantity"];
        match self {
            ThrottleArgumentError::Arity => out.error(&[b"ERR wrong number of arguments for 'throttle' command"]),
            ThrottleArgumentError::Key => out.error(&[b"ERR invalid key: longer than 16384 bytes"]),
            ThrottleArgumentError::NoNumber(position, _)
            | ThrottleArgumentError::Negative(position)
            | ThrottleArgumentError::Zero(position) => {
                let name = NAMES.get(position.saturating_sub(2)).copied().unwrap_or_default();
                out.error(&[b"ERR invalid ", name.as_bytes()]);
            }
            ThrottleArgumentError::TooFast => {
                out.error(&[b"ERR invalid count_per_period: more than one per nanosecond"])
            }
            ThrottleArgumentError::TooLong => {
                out.error(&[b"ERR invalid max_burst: a full bucket would last longer than 292 years"])
            }
        }
    }
}

/// A whole number of at most 63 bits.
#[inline]
fn number(position: usize, sent: &[u8]) -> Result<u64, ThrottleArgumentError<'_>> {
    let (digits, is_negative) = match sent {
        [b'-', digits @ ..] => (digits, true),
        [b'+', digits @ ..] => (digits, false),
        digits => (digits, false),
    };
    let mut value: u64 = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        let next = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit)));
        value = next.filter(|_| digit <= 9).ok_or(ThrottleArgumentError::NoNumber(position, sent))?;
    }
    match (i64::try_from(value), is_negative) {
        _ if digits.is_empty() => Err(ThrottleArgumentError::NoNumber(position, sent)),
        (Ok(0), _) => Ok(0),
        (_, true) if value <= i64::MIN.unsigned_abs() => Err(ThrottleArgumentError::Negative(position)),
        (Ok(_), false) => Ok(value),
        _ => Err(ThrottleArgumentError::NoNumber(position, sent)),
    }
}

/// `count` per `period` seconds. Exact even if the period alone exceeds the range of [`Span`].
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

/// Whole seconds, rounded up; `RedisCell` first truncates to milliseconds, as redis-cell does.
#[inline]
fn round(span: Span, rounding: RespRounding) -> u64 {
    match rounding {
        RespRounding::Strict => span.secs_ceil(),
        RespRounding::RedisCell => Span::from_nanos(span.nanos() / 1_000_000 * 1_000_000).secs_ceil(),
    }
}
