//! Requests decided by one script call.

use smallvec::SmallVec;
use tollgate_core::{Charge, Digest, Limit, Time};
use tollgate_resp::RespValue;
use tollgate_store::Taken;

use super::blob::Blob;
use super::call::{Script, ScriptCall};
use super::charge::{self, ChargePosition};
use super::reply::{self, BadReply, BatchReply, OpenedReply, ScriptAnswer};
use super::state::BucketValue;
use crate::store::key::BucketKey;

/// Charges per call: more would block the server for too long.
const CHARGES_MAX: usize = 192;
/// Approximate size of an encoded charge.
const CHARGE_BYTES: usize = 36;
/// Approximate size of a bucket in the reply: fourteen numbers.
const REPLY_BYTES: usize = 256;
/// Marks a request as already denied, besides its number of charges.
const REFUSED: u16 = 1 << 15;
/// Verdicts are digits to this base, this many per number: a number stays below 2^53.
const VERDICT_BASE: i64 = 4;
const VERDICTS_PER_NUMBER: usize = 24;

/// The charges of one request in one slot. Small because it is moved often: the charges are on the heap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptRequest {
    /// The charges; no two name the same bucket.
    pub charges: Vec<Charge>,
    /// Another slot has denied the request: only forced charges and those that count denied requests are recorded.
    pub refused: bool,
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
    places: SmallVec<[u16; 8]>,
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
    Refused,
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
            places: SmallVec::new(),
            is_gcra: true,
            is_closed: false,
        }
    }

    /// Adds a request, or returns it if it belongs into another call. An empty batch takes every request.
    pub fn try_push(&mut self, request: ScriptRequest) -> Result<(), ScriptRequest> {
        let is_alone = !request.charges.iter().all(|charge| charge::is_string(&charge.limit));
        let is_too_long = self.places.len() + request.charges.len() > CHARGES_MAX;
        if !self.requests.is_empty() && (self.is_closed || is_alone || is_too_long || self.is_other(&request)) {
            return Err(request);
        }
        for charge in &request.charges {
            let place = self.place(charge);
            self.places.push(place);
            self.is_gcra &= charge::kind(&charge.limit) == charge::ARRIVAL;
        }
        self.is_closed |= is_alone;
        self.requests.push(request);
        Ok(())
    }

    /// True if the batch holds a bucket of the request under another algorithm: its value would be misread.
    fn is_other(&self, request: &ScriptRequest) -> bool {
        let differs = |charge: &Charge| {
            let bucket = self.find(charge).and_then(|place| self.buckets.get(place));
            bucket.is_some_and(|bucket| bucket.limit.kind() != charge.limit.kind())
        };
        request.charges.iter().any(differs)
    }

    fn find(&self, charge: &Charge) -> Option<usize> {
        // Compare digests first: they differ for almost all buckets and need no computation.
        let is_it = |bucket: &Bucket| bucket.digest == charge.bucket && bucket.key == BucketKey::of(charge);
        self.buckets.iter().position(is_it)
    }

    fn place(&mut self, charge: &Charge) -> u16 {
        let place = self.find(charge).unwrap_or_else(|| {
            self.buckets.push(Bucket { digest: charge.bucket, limit: charge.limit, key: BucketKey::of(charge) });
            self.buckets.len() - 1
        });
        place as u16 // far fewer than 2^16: a request has few charges, a batch at most CHARGES_MAX
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
        let mut blob = Blob::with_capacity(9 + CHARGE_BYTES * self.places.len());
        blob.nanos(self.deadline.nanos());
        let mut places = self.places.iter();
        for request in &self.requests {
            let many = request.charges.len() as u16;
            let mut opens = if request.refused { many | REFUSED } else { many };
            for (charge, key) in request.charges.iter().zip(&mut places) {
                let place = ChargePosition { opens, key: key + 1, full: request.full, estimate: self.estimate };
                match charge.soft {
                    None => charge::encode(charge, &charge.limit, place, &mut blob),
                    Some(_) => charge::encode(charge, &charge.limit_at(self.estimate), place, &mut blob),
                }
                opens = 0;
            }
        }
        call.encode(self.script(), self.buckets.iter().map(|bucket| bucket.key.bytes()), blob.bytes(), out);
    }

    /// Reads the reply, and replays what the script did from the values it found.
    pub fn decode(&self, reply: &RespValue) -> Result<BatchReply, BadReply> {
        let (now, told) = match reply::open(reply)? {
            OpenedReply::Expired(now) => return Ok(BatchReply::Expired { now }),
            OpenedReply::Told(now, told) => (now, told),
        };
        let [verdicts, values, rest @ ..] = told else {
            return Err(BadReply::strange("reply without verdicts or values"));
        };
        let foreign = reply::foreign(rest.first())?;
        let (Some(verdicts), Some(values)) = (verdicts.array(), values.array()) else {
            return Err(BadReply::strange("reply without verdicts or values"));
        };
        let mut replay = Replay::new(self, now, values)?;
        let mut verdicts = Verdicts { numbers: verdicts, asked: self.asked(), told: 0 };
        let answers = self.requests.iter().map(|request| match request.charges.is_empty() {
            true => Ok(nothing_asked(request, now)),
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

fn nothing_asked(request: &ScriptRequest, now: Time) -> ScriptAnswer {
    ScriptAnswer::Taken { taken: Taken::new(!request.refused, now), outcomes: Vec::new(), made: 0 }
}

/// The verdicts, decoded from the numbers that carry them: the first is the highest digit of the first number.
struct Verdicts<'a> {
    numbers: &'a [RespValue],
    asked: usize,
    told: usize,
}

impl Verdicts<'_> {
    fn next(&mut self) -> Result<Verdict, BadReply> {
        let strange = BadReply::strange("malformed verdict");
        let (number, digit) = (self.told / VERDICTS_PER_NUMBER, self.told % VERDICTS_PER_NUMBER);
        let digits = (self.asked - number * VERDICTS_PER_NUMBER).min(VERDICTS_PER_NUMBER);
        let number = self.numbers.get(number).and_then(RespValue::integer).ok_or(strange)?;
        self.told += 1;
        match number / VERDICT_BASE.pow((digits - 1 - digit) as u32) % VERDICT_BASE {
            0 => Ok(Verdict::Refused),
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
    places: std::slice::Iter<'a, u16>,
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
            let is_untold = *value == RespValue::Nil || value.array().is_some_and(<[RespValue]>::is_empty);
            match charge::is_string(&bucket.limit) || !is_untold {
                true => Ok((BucketValue::read(&bucket.limit, value)?, existence)),
                false => Ok((BucketValue::Untold, existence)),
            }
        });
        let held = held.collect::<Result<_, BadReply>>()?;
        Ok(Replay { batch, now, held, places: batch.places.iter(), disagreed: 0 })
    }

    fn answer(&mut self, request: &ScriptRequest, verdict: Verdict) -> Result<ScriptAnswer, BadReply> {
        let places: SmallVec<[usize; 4]> =
            self.places.by_ref().take(request.charges.len()).map(|place| usize::from(*place)).collect();
        if verdict == Verdict::NoRoom {
            return Ok(ScriptAnswer::NoRoom(self.without_bucket(request, &places)));
        }
        let now = self.now;
        let deciding = |charge: &Charge| match charge.soft {
            None => charge.limit,
            Some(_) => charge.limit_at(self.batch.estimate),
        };
        let strange = BadReply::strange("a bucket is missing in the reply");
        let mut admits: SmallVec<[bool; 4]> = SmallVec::new();
        for (charge, place) in request.charges.iter().zip(&places) {
            let (held, _) = self.held.get(*place).ok_or(strange)?;
            admits.push(held.admits(&deciding(charge), now, &charge.ask));
        }
        let allowed = verdict == Verdict::Passed;
        let agreed = request.charges.iter().zip(&admits).all(|(charge, admits)| *admits || !charge.is_enforced());
        self.disagreed += u64::from((agreed && !request.refused) != allowed);
        let (mut outcomes, mut made) = (Vec::with_capacity(request.charges.len()), 0);
        for ((charge, place), admits) in request.charges.iter().zip(&places).zip(admits) {
            let (held, existence) = self.held.get_mut(*place).ok_or(strange)?;
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
    fn without_bucket(&self, request: &ScriptRequest, places: &[usize]) -> SmallVec<[usize; 4]> {
        let lacks = |(charge, place): &(&Charge, &usize)| {
            let held = self.held.get(**place);
            charge::needs_bucket(charge) && held.is_some_and(|(_, existence)| *existence == Existence::Absent)
        };
        let lacking = request.charges.iter().zip(places).enumerate().filter(|(_, pair)| lacks(pair));
        lacking.map(|(place, _)| place).collect()
    }
}
