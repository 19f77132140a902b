//! Requests decided by one script call.

use smallvec::SmallVec;
use tollgate_core::{Charge, Digest, Limit, Time};
use tollgate_resp::RespValue;
use tollgate_store::Taken;

use super::encode::{self, Blob, ChargePosition, ScriptCall};
use super::lua::Script;
use super::reply::{self, BadReply, BatchReply, BucketValue, OpenedReply, ScriptAnswer};
use crate::store::key::BucketKey;

/// Charges per call: more would block the server for too long.
const CHARGES_MAX: usize = 192;
/// Approximate size of an encoded charge.
const CHARGE_BYTES: usize = 36;
/// Approximate size of a bucket in the reply: fourteen numbers.
const REPLY_BYTES: usize = 256;
/// Marks a request as already denied, besides its number of charges.
const DENIED: u16 = 1 << 15;
/// Verdicts are digits to this base, this many per number: a number stays below 2^53.
const VERDICT_BASE: i64 = 4;
const VERDICTS_PER_NUMBER: usize = 24;

/// The charges of one request in one slot. Small because it is moved often: the charges are on the heap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptRequest {
    /// The charges; no two name the same bucket.
    pub charges: Vec<Charge>,
    /// Another slot has denied the request: only forced charges and those that count denied requests are recorded.
    pub denied: bool,
    /// No bucket may be created. A charge that needs one, and is not on an overflow bucket, is answered with
    /// [`ScriptAnswer::NoRoom`].
    pub full: bool,
}

/// Requests decided by one script call, in order, each all or nothing.
#[derive(Debug)]
pub struct Batch {
    deadline: Time,
    estimate: Time,
    requests: SmallVec<[ScriptRequest; 1]>,
    buckets: Vec<Bucket>,
    /// The index of the bucket of each charge, in order.
    indexes: SmallVec<[u16; 8]>,
    /// All limits are token buckets or queues.
    is_gcra: bool,
    /// It holds a request that must be alone in its call.
    is_closed: bool,
}

/// A bucket of the call; several charges may share it.
#[derive(Debug)]
struct Bucket {
    digest: Digest,
    /// The limit of its first charge.
    limit: Limit,
    key: BucketKey,
}

/// The verdict of the script on one request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Denied,
    Passed,
    NoRoom,
}

impl Batch {
    /// An empty batch. Both times are by the store's clock: after `deadline` nothing is charged; `estimate` is about
    /// now, and decides the random part of soft limits.
    pub fn new(deadline: Time, estimate: Time) -> Batch {
        Batch {
            deadline,
            estimate,
            requests: SmallVec::new(),
            buckets: Vec::new(),
            indexes: SmallVec::new(),
            is_gcra: true,
            is_closed: false,
        }
    }

    /// Adds a request, or returns it if it belongs into another call. An empty batch takes every request.
    pub fn try_push(&mut self, request: ScriptRequest) -> Result<(), ScriptRequest> {
        let is_alone = !request.charges.iter().all(|charge| encode::is_string(&charge.limit));
        let is_too_long = self.indexes.len() + request.charges.len() > CHARGES_MAX;
        if !self.requests.is_empty() && (self.is_closed || is_alone || is_too_long || self.is_other(&request)) {
            return Err(request);
        }
        for charge in &request.charges {
            let index = self.index_of(charge);
            self.indexes.push(index);
            self.is_gcra &= encode::kind(&charge.limit) == encode::ARRIVAL;
        }
        self.is_closed |= is_alone;
        self.requests.push(request);
        Ok(())
    }

    /// True if the batch holds a bucket of the request under another algorithm: its value would be misread.
    fn is_other(&self, request: &ScriptRequest) -> bool {
        let differs = |charge: &Charge| {
            let bucket = self.find(charge).and_then(|index| self.buckets.get(index));
            bucket.is_some_and(|bucket| bucket.limit.kind() != charge.limit.kind())
        };
        request.charges.iter().any(differs)
    }

    fn find(&self, charge: &Charge) -> Option<usize> {
        // Compare digests first: they differ for almost all buckets and need no computation.
        let is_it = |bucket: &Bucket| bucket.digest == charge.bucket && bucket.key == BucketKey::of(charge);
        self.buckets.iter().position(is_it)
    }

    fn index_of(&mut self, charge: &Charge) -> u16 {
        let index = self.find(charge).unwrap_or_else(|| {
            self.buckets.push(Bucket { digest: charge.bucket, limit: charge.limit, key: BucketKey::of(charge) });
            self.buckets.len() - 1
        });
        index as u16 // far fewer than 2^16: a request has few charges, a batch at most CHARGES_MAX
    }

    /// The script that decides it.
    pub fn script(&self) -> Script {
        if self.is_gcra { Script::Gcra } else { Script::Mixed }
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// True without requests.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The requests, in order.
    pub fn requests(&self) -> &[ScriptRequest] {
        &self.requests
    }

    /// Returns the requests, to send them in another way.
    pub fn into_requests(self) -> Vec<ScriptRequest> {
        self.requests.into_vec()
    }

    /// Approximate size of the reply: a verdict per request, and the buckets.
    pub fn reply_bytes(&self) -> usize {
        2 * self.requests.len() + REPLY_BYTES * self.buckets.len()
    }

    /// Appends the command.
    pub fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let mut blob = Blob::with_capacity(9 + CHARGE_BYTES * self.indexes.len());
        blob.nanos(self.deadline.nanos());
        let mut indexes = self.indexes.iter();
        for request in &self.requests {
            let many = request.charges.len() as u16;
            let mut opens = if request.denied { many | DENIED } else { many };
            for (charge, key) in request.charges.iter().zip(&mut indexes) {
                let position = ChargePosition { opens, key: key + 1, full: request.full, estimate: self.estimate };
                match charge.soft {
                    None => encode::encode_charge(charge, &charge.limit, position, &mut blob),
                    Some(_) => encode::encode_charge(charge, &charge.limit_at(self.estimate), position, &mut blob),
                }
                opens = 0;
            }
        }
        call.encode(self.script(), self.buckets.iter().map(|bucket| bucket.key.bytes()), blob.bytes(), out);
    }

    /// Reads the reply, and replays what the script did from the values it found.
    pub fn decode(&self, reply: &RespValue) -> Result<BatchReply, BadReply> {
        let (now, data) = match reply::open(reply)? {
            OpenedReply::Expired(now) => return Ok(BatchReply::Expired { now }),
            OpenedReply::Data(now, data) => (now, data),
        };
        let [verdicts, values, rest @ ..] = data else {
            return Err(BadReply::strange("reply without verdicts or values"));
        };
        let foreign = reply::foreign(rest.first())?;
        let (Some(verdicts), Some(values)) = (verdicts.array(), values.array()) else {
            return Err(BadReply::strange("reply without verdicts or values"));
        };
        let mut replay = Replay::new(self, now, values)?;
        let mut verdicts = Verdicts { numbers: verdicts, asked: self.asked(), read: 0 };
        let answers = self.requests.iter().map(|request| match request.charges.is_empty() {
            true => Ok(without_charges(request, now)),
            false => replay.answer(request, verdicts.next()?),
        });
        let answers = answers.collect::<Result<Vec<ScriptAnswer>, BadReply>>()?;
        Ok(BatchReply::Answers { now, answers, disagreed: replay.disagreed, foreign })
    }

    /// Number of requests that the script sees.
    fn asked(&self) -> usize {
        self.requests.iter().filter(|request| !request.charges.is_empty()).count()
    }
}

fn without_charges(request: &ScriptRequest, now: Time) -> ScriptAnswer {
    ScriptAnswer::Taken { taken: Taken::new(!request.denied, now), outcomes: Vec::new(), made: 0 }
}

/// The verdicts, decoded from the numbers that carry them: the first is the highest digit of the first number.
struct Verdicts<'a> {
    numbers: &'a [RespValue],
    asked: usize,
    read: usize,
}

impl Verdicts<'_> {
    fn next(&mut self) -> Result<Verdict, BadReply> {
        let strange = BadReply::strange("malformed verdict");
        let (number, digit) = (self.read / VERDICTS_PER_NUMBER, self.read % VERDICTS_PER_NUMBER);
        let digits = (self.asked - number * VERDICTS_PER_NUMBER).min(VERDICTS_PER_NUMBER);
        let number = self.numbers.get(number).and_then(RespValue::integer).ok_or(strange)?;
        self.read += 1;
        match number / VERDICT_BASE.pow((digits - 1 - digit) as u32) % VERDICT_BASE {
            0 => Ok(Verdict::Denied),
            1 => Ok(Verdict::Passed),
            2 => Ok(Verdict::NoRoom),
            _ => Err(strange),
        }
    }
}

/// Replays the steps of the script on the buckets as it found them.
struct Replay<'a> {
    batch: &'a Batch,
    now: Time,
    held: Vec<(BucketValue, Existence)>,
    indexes: std::slice::Iter<'a, u16>,
    disagreed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Existence {
    Absent,
    There,
}

impl<'a> Replay<'a> {
    fn new(batch: &'a Batch, now: Time, values: &[RespValue]) -> Result<Replay<'a>, BadReply> {
        if values.len() != batch.buckets.len() {
            return Err(BadReply::strange("unexpected number of buckets"));
        }
        let held = batch.buckets.iter().zip(values).map(|(bucket, value)| {
            let existence = if *value == RespValue::Nil { Existence::Absent } else { Existence::There };
            // For a request without room the script reports only which logs and slots exist.
            let is_unreported = *value == RespValue::Nil || value.array().is_some_and(<[RespValue]>::is_empty);
            match encode::is_string(&bucket.limit) || !is_unreported {
                true => Ok((BucketValue::read(&bucket.limit, value)?, existence)),
                false => Ok((BucketValue::NotReported, existence)),
            }
        });
        let held = held.collect::<Result<_, BadReply>>()?;
        Ok(Replay { batch, now, held, indexes: batch.indexes.iter(), disagreed: 0 })
    }

    fn answer(&mut self, request: &ScriptRequest, verdict: Verdict) -> Result<ScriptAnswer, BadReply> {
        let indexes: SmallVec<[usize; 4]> =
            self.indexes.by_ref().take(request.charges.len()).map(|index| usize::from(*index)).collect();
        if verdict == Verdict::NoRoom {
            return Ok(ScriptAnswer::NoRoom(self.without_bucket(request, &indexes)));
        }
        let now = self.now;
        let deciding = |charge: &Charge| match charge.soft {
            None => charge.limit,
            Some(_) => charge.limit_at(self.batch.estimate),
        };
        let strange = BadReply::strange("a bucket is missing in the reply");
        let mut admits: SmallVec<[bool; 4]> = SmallVec::new();
        for (charge, index) in request.charges.iter().zip(&indexes) {
            let (held, _) = self.held.get(*index).ok_or(strange)?;
            admits.push(held.admits(&deciding(charge), now, &charge.ask));
        }
        let allowed = verdict == Verdict::Passed;
        let agreed = request.charges.iter().zip(&admits).all(|(charge, admits)| *admits || !charge.is_enforced());
        self.disagreed += u64::from((agreed && !request.denied) != allowed);
        let (mut outcomes, mut made) = (Vec::with_capacity(request.charges.len()), 0);
        for ((charge, index), admits) in request.charges.iter().zip(&indexes).zip(admits) {
            let (held, existence) = self.held.get_mut(*index).ok_or(strange)?;
            let before = *held;
            let outcome = held.settle(charge, &deciding(charge), now, allowed, admits).ok_or(strange)?;
            if *existence == Existence::Absent && *held != before {
                *existence = Existence::There;
                made += 1;
            }
            made += u32::from(held.is_made());
            outcomes.push(outcome);
        }
        Ok(ScriptAnswer::Taken { taken: Taken::new(allowed, now), outcomes, made })
    }

    /// Indexes of the charges that have no bucket and need one.
    fn without_bucket(&self, request: &ScriptRequest, indexes: &[usize]) -> SmallVec<[usize; 4]> {
        let lacks = |(charge, index): &(&Charge, &usize)| {
            let held = self.held.get(**index);
            encode::needs_bucket(charge) && held.is_some_and(|(_, existence)| *existence == Existence::Absent)
        };
        let lacking = request.charges.iter().zip(indexes).enumerate().filter(|(_, pair)| lacks(pair));
        lacking.map(|(index, _)| index).collect()
    }
}
