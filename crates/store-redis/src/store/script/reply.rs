//! Replies of scripts.

use std::fmt;

use smallvec::SmallVec;
use tollgate_core::{Outcome, Time};
use tollgate_resp::RespValue;
use tollgate_store::Taken;

use super::blob::SECOND;

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
    /// The script refused its arguments before it wrote anything. Otherwise it is unknown what was charged.
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
    Told(Time, &'a [RespValue]),
}

pub(super) fn open(reply: &RespValue) -> Result<OpenedReply<'_>, BadReply> {
    let Some([seconds, nanos, rest @ ..]) = reply.array() else {
        return Err(BadReply::strange("reply without the time"));
    };
    let now = time(seconds, nanos)?;
    match rest.first().and_then(RespValue::text) {
        None => Ok(OpenedReply::Told(now, rest)),
        Some(b"EXPIRED") => Ok(OpenedReply::Expired(now)),
        Some(b"ARGS") => Err(BadReply { charged_nothing: true, detail: "the script refused its arguments" }),
        Some(_) => Err(BadReply::strange("unknown word in the reply of a script")),
    }
}

/// Number of foreign values, which is reported only if there are any.
pub(super) fn foreign(told: Option<&RespValue>) -> Result<u64, BadReply> {
    let count = |value: &RespValue| value.integer().and_then(|count| u64::try_from(count).ok());
    told.map_or(Ok(0), |value| count(value).ok_or(BadReply::strange("malformed number of foreign values")))
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
