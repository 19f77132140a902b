//! The encoding of script calls: the command, and its numbers in one argument.
//!
//! Numbers are unsigned little-endian integers, which cannot be negative, fractional or NaN. Lua's numbers are doubles,
//! so times are sent as seconds (five bytes) and nanoseconds (four), counts as two halves of 32 bits. Products are
//! computed here in 128 bits, so that scripts only add and compare.

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Concurrency, Gcra, Limit, LimitKind, Queue, Quota, Span, Time};
use tollgate_resp::{write_array_header, write_bulk};

use super::lua::Script;

/// How a script is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptCall<'a> {
    /// By its hash, as returned by `SCRIPT LOAD`.
    Sha(&'a [u8]),
    /// By its text, which also loads it.
    Text,
    /// At a time of the caller's choice; the hash, if any, is that of the text with a test clock.
    #[doc(hidden)]
    At(Time, Option<&'a [u8]>),
}

impl ScriptCall<'_> {
    /// Appends the whole command.
    pub(super) fn encode<'k>(
        self,
        script: Script,
        keys: impl ExactSizeIterator<Item = &'k [u8]>,
        blob: &[u8],
        out: &mut Vec<u8>,
    ) {
        let (word, name): (&[u8], &[u8]) = match self {
            ScriptCall::Sha(sha) | ScriptCall::At(_, Some(sha)) => (b"EVALSHA", sha),
            ScriptCall::Text => (b"EVAL", script.text().as_bytes()),
            ScriptCall::At(_, None) => (b"EVAL", script.text_with_test_clock().as_bytes()),
        };
        let now = if let ScriptCall::At(now, _) = self { Some(now) } else { None };
        write_array_header(out, 4 + keys.len() + usize::from(now.is_some()));
        write_bulk(out, word);
        write_bulk(out, name);
        write_bulk(out, itoa::Buffer::new().format(keys.len()).as_bytes());
        keys.for_each(|key| write_bulk(out, key));
        write_bulk(out, blob);
        if let Some(now) = now {
            let mut time = Blob::default();
            time.nanos(now.nanos());
            write_bulk(out, time.bytes());
        }
    }
}

/// The charge may change its bucket.
const WRITES: u8 = 1;
/// Always recorded: a report of usage (`Ask::Force`).
const FORCE: u8 = 2;
/// Recorded by force when the request is denied: the rule option `count_denied`.
const COUNT_DENIED: u8 = 4;
/// A denial by it does not deny the request.
const SHADOW: u8 = 8;
/// Arrival times: not clamped, however far ahead they are.
const UNCLAMPED: u8 = 16;
/// Arrival times: what must fit differs from what is recorded; both follow, with the interval of an `UpTo`.
const EXTENDED: u8 = 32;
/// Arrival times: a queue, which the last request to fit may overrun.
const QUEUE: u8 = 64;
/// Counts: as many units as fit.
const UP_TO: u8 = 16;
/// No bucket may be created for it.
const NO_ROOM: u8 = 128;

/// The script fragment that reads the charge.
pub(super) const ARRIVAL: u8 = 0;
const WINDOW: u8 = 1;
const COUNTER: u8 = 2;
const LOG: u8 = 3;
const SLOTS: u8 = 4;
const QUOTA: u8 = 5;

pub(super) fn kind(limit: &Limit) -> u8 {
    match limit.kind() {
        LimitKind::Gcra | LimitKind::Queue => ARRIVAL,
        LimitKind::FixedWindow => WINDOW,
        LimitKind::SlidingCounter => COUNTER,
        LimitKind::SlidingLog => LOG,
        LimitKind::Concurrency => SLOTS,
        LimitKind::Quota => QUOTA,
    }
}

/// True if a bucket of this limit is a single string, which scripts return as found.
pub(super) fn is_string(limit: &Limit) -> bool {
    !matches!(kind(limit), LOG | SLOTS)
}

/// True if the charge would create a bucket where there is none.
pub(super) fn needs_bucket(charge: &Charge) -> bool {
    let makes = match charge.limit {
        Limit::Concurrency(_) => matches!(charge.ask, Ask::Hold(_)),
        _ => charge.ask.writes() && charge.ask.cost() > 0,
    };
    makes && !charge.owner.is_overflowing()
}

/// The position of a charge in its call.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChargePosition {
    /// For the first charge of a request: the number of its charges, and whether it is already denied. Zero for the
    /// others.
    pub(super) opens: u16,
    /// Number of its key, counted from one.
    pub(super) key: u16,
    /// No bucket may be created.
    pub(super) full: bool,
    /// About now, by the store's clock.
    pub(super) estimate: Time,
}

/// Appends a charge. `deciding` is its limit, randomly raised if it is soft.
pub(super) fn encode_charge(charge: &Charge, deciding: &Limit, position: ChargePosition, blob: &mut Blob) {
    let ask = &charge.ask;
    let mut flags = 0;
    let mut flag = |bit: u8, set: bool| flags |= if set { bit } else { 0 };
    flag(WRITES, ask.writes());
    flag(FORCE, matches!(ask, Ask::Force(_)));
    flag(COUNT_DENIED, charge.count_denied);
    flag(SHADOW, !charge.is_enforced());
    flag(NO_ROOM, position.full && needs_bucket(charge));
    match deciding {
        Limit::Gcra(gcra) => {
            flag(UNCLAMPED, !gcra.is_clamped() && gcra.burst() > 0);
            flag(EXTENDED, is_extended(ask));
        }
        Limit::Queue(_) => flag(EXTENDED | QUEUE, true),
        _ => flag(UP_TO, matches!(ask, Ask::UpTo(_))),
    }
    blob.short(position.opens);
    blob.byte(kind(deciding));
    blob.byte(flags);
    blob.short(position.key);
    match deciding {
        Limit::Gcra(gcra) => encode_gcra(gcra, ask, blob),
        Limit::Queue(queue) => encode_queue(queue, ask, blob),
        Limit::FixedWindow(_) | Limit::SlidingCounter(_) => {
            encode_windows(deciding.window(), deciding.offset(), position.estimate, blob);
            blob.count(deciding.capacity());
            blob.count(ask.least());
            blob.count(ask.cost());
        }
        Limit::SlidingLog(log) => {
            blob.nanos(log.window().nanos());
            blob.short(log.limit() as u16);
            blob.short(charge.limit.capacity() as u16);
            blob.count(ask.least());
            blob.count(ask.cost());
        }
        Limit::Concurrency(limit) => encode_slots(limit, ask, blob),
        Limit::Quota(quota) => encode_quota(quota, ask, blob),
    }
}

/// A renewal costs nothing but is recorded: it takes the longer path, so that on the shortest path every cost is
/// positive.
fn is_extended(ask: &Ask) -> bool {
    matches!(ask, Ask::UpTo(_) | Ask::Renew(_))
}

/// `count · interval`, capped at `most`.
fn product(interval: Span, count: u64, most: u64) -> u64 {
    u128::from(interval.nanos()).saturating_mul(u128::from(count)).min(u128::from(most)) as u64
}

fn encode_gcra(gcra: &Gcra, ask: &Ask, blob: &mut Blob) {
    // A bucket without capacity is never ahead.
    let (tolerance, bound) = if gcra.burst() == 0 { (0, 0) } else { (gcra.tolerance().nanos(), gcra.bound().nanos()) };
    // One nanosecond beyond the bound neither fits nor is recorded; larger costs make no difference.
    let cost = |count| product(gcra.interval(), count, bound + 1);
    blob.nanos(cost(ask.cost()));
    blob.nanos(tolerance);
    blob.nanos(bound);
    if is_extended(ask) {
        blob.nanos(cost(ask.least()));
        encode_interval(gcra.interval(), ask, blob);
    }
}

/// A queue checks whether another request may join, not whether its whole cost fits.
fn encode_queue(queue: &Queue, ask: &Ask, blob: &mut Blob) {
    let (most, bound) = (queue.max_delay().nanos(), queue.bound().nanos());
    blob.nanos(product(queue.interval(), ask.cost(), bound + 1));
    blob.nanos(most);
    blob.nanos(bound);
    blob.nanos(if ask.least() <= queue.capacity() { 0 } else { most + 1 });
    encode_interval(queue.interval(), ask, blob);
}

/// Zero for an ask that takes all or nothing.
fn encode_interval(interval: Span, ask: &Ask, blob: &mut Blob) {
    blob.nanos(if matches!(ask, Ask::UpTo(_)) { interval.nanos() } else { 0 });
}

/// The window length, and the end of the window that is probably current: the script then need not divide.
pub(super) fn encode_windows(window: Span, offset: Span, estimate: Time, blob: &mut Blob) {
    let length = window.nanos().max(1);
    let elapsed = (estimate.nanos() % length + length - offset.nanos() % length) % length;
    blob.nanos(length);
    blob.wide_nanos(u128::from(estimate.nanos()) + u128::from(length - elapsed));
}

/// The proposed bounds and all numbers: the script turns the period by its own clock.
fn encode_quota(quota: &Quota, ask: &Ask, blob: &mut Blob) {
    [quota.start(), quota.end(), quota.next_end()].iter().for_each(|bound| blob.nanos(bound.nanos()));
    blob.nanos(quota.keep().nanos());
    let own = [quota.amount(), quota.overdraft(), quota.rollover(), quota.grant()];
    let counts = own.into_iter().chain([ask.least(), ask.cost()]);
    counts.for_each(|count| blob.count(count));
}

/// What a charge requests of slots.
const READ: u8 = 0;
const READ_FOR_NOTHING: u8 = 1;
const HOLD: u8 = 2;
const RENEW: u8 = 3;

fn encode_slots(limit: &Concurrency, ask: &Ask, blob: &mut Blob) {
    let (code, id) = match *ask {
        Ask::Hold(id) => (HOLD, id.0),
        Ask::Renew(id) => (RENEW, id.0),
        _ if ask.cost() == 0 => (READ_FOR_NOTHING, 0),
        _ => (READ, 0),
    };
    encode_ttl(limit, blob);
    blob.count(limit.slots());
    blob.byte(code);
    blob.raw(&id.to_be_bytes());
}

/// A slot's time to live in whole microseconds, rounded up: the resolution of the store's clock, and of a sorted set's
/// score for present-day times.
pub(super) fn encode_ttl(limit: &Concurrency, blob: &mut Blob) {
    blob.nanos(limit.ttl().nanos().div_ceil(1000).saturating_mul(1000));
}

/// Arguments up to this size, which is six charges, need no allocation.
const INLINE_BYTES: usize = 256;

/// Nanoseconds per second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// An argument being encoded.
#[derive(Debug, Default)]
pub(super) struct Blob(SmallVec<[u8; INLINE_BYTES]>);

impl Blob {
    pub(super) fn with_capacity(bytes: usize) -> Blob {
        Blob(SmallVec::with_capacity(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn short(&mut self, number: u16) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// A point in time or a span.
    pub(super) fn nanos(&mut self, nanos: u64) {
        self.wide_nanos(u128::from(nanos));
    }

    /// A sum of two spans, which may exceed 64 bits; it must stay below 2^40 seconds.
    pub(super) fn wide_nanos(&mut self, nanos: u128) {
        let (seconds, rest) = (nanos / u128::from(SECOND), nanos % u128::from(SECOND));
        let [a, b, c, d, e, ..] = (seconds as u64).to_le_bytes();
        self.0.extend_from_slice(&[a, b, c, d, e]);
        self.0.extend_from_slice(&(rest as u32).to_le_bytes());
    }

    /// A count, high half first.
    pub(super) fn count(&mut self, count: u64) {
        self.0.extend_from_slice(&((count >> 32) as u32).to_le_bytes());
        self.0.extend_from_slice(&(count as u32).to_le_bytes());
    }

    /// Raw bytes.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}
