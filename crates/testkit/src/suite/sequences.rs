//! Long random sequences over few buckets, compared step by step with the reference.

use tollgate_core::{
    Ask, Charge, Concurrency, Digest, Enforcement, FixedWindow, Gcra, Limit, Owner, Queue, Quota, Receipt,
    SlidingCounter, SlidingLog, SlotId, Span, Time,
};
use tollgate_store::{Outcomes, Store};

use super::Fixture;
use crate::{Reference, Subject};

/// Sequences per run; each is [`STEPS`] calls long.
pub(super) const SEEDS: u64 = 20;
const STEPS: usize = 500;

/// A small generator: the seed names the sequence.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    /// A span of whole microseconds: the resolution of the coarsest clock.
    fn micros_below(&mut self, most: u64) -> Span {
        Span::from_nanos(1_000 * self.below(most))
    }

    /// A limit for bucket `number`; its kind stays, its numbers may change from call to call.
    fn limit(&mut self, number: u64, now: Time) -> Limit {
        let (n, window) = (1 + self.below(8), Span::from_millis(1));
        match number % 7 {
            0 => Limit::Gcra(Gcra::new(n, window, 1 + self.below(6)).expect("a valid limit")),
            1 => Limit::FixedWindow(FixedWindow::new(n, window).expect("a valid limit")),
            2 => Limit::SlidingLog(SlidingLog::new(n, window).expect("a valid limit")),
            3 => Limit::SlidingCounter(SlidingCounter::new(n, window).expect("a valid limit")),
            4 => Limit::Queue(Queue::new(n, window, self.micros_below(2_000)).expect("a valid limit")),
            5 => Limit::Quota(self.quota(n, now)),
            _ => Limit::Concurrency(Concurrency::new(n % 4, window).expect("a valid limit")),
        }
    }

    /// Of a node whose clock is up to a period ahead or behind; one in eight is of another calendar.
    fn quota(&mut self, amount: u64, now: Time) -> Quota {
        const PERIOD: u64 = 1_000_000;
        let moved = if self.below(8) == 0 { self.micros_below(1_000).nanos() } else { 0 };
        let first = (now.nanos() / PERIOD - 1 + self.below(3)) * PERIOD + moved;
        let [start, end, next_end] = [0, 1, 2].map(|period| Time::from_nanos(first + period * PERIOD));
        let quota = Quota::new(amount, start, end, next_end).expect("a valid limit");
        quota.with_overdraft(self.below(3)).with_rollover(self.below(4)).with_grant(self.below(4))
    }

    fn ask(&mut self, limit: &Limit) -> Ask {
        let slot = SlotId(u128::from(self.below(6)));
        let cost = [0, 1, 1, 1, 2, 3, u64::MAX][self.below(7) as usize];
        match (limit, self.below(8)) {
            (Limit::Concurrency(_), 0) => Ask::Renew(slot),
            (Limit::Concurrency(_), _) => Ask::Hold(slot),
            (_, 0) => Ask::Peek(cost),
            (_, 1) => Ask::Force(cost.min(20)),
            (_, 2) => Ask::UpTo(cost.min(20)),
            _ => Ask::Consume(cost),
        }
    }

    /// One to four charges on different buckets.
    fn charges(&mut self, now: Time) -> Vec<Charge> {
        let first = self.below(12);
        let count = 1 + self.below(4);
        let charges = (first..first + count).map(|number| {
            let limit = self.limit(number, now);
            Charge {
                ask: self.ask(&limit),
                enforcement: if self.below(6) == 0 { Enforcement::Shadow } else { Enforcement::Enforce },
                count_denied: self.below(6) == 0,
                owner: Owner::new(number as u32),
                ..Charge::new(Digest([number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number << 40 | 1]), limit, 0)
            }
        });
        charges.collect()
    }
}

pub(super) async fn agree_with_the_reference<F: Fixture>(fixture: &F, seed: u64) {
    let mut draw = Draw(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let mut reference = Reference::default();
    let mut now = Time::from_secs(1_700_000_000);
    let mut kept: Vec<(Charge, u64, Time)> = Vec::new();
    for step in 0..STEPS {
        now = match draw.below(20) {
            0 => now.after(draw.micros_below(5_000)),
            1 => now.before(draw.micros_below(5_000)),
            _ => now.after(draw.micros_below(120)),
        };
        fixture.set_time(now);
        let give_back = draw.below(10) == 0;
        if let Some((charge, units, stamp)) = kept.pop().filter(|_| give_back) {
            let number = 1 + step as u64;
            let owner = charge.owner;
            let (bucket, limit, number) = (charge.bucket, charge.limit, Some(number));
            let receipt = Receipt { bucket, limit, owner, identity: 0, units, stamp, slot: None, number };
            fixture.store().give_back(&[receipt]).await.expect("the store answers");
            reference.refund(now, &charge, units, Some(stamp));
        }
        let charges = draw.charges(now);
        let expected = reference.take(now, &charges);
        let mut outcomes = Outcomes::new();
        let taken = fixture.store().take(&charges, Span::SECOND, &mut outcomes).await.expect("the store answers");
        let passes = charges.iter().zip(&expected).all(|(charge, outcome)| outcome.allowed || !charge.is_enforced());
        assert_eq!(taken.allowed, passes, "seed {seed}, step {step}: {charges:#?}");
        for ((charge, got), expected) in charges.iter().zip(&outcomes).zip(&expected) {
            assert_eq!(got, expected, "seed {seed}, step {step}, {charge:#?}");
            if got.granted > 0 && !matches!(charge.limit, Limit::Concurrency(_)) {
                kept.push((*charge, got.granted, got.stamp));
            }
        }
        kept.truncate(4);
    }
}
