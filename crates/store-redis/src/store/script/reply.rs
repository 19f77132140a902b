//! What comes back.

use std::fmt;

use smallvec::SmallVec;
use tollgate_core::{Outcome, Time};
use tollgate_resp::RespValue;
use tollgate_store::Taken;

use super::blob::SECOND;

/// The answer to a [`Batch`](super::Batch).
#[derive(Clone, Debug, PartialEq)]
pub enum BatchReply {
    /// It came too late: nothing was charged.
    Expired {
        /// The store's time.
        now: Time,
    },
    /// It was decided.
    Answers {
        /// The store's time of the decision.
        now: Time,
        /// One per question, in order.
        answers: Vec<ScriptAnswer>,
        /// Questions that the script decided otherwise than the replay of its inputs. The script's word stands, because
        /// that is what was charged; more than none is a bug.
        disagreed: u64,
        /// Values under keys of ours that were no buckets, and were replaced.
        foreign: u64,
    },
}

/// The answer to one question. Small, as the question is.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptAnswer {
    /// It was decided.
    Taken {
        /// The verdict.
        taken: Taken,
        /// One per charge, in order.
        outcomes: Vec<Outcome>,
        /// Buckets that it made.
        made: u32,
    },
    /// Nothing was charged, because the charges at these places have no bucket and none may be made.
    NoRoom(SmallVec<[usize; 4]>),
}

/// The answer to [`Returns`](super::Returns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnReply {
    /// It came too late: nothing was given back.
    Expired {
        /// The store's time.
        now: Time,
    },
    /// All receipts were looked at.
    Done {
        /// The store's time.
        now: Time,
        /// How many gave something back.
        given: usize,
        /// Values under keys of ours that were no buckets, and were deleted.
        foreign: u64,
    },
}

/// Not an answer to what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadReply {
    /// The script itself said no, before it wrote anything. Otherwise nobody knows what was charged.
    pub charged_nothing: bool,
    /// What is wrong with it, for people.
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

/// A reply of any script: the time, then either a word or what that script tells.
pub(super) enum OpenedReply<'a> {
    Expired(Time),
    Told(Time, &'a [RespValue]),
}

pub(super) fn open(reply: &RespValue) -> Result<OpenedReply<'_>, BadReply> {
    let Some([seconds, nanos, rest @ ..]) = reply.array() else {
        return Err(BadReply::strange("a reply without the time"));
    };
    let now = time(seconds, nanos)?;
    match rest.first().and_then(RespValue::text) {
        None => Ok(OpenedReply::Told(now, rest)),
        Some(b"EXPIRED") => Ok(OpenedReply::Expired(now)),
        Some(b"ARGS") => Err(BadReply { charged_nothing: true, detail: "the script refused its arguments" }),
        Some(_) => Err(BadReply::strange("a word that no script of ours says")),
    }
}

/// How many foreign values were found, which is told only if there were any.
pub(super) fn foreign(told: Option<&RespValue>) -> Result<u64, BadReply> {
    let count = |value: &RespValue| value.integer().and_then(|count| u64::try_from(count).ok());
    told.map_or(Ok(0), |value| count(value).ok_or(BadReply::strange("not a number of foreign values")))
}

/// A time that a script told as seconds and nanoseconds.
pub(super) fn time(seconds: &RespValue, nanos: &RespValue) -> Result<Time, BadReply> {
    let part = |value: &RespValue| value.integer().and_then(|number| u64::try_from(number).ok());
    let (Some(seconds), Some(nanos)) = (part(seconds), part(nanos)) else {
        return Err(BadReply::strange("a time that is none"));
    };
    Ok(Time::from_nanos(seconds.saturating_mul(SECOND).saturating_add(nanos)))
}

/// The same where there may be none.
pub(super) fn maybe_time(seconds: &RespValue, nanos: &RespValue) -> Result<Option<Time>, BadReply> {
    if *seconds == RespValue::Nil { Ok(None) } else { time(seconds, nanos).map(Some) }
}

/// A count that a script told as two halves.
pub(super) fn count(high: &RespValue, low: &RespValue) -> Result<u64, BadReply> {
    let part = |value: &RespValue| value.integer().and_then(|number| u32::try_from(number).ok()).map(u64::from);
    match (part(high), part(low)) {
        (Some(high), Some(low)) => Ok(high << 32 | low),
        _ => Err(BadReply::strange("a count that is none")),
    }
}
