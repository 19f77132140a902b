//! Questions that are decided by one call.

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

/// A call of more charges would keep the server from drain_all else for too long.
const CHARGES_MAX: usize = 192;
/// A charge is about this many bytes.
const CHARGE_BYTES: usize = 36;
/// What is told of a bucket takes at most about this many bytes: fourteen numbers.
const REPLY_BYTES: usize = 256;
/// Says that a question is refused already, beside its number of charges.
const REFUSED: u16 = 1 << 15;
/// Verdicts are told as digits to this base, this many to a number: it stays below 2^53.
const VERDICT_BASE: i64 = 4;
const VERDICTS_PER_NUMBER: usize = 24;

/// The charges of one request that live in one slot. Small, because it goes from hand to hand: what is large lies
/// behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptRequest {
    /// The charges; no two name the same bucket.
    pub charges: Vec<Charge>,
    /// Another slot has refused already: only forced charges and those that count refusals are recorded.
    pub refused: bool,
    /// No new bucket may be made. A charge that would need one, and is not on an overflow bucket, is answered with
    /// [`ScriptAnswer::NoRoom`].
    pub full: bool,
}

/// Questions decided by one script call, in order, each all or nothing.
#[derive(Debug)]
pub struct Batch {
    deadline: Time,
    estimate: Time,
    questions: Vec<ScriptRequest>,
    buckets: Vec<Bucket>,
    /// For each charge of all questions, in order, the place of its bucket.
    places: Vec<u16>,
    /// Every limit is a token bucket or a queue.
    is_gcra: bool,
    /// Somebody is in it who must be alone.
    is_closed: bool,
}

/// A bucket that the call names, however often.
#[derive(Debug)]
struct Bucket {
    digest: Digest,
    /// The first limit that named it.
    limit: Limit,
    key: BucketKey,
}

/// What the script says of one question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Refused,
    Passed,
    NoRoom,
}

impl Batch {
    /// An empty batch. Both times are by the store's clock: after `deadline` nothing is charged; `estimate` is about
    /// now, and the lots of soft limits are drawn at it.
    pub fn new(deadline: Time, estimate: Time) -> Batch {
        Batch {
            deadline,
            estimate,
            questions: Vec::new(),
            buckets: Vec::new(),
            places: Vec::new(),
            is_gcra: true,
            is_closed: false,
        }
    }

    /// Adds a question; or hands it back, because it belongs into another call. An empty batch takes every question.
    pub fn try_push(&mut self, question: ScriptRequest) -> Result<(), ScriptRequest> {
        let is_alone = !question.charges.iter().all(|charge| charge::is_string(&charge.limit));
        let is_too_long = self.places.len() + question.charges.len() > CHARGES_MAX;
        if !self.questions.is_empty() && (self.is_closed || is_alone || is_too_long || self.is_other(&question)) {
            return Err(question);
        }
        for charge in &question.charges {
            let place = self.place(charge);
            self.places.push(place);
            self.is_gcra &= charge::kind(&charge.limit) == charge::ARRIVAL;
        }
        self.is_closed |= is_alone;
        self.questions.push(question);
        Ok(())
    }

    /// True if a bucket is in the batch under another algorithm: its value would be read as what it is not.
    fn is_other(&self, question: &ScriptRequest) -> bool {
        let differs = |charge: &Charge| {
            let bucket = self.find(charge).and_then(|place| self.buckets.get(place));
            bucket.is_some_and(|bucket| bucket.limit.kind() != charge.limit.kind())
        };
        question.charges.iter().any(differs)
    }

    fn find(&self, charge: &Charge) -> Option<usize> {
        // The digest tells almost drain_all apart, and is there already.
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

    /// How many questions it holds.
    pub fn len(&self) -> usize {
        self.questions.len()
    }

    /// True without any question.
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// The questions, in order.
    pub fn questions(&self) -> &[ScriptRequest] {
        &self.questions
    }

    /// The questions, given back: to be asked in another way.
    pub fn into_questions(self) -> Vec<ScriptRequest> {
        self.questions
    }

    /// How long the reply may be, about: a verdict per question, and what is told of each bucket.
    pub fn reply_bytes(&self) -> usize {
        2 * self.questions.len() + REPLY_BYTES * self.buckets.len()
    }

    /// Appends the command.
    pub fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let mut blob = Blob::with_capacity(9 + CHARGE_BYTES * self.places.len());
        blob.nanos(self.deadline.nanos());
        let mut places = self.places.iter();
        for question in &self.questions {
            let many = question.charges.len() as u16;
            let mut opens = if question.refused { many | REFUSED } else { many };
            for (charge, key) in question.charges.iter().zip(&mut places) {
                let place = ChargePosition { opens, key: key + 1, full: question.full, estimate: self.estimate };
                match charge.soft {
                    None => charge::encode(charge, &charge.limit, place, &mut blob),
                    Some(_) => charge::encode(charge, &charge.limit_at(self.estimate), place, &mut blob),
                }
                opens = 0;
            }
        }
        call.encode(self.script(), self.buckets.iter().map(|bucket| bucket.key.bytes()), blob.bytes(), out);
    }

    /// Reads the reply, and replays what the script did from what it found.
    pub fn decode(&self, reply: &RespValue) -> Result<BatchReply, BadReply> {
        let (now, told) = match reply::open(reply)? {
            OpenedReply::Expired(now) => return Ok(BatchReply::Expired { now }),
            OpenedReply::Told(now, told) => (now, told),
        };
        let [verdicts, values, rest @ ..] = told else { return Err(BadReply::strange("neither verdicts nor values")) };
        let foreign = reply::foreign(rest.first())?;
        let (Some(verdicts), Some(values)) = (verdicts.array(), values.array()) else {
            return Err(BadReply::strange("neither verdicts nor values"));
        };
        let mut replay = Replay::new(self, now, values)?;
        let mut verdicts = Verdicts { numbers: verdicts, asked: self.asked(), told: 0 };
        let answers = self.questions.iter().map(|question| match question.charges.is_empty() {
            true => Ok(nothing_asked(question, now)),
            false => replay.answer(question, verdicts.next()?),
        });
        let answers = answers.collect::<Result<Vec<ScriptAnswer>, BadReply>>()?;
        Ok(BatchReply::Answers { now, answers, disagreed: replay.disagreed, foreign })
    }

    /// Questions that the script sees.
    fn asked(&self) -> usize {
        self.questions.iter().filter(|question| !question.charges.is_empty()).count()
    }
}

fn nothing_asked(question: &ScriptRequest, now: Time) -> ScriptAnswer {
    ScriptAnswer::Taken { taken: Taken::new(!question.refused, now), outcomes: Vec::new(), made: 0 }
}

/// The verdicts, taken out of the numbers that carry them: the first one is the highest digit of the first number.
struct Verdicts<'a> {
    numbers: &'a [RespValue],
    asked: usize,
    told: usize,
}

impl Verdicts<'_> {
    fn next(&mut self) -> Result<Verdict, BadReply> {
        let strange = BadReply::strange("a verdict that is none");
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

/// The steps of the script once more, over the buckets as it found them.
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
            return Err(BadReply::strange("another number of buckets than was asked for"));
        }
        let held = batch.buckets.iter().zip(values).map(|(bucket, value)| {
            let existence = if *value == RespValue::Nil { Existence::Absent } else { Existence::There };
            // Of a question without room the script says only which logs and slots are there.
            let is_untold = *value == RespValue::Nil || value.array().is_some_and(<[RespValue]>::is_empty);
            match charge::is_string(&bucket.limit) || !is_untold {
                true => Ok((BucketValue::read(&bucket.limit, value)?, existence)),
                false => Ok((BucketValue::Untold, existence)),
            }
        });
        let held = held.collect::<Result<_, BadReply>>()?;
        Ok(Replay { batch, now, held, places: batch.places.iter(), disagreed: 0 })
    }

    fn answer(&mut self, question: &ScriptRequest, verdict: Verdict) -> Result<ScriptAnswer, BadReply> {
        let places: SmallVec<[usize; 4]> =
            self.places.by_ref().take(question.charges.len()).map(|place| usize::from(*place)).collect();
        if verdict == Verdict::NoRoom {
            return Ok(ScriptAnswer::NoRoom(self.without_bucket(question, &places)));
        }
        let now = self.now;
        let deciding = |charge: &Charge| match charge.soft {
            None => charge.limit,
            Some(_) => charge.limit_at(self.batch.estimate),
        };
        let strange = BadReply::strange("a bucket that was not told of");
        let mut admits: SmallVec<[bool; 4]> = SmallVec::new();
        for (charge, place) in question.charges.iter().zip(&places) {
            let (held, _) = self.held.get(*place).ok_or(strange)?;
            admits.push(held.admits(&deciding(charge), now, &charge.ask));
        }
        let allowed = verdict == Verdict::Passed;
        let agreed = question.charges.iter().zip(&admits).all(|(charge, admits)| *admits || !charge.is_enforced());
        self.disagreed += u64::from((agreed && !question.refused) != allowed);
        let (mut outcomes, mut made) = (Vec::with_capacity(question.charges.len()), 0);
        for ((charge, place), admits) in question.charges.iter().zip(&places).zip(admits) {
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

    /// Places of the charges that have no bucket and need one.
    fn without_bucket(&self, question: &ScriptRequest, places: &[usize]) -> SmallVec<[usize; 4]> {
        let lacks = |(charge, place): &(&Charge, &usize)| {
            let held = self.held.get(**place);
            charge::needs_bucket(charge) && held.is_some_and(|(_, existence)| *existence == Existence::Absent)
        };
        let lacking = question.charges.iter().zip(places).enumerate().filter(|(_, pair)| lacks(pair));
        lacking.map(|(place, _)| place).collect()
    }
}
