//! Buckets in a real server, decided by the production scripts on a clock that the test sets.

use std::hash::{BuildHasher, RandomState};

use tollgate_core::{Ask, Charge, Digest, Outcome, Receipt, SlotId, Span, Time};
use tollgate_store_redis::script::{
    Batch, BatchReply, ReturnReply, Returns, Script, ScriptAnswer, ScriptCall, ScriptRequest,
};

use super::Subject;
use crate::redis::RedisClient;

/// No deadline: it has tests of its own.
const NEVER: Time = Time::from_nanos(u64::MAX);

/// A store in a Redis server. Panics if the server does not answer.
pub struct InRedis {
    client: RedisClient,
    /// Hashes of the scripts with a test clock, in the order of [`Script::ALL`].
    hashes: Vec<Vec<u8>>,
    /// Keeps the keys of subjects apart that share a server.
    salt: u64,
    /// Receipts so far: each gets a number of its own.
    receipts: u64,
    /// Calls so far: decides how wrong the estimate of the time is.
    asked: u64,
}

impl InRedis {
    /// A subject without any bucket, in the server at this port.
    pub fn connect(port: u16) -> InRedis {
        let mut client = RedisClient::connect(port).expect("a server listens there");
        let mut load = |script: Script| {
            let hash = client.call(&["SCRIPT", "LOAD", script.text_with_test_clock()]);
            hash.text().unwrap_or_else(|| panic!("{script:?} does not load: {hash:?}")).to_vec()
        };
        let hashes = Script::ALL.into_iter().map(&mut load).collect();
        InRedis { client, hashes, salt: RandomState::new().hash_one(port), receipts: 0, asked: 0 }
    }

    /// Decides several requests in as few calls as they fit into, all at the same moment.
    pub fn ask(&mut self, now: Time, requests: Vec<ScriptRequest>) -> Vec<ScriptAnswer> {
        let estimate = self.estimate(now, &requests);
        let mut answers = Vec::new();
        let mut batch = Batch::new(NEVER, estimate);
        for mut request in requests {
            request.charges.iter_mut().for_each(|charge| *charge = self.own(charge));
            if let Err(request) = batch.try_push(request) {
                answers.extend(self.send(now, &batch));
                batch = Batch::new(NEVER, estimate);
                batch.try_push(request).expect("an empty batch takes every request");
            }
        }
        answers.extend(self.send(now, &batch));
        answers
    }

    /// Callers know the store's time only about, but for tests that draw lots at it.
    fn estimate(&mut self, now: Time, requests: &[ScriptRequest]) -> Time {
        self.asked += 1;
        let is_soft = requests.iter().flat_map(|request| &request.charges).any(|charge| charge.soft.is_some());
        match self.asked % 7 {
            _ if is_soft => now,
            1 => now.after(Span::from_nanos(self.asked)),
            2 => now.before(Span::from_nanos(self.asked)),
            3 => now.after(Span::from_secs(self.asked)),
            4 => now.before(Span::from_secs(self.asked)),
            _ => now,
        }
    }

    fn send(&mut self, now: Time, batch: &Batch) -> Vec<ScriptAnswer> {
        let mut command = Vec::new();
        batch.encode(ScriptCall::At(now, Some(&self.hashes[batch.script().index()])), &mut command);
        let reply = self.client.exchange(&command).expect("the server answers");
        match batch.decode(&reply) {
            Ok(BatchReply::Answers { now: told, answers, disagreed, foreign }) => {
                assert_eq!(
                    (told, disagreed, foreign),
                    (now, 0, 0),
                    "the script and its replay differ: {reply:?} to {batch:?}"
                );
                answers
            }
            other => panic!("{other:?} from {reply:?} to {batch:?}"),
        }
    }

    /// Returns receipts together; the number of those that returned something.
    pub fn give_back(&mut self, now: Time, mut receipts: Vec<Receipt>) -> usize {
        for receipt in &mut receipts {
            let own = self.own(&receipt.charge(Ask::Peek(0)));
            (receipt.bucket, receipt.identity) = (own.bucket, own.identity);
        }
        let returns = Returns::new(NEVER, receipts);
        let mut command = Vec::new();
        returns.encode(ScriptCall::At(now, Some(&self.hashes[returns.script().index()])), &mut command);
        let reply = self.client.exchange(&command).expect("the server answers");
        match returns.decode(&reply) {
            Ok(ReturnReply::Done { now: told, given, foreign }) => {
                assert_eq!((told, foreign), (now, 0));
                given
            }
            other => panic!("{other:?} from {reply:?} to {returns:?}"),
        }
    }

    fn give_one_back(&mut self, now: Time, charge: &Charge, units: u64, stamp: Time, slot: Option<SlotId>) -> bool {
        self.receipts += 1;
        let Charge { bucket, limit, owner, identity, .. } = *charge;
        let number = Some(self.salt ^ self.receipts);
        self.give_back(now, vec![Receipt { bucket, limit, owner, identity, units, stamp, slot, number }]) == 1
    }

    /// The same charge on a bucket of this subject. A soft charge draws from its digest, which therefore stays.
    pub fn own(&self, charge: &Charge) -> Charge {
        let [a, b] = charge.bucket.0;
        let salt = if charge.soft.is_some() { 0 } else { self.salt };
        Charge { bucket: Digest([a ^ salt, b]), identity: self.salt as u32, ..*charge }
    }
}

impl Subject for InRedis {
    fn take(&mut self, now: Time, charges: &[Charge]) -> Vec<Outcome> {
        let request = ScriptRequest { charges: charges.into(), denied: false, full: false };
        match self.ask(now, vec![request]).pop() {
            Some(ScriptAnswer::Taken { outcomes, .. }) => outcomes,
            other => panic!("{other:?}"),
        }
    }

    /// A store refunds by receipt only: without a stamp, the receipt gets the one that the bucket shows.
    fn refund(&mut self, now: Time, charge: &Charge, units: u64, stamp: Option<Time>) {
        let looks = [Charge { ask: Ask::Peek(0), ..*charge }];
        let stamp = stamp.unwrap_or_else(|| self.take(now, &looks)[0].stamp);
        self.give_one_back(now, charge, units, stamp, None);
    }

    fn release(&mut self, now: Time, charge: &Charge, id: SlotId) -> bool {
        self.give_one_back(now, charge, 1, now, Some(id))
    }
}
