//! The production scripts on a real server, called directly.

use bytes::BytesMut;
use tollgate_core::{
    Ask, Charge, Concurrency, Digest, FixedWindow, Gcra, Limit, Queue, Quota, SlidingCounter, SlidingLog, SlotId, Span,
    Time,
};
use tollgate_lab::redis::{RedisClient, RedisServer};
use tollgate_resp::{ReplyLimits, RespValue, decode, write_request};
use tollgate_store_redis::key::BucketKey;
use tollgate_store_redis::script::{BadReply, Batch, BatchReply, ScriptCall, ScriptRequest};

pub const NEVER: Time = Time::from_nanos(u64::MAX);

pub struct Rig {
    pub client: RedisClient,
    /// Stops with the rig.
    _server: RedisServer,
}

impl Rig {
    pub fn start() -> Rig {
        Rig::start_with(&[])
    }

    pub fn start_with(arguments: &[&str]) -> Rig {
        let server = RedisServer::start_with(arguments);
        Rig { client: server.client(), _server: server }
    }

    /// Calls the text that production loads, on the server's clock.
    pub fn take(&mut self, deadline: Time, charges: &[Charge]) -> Result<BatchReply, BadReply> {
        let batch = batch(deadline, charges);
        let reply = self.send(&command(&batch));
        batch.decode(&reply)
    }

    /// Calls at a time of the test's choice.
    pub fn take_at(&mut self, now: Time, charges: &[Charge]) -> BatchReply {
        let batch = batch(NEVER, charges);
        let mut out = Vec::new();
        batch.encode(ScriptCall::At(now, None), &mut out);
        let reply = self.send(&out);
        batch.decode(&reply).unwrap_or_else(|bad| panic!("{bad}: {reply:?}"))
    }

    pub fn send(&mut self, command: &[u8]) -> RespValue {
        self.client.exchange(command).expect("the server answers")
    }

    pub fn integer(&mut self, parts: &[&str]) -> i64 {
        let reply = self.client.call(parts);
        reply.integer().unwrap_or_else(|| panic!("{parts:?}: {reply:?}"))
    }

    pub fn text(&mut self, parts: &[&str]) -> String {
        let reply = self.client.call(parts);
        let text = reply.text().unwrap_or_else(|| panic!("{parts:?}: {reply:?}"));
        String::from_utf8_lossy(text).into_owned()
    }

    pub fn keys(&mut self) -> Vec<String> {
        let reply = self.client.call(&["KEYS", "*"]);
        let keys = reply.array().expect("KEYS answers a list").iter();
        keys.map(|key| String::from_utf8_lossy(key.text().unwrap_or_default()).into_owned()).collect()
    }

    pub fn size(&mut self) -> i64 {
        self.integer(&["DBSIZE"])
    }

    /// The server's clock.
    pub fn now(&mut self) -> Time {
        match self.take(NEVER, &[]) {
            Ok(BatchReply::Answers { now, .. }) => now,
            other => panic!("{other:?}"),
        }
    }
}

pub fn batch(deadline: Time, charges: &[Charge]) -> Batch {
    let mut batch = Batch::new(deadline, Time::from_secs(1_700_000_000));
    let request = ScriptRequest { charges: charges.into(), ..ScriptRequest::default() };
    batch.try_push(request).expect("an empty batch takes every request");
    batch
}

pub fn command(batch: &Batch) -> Vec<u8> {
    let mut out = Vec::new();
    batch.encode(ScriptCall::Text, &mut out);
    out
}

/// The parts of a command.
pub fn parts(command: &[u8]) -> Vec<Vec<u8>> {
    let value = decode(&mut BytesMut::from(command), ReplyLimits::default())
        .expect("a command reads like a reply")
        .expect("whole");
    let parts = value.array().expect("a command is a list").iter();
    parts.map(|part| part.text().expect("of strings").to_vec()).collect()
}

/// The same command with other numbers.
pub fn with_numbers(command: &[u8], numbers: &[u8]) -> Vec<u8> {
    let mut parts = parts(command);
    *parts.last_mut().expect("a command has arguments") = numbers.to_vec();
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let mut out = Vec::new();
    write_request(&mut out, &parts);
    out
}

/// The numbers of a command.
pub fn numbers(command: &[u8]) -> Vec<u8> {
    parts(command).pop().expect("a command has arguments")
}

/// A charge of one unit, or slot, under every kind of limit, each with room for three in `window`.
pub fn every_kind(window: Span) -> [Charge; 7] {
    // After these bounds, a period lasts as long as the proposed one.
    let start = Time::from_secs(1_700_000_000);
    let (end, next_end) = (start.after(window), start.after(window).after(window));
    let limits = [
        Gcra::new(3, window, 3).map(Limit::Gcra),
        Queue::new(3, window, window).map(Limit::Queue),
        FixedWindow::new(3, window).map(Limit::FixedWindow),
        SlidingCounter::new(3, window).map(Limit::SlidingCounter),
        SlidingLog::new(3, window).map(Limit::SlidingLog),
        Concurrency::new(3, window).map(Limit::Concurrency),
        Quota::new(3, start, end, next_end).map(Limit::Quota),
    ];
    let mut number = 0;
    limits.map(|limit| {
        number += 1;
        let limit = limit.expect("a valid limit");
        let ask = match limit {
            Limit::Concurrency(_) => Ask::Hold(SlotId(7)),
            _ => Ask::Consume(1),
        };
        Charge { ask, ..Charge::new(Digest([number, number]), limit, 0) }
    })
}

pub fn key(charge: &Charge) -> String {
    BucketKey::of(charge).to_string()
}
