//! Equivalences: GCRA is a token bucket, the sliding log is a count.

use proptest::collection::vec;
use tollgate_core::{Ask, Time};
use tollgate_testkit::model::TokenBucket;
use tollgate_testkit::{Bucket, LimitConfig, SpecOutcome};

use crate::holds;

const START: u64 = 1_700_000_000_000_000_000;

#[test]
fn gcra_is_a_token_bucket_step_by_step() {
    let traffic = vec((0..=60_u64, 0..=9_u64), 0..=120);
    let strategy = ((1..=9_u64, 9..=200_u64, 1..=7_u64), traffic);
    holds("proptest-regressions/token_bucket.txt", strategy, |((count, period, burst), traffic)| {
        let limit = LimitConfig::Gcra { count, period, burst, max_debt: 0, clamp: true }.limit().expect("a limit");
        let mut now = START;
        let mut bucket = Bucket::unused(limit.kind());
        let mut tokens = TokenBucket::full(period / count, burst, now.into());
        for (after, cost) in traffic {
            now += after / 2 * (after % 2); // half of them at the same instant
            let told = SpecOutcome::from(&bucket.take(&limit, Time::from_nanos(now), &Ask::Consume(cost), false));
            let expected = tokens.take(now.into(), cost);
            if told != expected {
                return Err(format!("cost {cost} at {now} told\n  {told:?}, a token bucket\n  {expected:?}"));
            }
        }
        Ok(())
    });
}

#[test]
fn sliding_log_is_a_count_of_what_it_admitted() {
    let traffic = vec((0..=16_u64, 0..=4_u64), 0..=120);
    let strategy = ((1..=8_u64, 1..=40_u64), traffic);
    holds("proptest-regressions/count.txt", strategy, |((most, window), traffic)| {
        let limit = LimitConfig::SlidingLog { limit: most, window }.limit().expect("a limit");
        let (mut now, mut bucket, mut admitted) = (START, Bucket::unused(limit.kind()), Vec::new());
        for (after, cost) in traffic {
            now += after / 2 * (after % 2);
            let inside = admitted.iter().filter(|(at, _)| at + window > now);
            let used: u64 = inside.map(|(_, cost)| *cost).sum();
            let told = bucket.take(&limit, Time::from_nanos(now), &Ask::Consume(cost), false);
            if told.allowed != (used + cost <= most) {
                return Err(format!("cost {cost} at {now}: {told:?}, in the window are {used}"));
            }
            if told.allowed {
                admitted.push((now, cost));
            }
        }
        Ok(())
    });
}
