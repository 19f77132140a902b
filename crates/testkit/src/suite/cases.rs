//! The promises of [`Store`], one function each.

use tollgate_core::{
    Ask, Charge, Concurrency, Digest, Enforcement, FixedWindow, Gcra, Limit, Outcome, Owner, Quota, Receipt,
    SlidingCounter, SlidingLog, SlotId, Span, Time, Wait,
};
use tollgate_store::{Outcomes, Store, Taken};

use super::Fixture;

const START: Time = Time::from_secs(1_700_000_040);
const DEADLINE: Span = Span::SECOND;

async fn take<F: Fixture>(fixture: &F, charges: &[Charge]) -> (Taken, Vec<Outcome>) {
    let mut outcomes = Outcomes::new();
    let taken = fixture.store().take(charges, DEADLINE, &mut outcomes).await.expect("the store answers");
    assert_eq!(outcomes.len(), charges.len(), "one outcome per charge");
    (taken, outcomes.to_vec())
}

fn bucket(number: u64) -> Digest {
    Digest([number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1, number.wrapping_mul(0xc2b2_ae3d_27d4_eb4f) | 1])
}

fn window(limit: u64) -> Limit {
    Limit::FixedWindow(FixedWindow::new(limit, Span::from_secs(60)).expect("a valid limit"))
}

fn charge(number: u64, limit: Limit, cost: u64) -> Charge {
    Charge::new(bucket(number), limit, cost)
}

async fn used<F: Fixture>(fixture: &F, number: u64, limit: Limit) -> u64 {
    let peek = Charge { ask: Ask::Peek(1), ..charge(number, limit, 0) };
    take(fixture, &[peek]).await.1[0].used
}

pub(super) async fn all_or_nothing<F: Fixture>(fixture: &F) {
    fixture.set_time(START);
    let charges = [charge(1, window(3), 1), charge(2, window(2), 1), charge(3, window(9), 4)];
    let verdicts = [take(fixture, &charges).await.0, take(fixture, &charges).await.0, take(fixture, &charges).await.0];
    assert_eq!(verdicts.map(|taken| taken.allowed), [true, true, false]);
    assert!(verdicts.iter().all(|taken| taken.now == START), "the store tells its own time");
    for (number, limit, expected) in [(1, window(3), 2), (2, window(2), 2), (3, window(9), 8)] {
        assert_eq!(used(fixture, number, limit).await, expected, "bucket {number}");
    }
}

pub(super) async fn a_denied_request_charges_nothing<F: Fixture>(fixture: &F) {
    fixture.set_time(START);
    let limit = Limit::Gcra(Gcra::new(1, Span::SECOND, 2).expect("a valid limit"));
    for _ in 0..20 {
        let (_, _) = take(fixture, &[charge(1, limit, 1)]).await;
    }
    let (_, outcomes) = take(fixture, &[charge(1, limit, 1)]).await;
    assert_eq!(outcomes[0].wait, Wait::For(Span::SECOND), "eighteen refusals later the wait is still one interval");
}

pub(super) async fn shadow_charges_never_refuse<F: Fixture>(fixture: &F) {
    fixture.set_time(START);
    let shadow = Charge { enforcement: Enforcement::Shadow, ..charge(1, window(1), 1) };
    let real = charge(2, window(3), 1);
    let verdicts = [
        take(fixture, &[shadow, real]).await.0.allowed,
        take(fixture, &[shadow, real]).await.0.allowed,
        take(fixture, &[shadow, real]).await.0.allowed,
        take(fixture, &[shadow, real]).await.0.allowed,
    ];
    assert_eq!(verdicts, [true, true, true, false]);
    assert_eq!((used(fixture, 1, window(1)).await, used(fixture, 2, window(3)).await), (1, 3));
}

pub(super) async fn count_denied_charges_refused_requests<F: Fixture>(fixture: &F) {
    fixture.set_time(START);
    let counted = Charge { count_denied: true, ..charge(1, window(2), 1) };
    let shut = charge(2, window(0), 1);
    for _ in 0..5 {
        assert!(!take(fixture, &[counted, shut]).await.0.allowed);
    }
    assert_eq!(used(fixture, 1, window(2)).await, 5);
}

pub(super) async fn peek_and_cost_zero_change_nothing<F: Fixture>(fixture: &F) {
    fixture.set_time(START);
    for ask in [Ask::Peek(1), Ask::Peek(9), Ask::Consume(0), Ask::UpTo(0), Ask::Force(0)] {
        let (_, outcomes) = take(fixture, &[Charge { ask, ..charge(1, window(2), 0) }]).await;
        assert_eq!((outcomes[0].used, outcomes[0].granted), (0, 0), "{ask:?}");
    }
}

pub(super) async fn up_to_takes_what_is_there<F: Fixture>(fixture: &F) {
    fixture.set_time(START);
    let lease = Charge { ask: Ask::UpTo(4), ..charge(1, window(6), 0) };
    let mut granted = Vec::new();
    for _ in 0..3 {
        let (taken, outcomes) = take(fixture, &[lease]).await;
        granted.push((taken.allowed, outcomes[0].granted));
    }
    assert_eq!(granted, [(true, 4), (true, 2), (false, 0)]);
}

fn receipt(charge: &Charge, outcome: &Outcome, number: u64) -> Receipt {
    Receipt { number: Some(number), ..Receipt::of(charge, outcome) }
}

fn every_rate_limit() -> [Limit; 5] {
    let minute = Span::from_secs(60);
    let [start, end, next_end] = [START, START.after(minute), START.after(minute).after(minute)];
    [
        Limit::Gcra(Gcra::new(60, minute, 60).expect("a valid limit")),
        window(60),
        Limit::SlidingLog(SlidingLog::new(60, minute).expect("a valid limit")),
        Limit::SlidingCounter(SlidingCounter::new(60, minute).expect("a valid limit")),
        Limit::Quota(Quota::new(60, start, end, next_end).expect("a valid limit")),
    ]
}

pub(super) async fn a_receipt_is_honoured_once<F: Fixture>(fixture: &F) {
    fixture.set_time(START);
    for (number, limit) in every_rate_limit().into_iter().enumerate() {
        let number = number as u64;
        let charged = charge(number, limit, 10);
        let (_, first) = take(fixture, &[charged]).await;
        let (_, _) = take(fixture, &[charge(number, limit, 5)]).await;
        let back = |id| [receipt(&charged, &first[0], id)];
        assert_eq!(fixture.store().give_back(&back(number + 1)).await, Ok(1), "{limit:?}");
        assert_eq!(fixture.store().give_back(&back(number + 1)).await, Ok(0), "{limit:?}: twice");
        assert_eq!(used(fixture, number, limit).await, 5, "{limit:?}");
    }
}

pub(super) async fn a_refund_returns_only_what_is_owed<F: Fixture>(fixture: &F) {
    for (number, limit) in every_rate_limit().into_iter().enumerate() {
        fixture.set_time(START);
        let charged = charge(number as u64, limit, 60);
        let (_, first) = take(fixture, &[charged]).await;
        fixture.set_time(START.after(Span::from_secs(200)));
        let (_, _) = take(fixture, &[charge(number as u64, limit, 60)]).await;
        let late = [receipt(&charged, &first[0], 100 + number as u64)];
        assert_eq!(fixture.store().give_back(&late).await, Ok(0), "{limit:?}: time has given it back");
        assert_eq!(used(fixture, number as u64, limit).await, 60, "{limit:?}");
    }
}

pub(super) async fn slots_are_held_renewed_and_released<F: Fixture>(fixture: &F) {
    fixture.set_time(START);
    let limit = Limit::Concurrency(Concurrency::new(2, Span::from_secs(10)).expect("a valid limit"));
    let ask = |ask| Charge { ask, ..charge(1, limit, 0) };
    let [a, b, c] = [SlotId(1), SlotId(2), SlotId(3)];
    let release = |id| {
        let stamp = Time::ZERO;
        [Receipt {
            bucket: bucket(1),
            limit,
            units: 1,
            stamp,
            slot: Some(id),
            number: None,
            owner: Owner::new(0),
            identity: 0,
        }]
    };
    for (id, allowed) in [(a, true), (b, true), (a, true), (c, false)] {
        assert_eq!(take(fixture, &[ask(Ask::Hold(id))]).await.0.allowed, allowed, "{id}");
    }
    assert_eq!(fixture.store().give_back(&release(c)).await, Ok(0), "a release frees no other slot");
    fixture.set_time(START.after(Span::from_secs(6)));
    assert!(take(fixture, &[ask(Ask::Renew(a))]).await.0.allowed);
    fixture.set_time(START.after(Span::from_secs(12)));
    assert!(!take(fixture, &[ask(Ask::Renew(b))]).await.0.allowed, "b was not renewed in time");
    assert!(take(fixture, &[ask(Ask::Hold(c))]).await.0.allowed);
    assert_eq!(fixture.store().give_back(&release(b)).await, Ok(0));
    assert_eq!(fixture.store().give_back(&release(a)).await, Ok(1));
    assert_eq!(fixture.store().give_back(&release(a)).await, Ok(0));
    assert_eq!(used(fixture, 1, limit).await, 1);
}

pub(super) async fn forgotten_buckets_are_unused<F: Fixture>(fixture: &F) {
    fixture.set_time(START);
    let (_, _) = take(fixture, &[charge(1, window(5), 5), charge(2, window(5), 5)]).await;
    fixture.store().forget(&[charge(1, window(5), 0)]).await.expect("the store answers");
    assert_eq!((used(fixture, 1, window(5)).await, used(fixture, 2, window(5)).await), (0, 5));
}

pub(super) async fn no_charges_are_allowed<F: Fixture>(fixture: &F) {
    fixture.set_time(START);
    assert!(take(fixture, &[]).await.0.allowed);
}
