//! Replies of scripts: their decoding, and the replay of the core's steps on the buckets that a script found.

use std::fmt;

use smallvec::SmallVec;
use tollgate_core::{
    Algorithm, Ask, Charge, Counter, Effect, Limit, LogSummary, NextFree, Outcome, QuotaUse, SlotsSummary, Source,
    Span, Tat, Time, Window,
};
use tollgate_resp::RespValue;
use tollgate_store::Taken;

use super::encode::SECOND;

/// The reply to a [`Batch`](super::Batch).
#[derive(Clone, Debug, PartialEq)]
pub enum BatchReply {
    /// It arrived after its deadline: nothing was charged.
    Expired {
        /// The store's time.
        now: Time,
    },
    /// It was decided.
    Answers {
        /// The store's time of the decision.
        now: Time,
        /// One per request, in order.
        answers: Vec<ScriptAnswer>,
        /// Number of requests that the script decided differently than the replay. The script's verdict counts, because
        /// it was charged; any disagreement is a bug.
        disagreed: u64,
        /// Values under our keys that were not buckets, and were replaced.
        foreign: u64,
    },
}

/// The answer to one request. Small, as the request is.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptAnswer {
    /// It was decided.
    Taken {
        /// The verdict.
        taken: Taken,
        /// One per charge, in order.
        outcomes: Vec<Outcome>,
        /// Number of buckets it created.
        made: u32,
    },
    /// Nothing was charged: the charges at these indexes have no bucket, and none may be created.
    NoRoom(SmallVec<[usize; 4]>),
}

/// The reply to [`Returns`](super::Returns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnReply {
    /// It arrived after its deadline: nothing was given back.
    Expired {
        /// The store's time.
        now: Time,
    },
    /// All receipts were processed.
    Done {
        /// The store's time.
        now: Time,
        /// How many gave something back.
        given: usize,
        /// Values under our keys that were not buckets, and were deleted.
        foreign: u64,
    },
}

/// A reply that does not fit its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadReply {
    /// The script rejected its arguments before it wrote anything. Otherwise it is unknown what was charged.
    pub charged_nothing: bool,
    /// What is wrong with it.
    pub detail: &'static str,
}

impl BadReply {
    pub(super) const fn strange(detail: &'static str) -> BadReply {
        BadReply { charged_nothing: false, detail }
    }
}

impl fmt::Display for BadReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.detail)
    }
}

impl std::error::Error for BadReply {}

/// A reply of any script: the time, then a word or the data of that script.
pub(super) enum OpenedReply<'a> {
    Expired(Time),
    Data(Time, &'a [RespValue]),
}

pub(super) fn open(reply: &RespValue) -> Result<OpenedReply<'_>, BadReply> {
    let Some([seconds, nanos, rest @ ..]) = reply.array() else {
        return Err(BadReply::strange("reply without the time"));
    };
    let now = time(seconds, nanos)?;
    match rest.first().and_then(RespValue::text) {
        None => Ok(OpenedReply::Data(now, rest)),
        Some(b"EXPIRED") => Ok(OpenedReply::Expired(now)),
        Some(b"ARGS") => Err(BadReply { charged_nothing: true, detail: "the script rejected its arguments" }),
        Some(_) => Err(BadReply::strange("unknown word in the reply of a script")),
    }
}

/// Number of foreign values, which is reported only if there are any.
pub(super) fn foreign(reported: Option<&RespValue>) -> Result<u64, BadReply> {
    let count = |value: &RespValue| value.integer().and_then(|count| u64::try_from(count).ok());
    reported.map_or(Ok(0), |value| count(value).ok_or(BadReply::strange("malformed number of foreign values")))
}

/// A time as seconds and nanoseconds.
pub(super) fn time(seconds: &RespValue, nanos: &RespValue) -> Result<Time, BadReply> {
    let part = |value: &RespValue| value.integer().and_then(|number| u64::try_from(number).ok());
    let (Some(seconds), Some(nanos)) = (part(seconds), part(nanos)) else {
        return Err(BadReply::strange("malformed time"));
    };
    Ok(Time::from_nanos(seconds.saturating_mul(SECOND).saturating_add(nanos)))
}

/// An optional time.
pub(super) fn maybe_time(seconds: &RespValue, nanos: &RespValue) -> Result<Option<Time>, BadReply> {
    if *seconds == RespValue::Nil { Ok(None) } else { time(seconds, nanos).map(Some) }
}

/// A count in two halves.
pub(super) fn count(high: &RespValue, low: &RespValue) -> Result<u64, BadReply> {
    let part = |value: &RespValue| value.integer().and_then(|number| u32::try_from(number).ok()).map(u64::from);
    match (part(high), part(low)) {
        (Some(high), Some(low)) => Ok(high << 32 | low),
        _ => Err(BadReply::strange("malformed count")),
    }
}

/// The value of one bucket in the reply of a script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BucketValue {
    Gcra(Tat),
    Queue(NextFree),
    Window(Window),
    Counter(Counter),
    Quota(QuotaUse),
    /// The script decided and recorded; this is the state afterwards.
    Log(ScriptView<LogSummary>),
    Slots(ScriptView<SlotsSummary>),
    /// Not reported.
    NotReported,
}

/// What a script reports of a bucket whose value it does not return.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScriptView<S> {
    admits: bool,
    granted: u64,
    made: bool,
    summary: S,
}

/// Calls a method of the algorithm on its state; `$reported` for a bucket whose value was not returned.
macro_rules! dispatch {
    ($limit:expr, $held:expr, |$algorithm:ident, $state:ident| $call:expr, $reported:expr) => {
        match ($limit, $held) {
            (Limit::Gcra($algorithm), BucketValue::Gcra($state)) => $call,
            (Limit::Queue($algorithm), BucketValue::Queue($state)) => $call,
            (Limit::FixedWindow($algorithm), BucketValue::Window($state)) => $call,
            (Limit::SlidingCounter($algorithm), BucketValue::Counter($state)) => $call,
            (Limit::Quota($algorithm), BucketValue::Quota($state)) => $call,
            _ => $reported,
        }
    };
}

impl BucketValue {
    /// The bucket in the value of a key; unused if the key is absent.
    pub(crate) fn read(limit: &Limit, value: &RespValue) -> Result<BucketValue, BadReply> {
        let bytes = value.text();
        Ok(match limit {
            Limit::Gcra(_) => BucketValue::Gcra(Tat(arrival(bytes)?)),
            Limit::Queue(_) => BucketValue::Queue(NextFree(arrival(bytes)?)),
            Limit::FixedWindow(_) => {
                let (end, [count, _]) = counts(bytes, 1)?;
                BucketValue::Window(Window { end, count })
            }
            Limit::SlidingCounter(_) => {
                let (end, [prev, cur]) = counts(bytes, 2)?;
                BucketValue::Counter(Counter::new(end, prev, cur, limit.window()))
            }
            Limit::Quota(_) => BucketValue::Quota(quota_use(bytes)?),
            Limit::SlidingLog(_) => BucketValue::Log(ScriptView::read_log(value)?),
            Limit::Concurrency(_) => BucketValue::Slots(ScriptView::read_slots(value)?),
        })
    }

    pub(super) fn admits(&self, limit: &Limit, now: Time, ask: &Ask) -> bool {
        let reported = match self {
            BucketValue::Log(reported) => reported.admits,
            BucketValue::Slots(reported) => reported.admits,
            _ => false,
        };
        dispatch!(limit, self, |algorithm, state| algorithm.admits(state, now, ask), reported)
    }

    fn record(&mut self, limit: &Limit, now: Time, ask: &Ask, effect: Effect) -> u64 {
        dispatch!(limit, self, |algorithm, state| algorithm.record(state, now, ask, effect), 0)
    }

    pub(crate) fn view(&self, limit: &Limit, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Option<Outcome> {
        let reported = match (limit, self) {
            (Limit::SlidingLog(log), BucketValue::Log(reported)) => {
                Some(log.outcome_from(&reported.summary, now, ask, allowed, granted))
            }
            (Limit::Concurrency(slots), BucketValue::Slots(reported)) => {
                Some(slots.outcome_from(&reported.summary, now, ask, allowed, granted))
            }
            _ => None,
        };
        dispatch!(limit, self, |algorithm, state| Some(algorithm.view(state, now, ask, allowed, granted)), reported)
    }

    /// Whether the ask would pass after all that was recorded.
    fn would_admit(&self, limit: &Limit, now: Time, ask: &Ask) -> bool {
        match (limit, self) {
            (Limit::SlidingLog(log), BucketValue::Log(reported)) => {
                log.most_before(ask).is_some_and(|most| reported.summary.used <= most)
            }
            _ => self.admits(limit, now, ask),
        }
    }

    /// True if the script created the bucket.
    pub(super) fn is_made(&self) -> bool {
        match self {
            BucketValue::Log(reported) => reported.made,
            BucketValue::Slots(reported) => reported.made,
            _ => false,
        }
    }

    /// Records the decision and returns the resulting view: what `tollgate-store` does in memory.
    pub(super) fn settle(
        &mut self,
        charge: &Charge,
        deciding: &Limit,
        now: Time,
        passes: bool,
        admits: bool,
    ) -> Option<Outcome> {
        let ask = &charge.ask;
        let granted = match self {
            BucketValue::Log(reported) => reported.granted,
            BucketValue::Slots(reported) => reported.granted,
            _ => charge.effect(passes, admits).map_or(0, |effect| self.record(deciding, now, ask, effect)),
        };
        let mut outcome = self.view(&charge.limit, now, ask, admits, granted)?;
        // Counted although another charge denied: the next attempt finds the bucket with this count.
        let counted = charge.count_denied && admits && !passes && granted > 0;
        if counted && !self.would_admit(&charge.limit, now, ask) {
            outcome.wait = self.view(&charge.limit, now, ask, false, granted)?.wait;
        }
        if charge.owner.is_overflowing() {
            outcome.source = Source::Overflow;
        }
        Some(outcome)
    }
}

impl<S> ScriptView<S> {
    /// `{ admits, made, granted high, granted low, the summary … }`
    fn read(
        value: &RespValue,
        see: impl FnOnce(&[RespValue]) -> Result<S, BadReply>,
    ) -> Result<ScriptView<S>, BadReply> {
        let Some([admits, made, high, low, rest @ ..]) = value.array() else {
            return Err(BadReply::strange("a bucket is missing in the reply"));
        };
        let is_set = |value: &RespValue| value.integer() == Some(1);
        Ok(ScriptView { admits: is_set(admits), made: is_set(made), granted: count(high, low)?, summary: see(rest)? })
    }
}

impl ScriptView<LogSummary> {
    fn read_log(value: &RespValue) -> Result<ScriptView<LogSummary>, BadReply> {
        ScriptView::read(value, |fields| {
            let [high, low, at, at_nanos, frees, frees_nanos, next, next_nanos, newest, newest_nanos] = fields else {
                return Err(BadReply::strange("malformed log"));
            };
            Ok(LogSummary {
                used: count(high, low)?,
                at: time(at, at_nanos)?,
                frees: maybe_time(frees, frees_nanos)?,
                next: maybe_time(next, next_nanos)?,
                newest: maybe_time(newest, newest_nanos)?,
            })
        })
    }
}

impl ScriptView<SlotsSummary> {
    fn read_slots(value: &RespValue) -> Result<ScriptView<SlotsSummary>, BadReply> {
        ScriptView::read(value, |fields| {
            let [in_use, frees, newest] = fields else {
                return Err(BadReply::strange("malformed slots"));
            };
            let number = |value: &RespValue| value.integer().and_then(|number| u64::try_from(number).ok());
            let micros = |value: &RespValue| number(value).map(|micros| Time::from_nanos(micros.saturating_mul(1000)));
            let in_use = number(in_use).ok_or(BadReply::strange("malformed number of slots"))?;
            Ok(SlotsSummary { in_use, frees: micros(frees), newest: micros(newest) })
        })
    }
}

/// Decimal nanoseconds.
fn arrival(bytes: Option<&[u8]>) -> Result<Time, BadReply> {
    let Some(bytes) = bytes else { return Ok(Time::ZERO) };
    let nanos = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
    nanos.map(Time::from_nanos).ok_or(BadReply::strange("malformed arrival time"))
}

/// The end of a window in nine bytes, then one or two counts of four or eight bytes; a single small count takes three.
pub(crate) fn counts(bytes: Option<&[u8]>, many: usize) -> Result<(Time, [u64; 2]), BadReply> {
    let Some(bytes) = bytes else { return Ok((Time::ZERO, [0; 2])) };
    let strange = BadReply::strange("malformed window");
    let (end, rest) = bytes.split_at_checked(9).ok_or(strange)?;
    let (seconds, nanos) = end.split_at_checked(5).ok_or(strange)?;
    let end = number(seconds).saturating_mul(SECOND).saturating_add(number(nanos));
    let mut counts = [0; 2];
    let width = match rest.len() {
        3 if many == 1 => 3,
        length if length == 4 * many => 4,
        length if length == 8 * many => 8,
        _ => return Err(strange),
    };
    for (count, bytes) in counts.iter_mut().zip(rest.chunks(width)) {
        let (first, second) = bytes.split_at(bytes.len().min(4));
        *count = if second.is_empty() { number(first) } else { number(first) << 32 | number(second) };
    }
    Ok((Time::from_nanos(end), counts))
}

/// The end of a period in nine bytes, units used and carried in eight each, and how long it is kept in nine.
fn quota_use(bytes: Option<&[u8]>) -> Result<QuotaUse, BadReply> {
    let Some(bytes) = bytes else { return Ok(QuotaUse::default()) };
    let strange = BadReply::strange("malformed quota");
    let mut rest = bytes;
    let mut part = |length: usize| {
        let (first, after) = rest.split_at_checked(length).ok_or(strange)?;
        rest = after;
        Ok(number(first))
    };
    let end = part(5)?.saturating_mul(SECOND).saturating_add(part(4)?);
    let used = part(4)? << 32 | part(4)?;
    let carried = part(4)? << 32 | part(4)?;
    let keep = part(5)?.saturating_mul(SECOND).saturating_add(part(4)?);
    match rest {
        [] => Ok(QuotaUse::new(Time::from_nanos(end), used, carried, Span::from_nanos(keep))),
        _ => Err(strange),
    }
}

/// Little-endian, of at most eight bytes.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
