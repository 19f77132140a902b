//! Receipts given back by one call.

use tollgate_core::{Limit, Receipt, Time};
use tollgate_resp::RespValue;

use super::encode::{Blob, ScriptCall, encode_ttl, encode_windows, kind};
use super::lua::Script;
use super::reply::{self, BadReply, OpenedReply, ReturnReply};
use crate::store::key::BucketKey;

/// Receipts of one slot given back together.
#[derive(Debug)]
pub struct Returns {
    deadline: Time,
    receipts: Vec<Receipt>,
}

impl Returns {
    /// Gives these receipts back, unless it is after `deadline` by the store's clock.
    pub fn new(deadline: Time, receipts: Vec<Receipt>) -> Returns {
        Returns { deadline, receipts }
    }

    /// The receipts.
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// Returns the receipts, to send them in another way.
    pub fn into_receipts(self) -> Vec<Receipt> {
        self.receipts
    }

    /// The script that processes them.
    pub fn script(&self) -> Script {
        Script::GiveBack
    }

    /// Appends the command.
    pub fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let mut keys = Keys::default();
        let mut blob = Blob::with_capacity(9 + 64 * self.receipts.len());
        blob.nanos(self.deadline.nanos());
        for receipt in self.receipts.iter().filter(|receipt| gives_anything(receipt)) {
            let bucket = BucketKey::of_receipt(receipt);
            let marker = receipt.number.filter(|_| !is_slot(receipt)).map(|number| marker(&bucket, number));
            blob.byte(kind(&receipt.limit));
            blob.short(keys.number_of(bucket.bytes()));
            blob.short(marker.map_or(0, |marker| keys.number_of(&marker)));
            blob.nanos(receipt.remembered_until(self.deadline).nanos());
            encode(receipt, self.deadline, &mut blob);
        }
        call.encode(Script::GiveBack, keys.0.iter().map(Vec::as_slice), blob.bytes(), out);
    }

    /// Reads the reply.
    pub fn decode(&self, reply: &RespValue) -> Result<ReturnReply, BadReply> {
        match reply::open(reply)? {
            OpenedReply::Expired(now) => Ok(ReturnReply::Expired { now }),
            OpenedReply::Data(now, data) => {
                let given = data.first().and_then(RespValue::integer).and_then(|given| usize::try_from(given).ok());
                let given = given.filter(|given| *given <= self.receipts.len());
                let given = given.ok_or(BadReply::strange("malformed number of receipts"))?;
                Ok(ReturnReply::Done { now, given, foreign: reply::foreign(data.get(1))? })
            }
        }
    }
}

/// A slot can be released only once: it exists or it does not.
fn is_slot(receipt: &Receipt) -> bool {
    matches!(receipt.limit, Limit::Concurrency(_))
}

/// A slot is released by its id; there are no units of slots.
fn gives_anything(receipt: &Receipt) -> bool {
    !is_slot(receipt) || receipt.slot.is_some()
}

fn encode(receipt: &Receipt, estimate: Time, blob: &mut Blob) {
    let Receipt { units, stamp, .. } = *receipt;
    match &receipt.limit {
        Limit::Gcra(gcra) => encode_arrival(gcra.interval().nanos(), units, stamp, None, blob),
        Limit::Queue(queue) => {
            encode_arrival(queue.interval().nanos(), units, stamp, Some(queue.bound().nanos()), blob);
        }
        limit @ (Limit::FixedWindow(_) | Limit::SlidingCounter(_)) => {
            encode_windows(limit.window(), limit.offset(), estimate, blob);
            blob.count(units);
            blob.nanos(stamp.nanos());
        }
        Limit::SlidingLog(log) => {
            blob.nanos(log.window().nanos());
            blob.count(units);
            blob.nanos(stamp.nanos());
        }
        Limit::Quota(_) => {
            blob.count(units);
            blob.nanos(stamp.nanos());
        }
        Limit::Concurrency(limit) => {
            encode_ttl(limit, blob);
            blob.raw(&receipt.slot.map_or(0, |id| id.0).to_be_bytes());
        }
    }
}

/// A queue has a bound, and only its last entry may leave; a token bucket gives back what is still owed.
fn encode_arrival(interval: u64, units: u64, stamp: Time, bound: Option<u64>, blob: &mut Blob) {
    let back = u128::from(interval) * u128::from(units);
    blob.byte(u8::from(bound.is_some()));
    blob.nanos(u64::try_from(back).unwrap_or(u64::MAX));
    blob.nanos(interval);
    blob.nanos(stamp.nanos());
    blob.nanos(bound.unwrap_or(0));
}

/// The key that marks a receipt as spent: the tag of its bucket, and the receipt's number.
fn marker(bucket: &BucketKey, number: u64) -> Vec<u8> {
    let [a, b, c] = bucket.tag();
    let mut key = vec![b't', b'g', b':', b'{', a, b, c, b'}', b'!'];
    key.extend_from_slice(format!("{number:016x}").as_bytes());
    key
}

/// The distinct keys of the call.
#[derive(Default)]
struct Keys(Vec<Vec<u8>>);

impl Keys {
    /// The number of a key, counted from one.
    fn number_of(&mut self, key: &[u8]) -> u16 {
        let index = self.0.iter().position(|other| other == key).unwrap_or_else(|| {
            self.0.push(key.to_vec());
            self.0.len() - 1
        });
        index as u16 + 1
    }
}
