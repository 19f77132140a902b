//! Several requests in one call, over few buckets, so that they share buckets: decided in order, each all or nothing,
//! each bucket read once and written at most once.

use smallvec::SmallVec;
use tollgate_core::{
    Ask, Charge, Concurrency, Digest, Enforcement, FixedWindow, Gcra, Limit, Outcome, Queue, SlidingCounter,
    SlidingLog, SlotId, Soft, Span, Time,
};
use tollgate_lab::redis::RedisServer;
use tollgate_store_redis::script::{Batch, Script, ScriptAnswer, ScriptRequest};
use tollgate_testkit::subject::InRedis;
use tollgate_testkit::{Reference, Subject};

const START: Time = Time::from_secs(1_700_000_000);
const SEEDS: u64 = 40;
const CALLS: u64 = 60;

/// A small generator: sequences are named by their seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    /// A limit for a bucket of this number; its kind stays.
    fn limit(&mut self, number: u64) -> Limit {
        let (n, window) = (1 + self.below(8), Span::from_millis(1));
        let limit = match number % 6 {
            0 => {
                Gcra::new(n, window, 1 + self.below(6)).and_then(|gcra| gcra.with_max_debt(number % 5)).map(Limit::Gcra)
            }
            1 => FixedWindow::new(n, window).map(Limit::FixedWindow),
            2 => SlidingCounter::new(n, window).map(Limit::SlidingCounter),
            3 => Queue::new(n, window, Span::from_nanos(self.below(2_000_000))).map(Limit::Queue),
            4 => SlidingLog::new(n, window).map(Limit::SlidingLog),
            _ => Concurrency::new(n % 4, window).map(Limit::Concurrency),
        };
        limit.expect("a valid limit")
    }

    fn ask(&mut self, limit: &Limit) -> Ask {
        let slot = SlotId(u128::from(self.below(6)));
        let cost = [0, 1, 1, 1, 2, 3, u64::MAX][self.below(7) as usize];
        match (limit, self.below(9)) {
            (Limit::Concurrency(_), 0) => Ask::Renew(slot),
            (Limit::Concurrency(_), _) | (_, 8) => Ask::Hold(slot),
            (_, 0) => Ask::Peek(cost),
            (_, 1) => Ask::Force(cost.min(20)),
            (_, 2) => Ask::UpTo(cost.min(20)),
            (_, 3) if cost == 0 => Ask::Renew(slot),
            _ => Ask::Consume(cost),
        }
    }

    /// Of few buckets, most of them strings.
    fn request(&mut self, seed: u64) -> ScriptRequest {
        let kinds = if self.below(6) == 0 { 6 } else { 4 };
        let first = self.below(3);
        let charges = (0..1 + self.below(3)).map(|place| {
            let number = 6 * first + (first + place) % kinds;
            let limit = self.limit(number);
            let enforcement = if self.below(6) == 0 { Enforcement::Shadow } else { Enforcement::Enforce };
            let soft = (first == 2).then_some(Soft { excess: 5, seed: 1 });
            let (ask, count_denied) = (self.ask(&limit), self.below(6) == 0);
            Charge { ask, enforcement, count_denied, soft, ..Charge::new(Digest([seed, number]), limit, 0) }
        });
        ScriptRequest { charges: charges.collect(), denied: self.below(8) == 0, full: false }
    }
}

/// Always denies: stands for another slot that has denied the request.
fn refusing() -> Charge {
    let limit = Limit::FixedWindow(FixedWindow::new(0, Span::SECOND).expect("a valid limit"));
    Charge::new(Digest([0, 0]), limit, 1)
}

fn expected(reference: &mut Reference, now: Time, request: &ScriptRequest) -> (bool, Vec<Outcome>) {
    let mut charges = request.charges.clone();
    charges.extend(request.denied.then(refusing));
    let mut outcomes = reference.take(now, &charges);
    let passes = charges.iter().zip(&outcomes).all(|(charge, outcome)| outcome.allowed || !charge.is_enforced());
    outcomes.truncate(request.charges.len());
    (passes, outcomes)
}

#[test]
fn questions_of_one_call_are_decided_one_after_the_other() {
    let server = RedisServer::start();
    for seed in 1..=SEEDS {
        let mut draw = Draw(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (mut reference, mut subject) = (Reference::default(), InRedis::connect(server.port()));
        let mut now = START;
        for call in 0..CALLS {
            now = match draw.below(20) {
                0 => now.after(Span::from_nanos(1_000 * draw.below(5_000))),
                1 => now.before(Span::from_nanos(1_000 * draw.below(5_000))),
                _ => now.after(Span::from_nanos(1_000 * draw.below(120))),
            };
            let requests: Vec<ScriptRequest> = (0..1 + draw.below(40)).map(|_| draw.request(seed)).collect();
            let answers = subject.ask(now, requests.clone());
            for (place, (request, answer)) in requests.iter().zip(&answers).enumerate() {
                let (passes, told) = expected(&mut reference, now, request);
                let ScriptAnswer::Taken { taken, outcomes, .. } = answer else { panic!("{answer:?}") };
                let at = format!("seed {seed}, call {call}, request {place} of {}: {request:#?}", requests.len());
                assert_eq!(outcomes.as_slice(), told, "{at}");
                assert_eq!((taken.allowed, taken.now), (passes, now), "{at}");
            }
        }
    }
}

fn gcra(number: u64) -> Charge {
    Charge::new(Digest([number, 1]), Limit::per_minute(5).expect("a valid limit"), 1)
}

fn log(number: u64) -> Charge {
    let limit = SlidingLog::new(5, Span::SECOND).expect("a valid limit");
    Charge::new(Digest([number, 2]), Limit::SlidingLog(limit), 1)
}

fn window(number: u64) -> Charge {
    let limit = FixedWindow::new(5, Span::SECOND).expect("a valid limit");
    Charge::new(Digest([number, 3]), Limit::FixedWindow(limit), 1)
}

fn asks(charges: &[Charge]) -> ScriptRequest {
    ScriptRequest { charges: charges.into(), ..ScriptRequest::default() }
}

#[test]
fn strings_join_and_logs_stay_alone() {
    let mut batch = Batch::new(START, START);
    assert_eq!(batch.try_push(asks(&[gcra(1)])), Ok(()));
    assert_eq!(batch.script(), Script::Gcra);
    assert_eq!(batch.try_push(asks(&[gcra(1), window(1)])), Ok(()));
    assert_eq!(batch.script(), Script::Mixed);
    assert_eq!(batch.try_push(asks(&[log(1)])), Err(asks(&[log(1)])));
    assert_eq!(batch.len(), 2);
    let mut alone = Batch::new(START, START);
    assert_eq!(alone.try_push(asks(&[log(1), gcra(1)])), Ok(()));
    assert_eq!(alone.try_push(asks(&[gcra(2)])), Err(asks(&[gcra(2)])));
}

#[test]
fn a_batch_ends_before_it_takes_too_long_but_takes_any_first_question() {
    let mut batch = Batch::new(START, START);
    let pushed = (0..1000).take_while(|number| batch.try_push(asks(&[gcra(*number)])).is_ok()).count();
    assert_eq!(pushed, 192);
    let many: Vec<Charge> = (0..300).map(gcra).collect();
    let server = RedisServer::start();
    let told = InRedis::connect(server.port()).take(START, &many);
    assert_eq!(told.iter().filter(|outcome| outcome.granted == 1).count(), 300);
}

#[test]
fn no_charges_are_allowed() {
    let server = RedisServer::start();
    let refused = ScriptRequest { denied: true, ..ScriptRequest::default() };
    let answers = InRedis::connect(server.port()).ask(START, vec![asks(&[]), refused, asks(&[gcra(1)])]);
    let allowed: Vec<bool> =
        answers.iter().map(|answer| matches!(answer, ScriptAnswer::Taken { taken, .. } if taken.allowed)).collect();
    assert_eq!(allowed, [true, false, true]);
}

fn is_no_room(answer: &ScriptAnswer, places: &[usize]) -> bool {
    *answer == ScriptAnswer::NoRoom(SmallVec::from_slice(places))
}

fn made(answer: &ScriptAnswer) -> u32 {
    if let ScriptAnswer::Taken { made, .. } = answer { *made } else { u32::MAX }
}

/// For every kind of bucket: none is created while memory is full, existing ones continue.
#[test]
fn a_full_store_makes_no_bucket_and_keeps_those_it_has() {
    let server = RedisServer::start();
    let mut subject = InRedis::connect(server.port());
    let slots = Limit::Concurrency(Concurrency::new(5, Span::SECOND).expect("a valid limit"));
    let holds = |id| Charge { ask: Ask::Hold(SlotId(id)), ..Charge::new(Digest([9, 9]), slots, 0) };
    for (old, new) in [(gcra(1), gcra(2)), (window(1), window(2)), (log(1), log(2)), (gcra(3), holds(1))] {
        let full = |charges: &[Charge]| ScriptRequest { full: true, ..asks(charges) };
        assert_eq!(made(&subject.ask(START, vec![asks(&[old])])[0]), 1);
        assert!(is_no_room(&subject.ask(START, vec![full(&[old, new])])[0], &[1]), "{new:?}");
        let peek = Charge { ask: Ask::Peek(1), ..new };
        let overflow = Charge { owner: new.owner.overflowing(), ..new };
        let answers = subject.ask(START, vec![full(&[old, peek])]);
        let ScriptAnswer::Taken { taken, outcomes, made } = &answers[0] else { panic!("{answers:?}") };
        assert!(taken.allowed && outcomes[1].used == 0 && *made == 0, "{answers:?}");
        assert_eq!(outcomes[0].used, 2, "the one without room was charged nothing");
        assert_eq!(self::made(&subject.ask(START, vec![full(&[overflow])])[0]), 1, "overflow buckets always have room");
    }
}

#[test]
fn a_bucket_made_by_the_question_before_is_there() {
    let server = RedisServer::start();
    let full = ScriptRequest { full: true, ..asks(&[gcra(1)]) };
    let answers = InRedis::connect(server.port()).ask(START, vec![full.clone(), asks(&[gcra(1)]), full]);
    assert!(is_no_room(&answers[0], &[0]));
    assert_eq!((made(&answers[1]), made(&answers[2])), (1, 0));
}

/// A log longer than one look at it: entries leave one by one, units come back from its middle, and a cost waits for as
/// many as it needs.
#[test]
fn a_long_log_is_read_and_returned_piece_by_piece() {
    let server = RedisServer::start();
    let limit = Limit::SlidingLog(SlidingLog::new(1_000, Span::SECOND).expect("a valid limit"));
    let (mut reference, mut subject) = (Reference::default(), InRedis::connect(server.port()));
    let charge = |ask| [Charge { ask, ..Charge::new(Digest([4, 4]), limit, 0) }];
    let mut stamps = Vec::new();
    for step in 0..3_000_u64 {
        let now = START.after(Span::from_nanos(step * 700_000));
        let ask = match step % 50 {
            17 => Ask::Consume(900),
            18 => Ask::Force(step % 3 * 40),
            19 => Ask::UpTo(7),
            20 => Ask::Peek(500),
            _ => Ask::Consume(1 + step % 2),
        };
        let told = reference.take(now, &charge(ask));
        assert_eq!(subject.take(now, &charge(ask)), told, "step {step}");
        stamps.extend((told[0].granted > 0).then_some((told[0].granted, told[0].stamp)));
        if step % 11 == 0 && stamps.len() > 400 {
            let (units, stamp) = stamps.swap_remove(stamps.len() - 1 - (step as usize * 7) % 400);
            reference.refund(now, &charge(Ask::Peek(0))[0], units, Some(stamp));
            subject.refund(now, &charge(Ask::Peek(0))[0], units, Some(stamp));
        }
    }
    let later = START.after(Span::from_secs(60));
    assert_eq!(subject.take(later, &charge(Ask::Consume(1))), reference.take(later, &charge(Ask::Consume(1))));
}
