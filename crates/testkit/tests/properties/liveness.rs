//! No key starves: a hammered key still gets its rate (RELIABILITY P9), and a clock that steps back locks no key for
//! longer than stated, nor longer than the hint (P20).

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_core::{Ask, Limit, LimitKind, SlotId, Time, Wait};
use tollgate_testkit::oracle::{Operation, Scenario, TimeStep};
use tollgate_testkit::{Bucket, LimitConfig};

use crate::holds;

/// More than any of these limits holds: a bucket that still admits then does not limit at all.
const DRAIN_MAX: u64 = 10_000;

/// A bucket with a past.
struct Worn {
    config: LimitConfig,
    limit: Limit,
    bucket: Bucket,
    now: u64,
}

/// Small numbers only, and a first limit that lets something pass: hammering goes nanosecond by nanosecond.
fn wear(kind: LimitKind, head: [u8; 8], words: &[u32]) -> Option<Worn> {
    let [flags, start, scale, ..] = head;
    let mut small = head;
    small[..3].copy_from_slice(&[flags & 1, start & !7, scale & !15]);
    let scenario = Scenario::decode(kind, small, words);
    let config = *scenario.configs.first()?;
    let limit = config.limit().ok().filter(|_| config.capacity() > 0 && config.lock_max().is_some())?;
    let (mut bucket, mut now) = (Bucket::unused(kind), scenario.start);
    for (pass, act) in &scenario.steps {
        match *pass {
            TimeStep::On(nanos) => now += nanos,
            TimeStep::Back(nanos) => now -= nanos.min(now / 2),
            _ => {}
        }
        if let Operation::Ask(wish) = act {
            bucket.take(&limit, Time::from_nanos(now), &wish.ask, false);
        }
    }
    Some(Worn { config, limit, bucket, now })
}

impl Worn {
    /// Takes units one by one until refused; returns how many there were.
    fn drain(&mut self) -> u64 {
        let now = Time::from_nanos(self.now);
        (0..DRAIN_MAX)
            .find(|_| !self.bucket.take(&self.limit, now, &Ask::Consume(1), false).allowed)
            .unwrap_or(DRAIN_MAX)
    }
}

/// Hammers for three periods, and returns how much passed in each nanosecond.
fn hammer(worn: &mut Worn, period: u64) -> Vec<u64> {
    let passed = (0..3 * period).map(|_| {
        let passed = worn.drain();
        worn.now += 1;
        passed
    });
    passed.collect()
}

fn past() -> impl Strategy<Value = ([u8; 8], Vec<u32>)> {
    (any::<[u8; 8]>(), vec(any::<u32>(), 0..=20))
}

/// The clock runs forward in these: no flag for steps back.
fn forward((mut head, words): ([u8; 8], Vec<u32>)) -> ([u8; 8], Vec<u32>) {
    head[0] = 0;
    (head, words)
}

#[test]
fn a_hammered_token_bucket_passes_one_per_interval() {
    holds("proptest-regressions/liveness.txt", past().prop_map(forward), |(head, words)| {
        let Some(mut worn) = wear(LimitKind::Gcra, head, &words) else { return Ok(()) };
        let interval = worn.config.interval();
        worn.drain();
        worn.now += 1;
        let passed = hammer(&mut worn, interval.max(4));
        let starved = passed.windows(interval as usize).position(|part| part.iter().all(|passed| *passed == 0));
        starved.map_or(Ok(()), |at| Err(format!("{:?}: nothing for {interval} ns after {at} ns", worn.config)))
    });
}

#[test]
fn a_hammered_queue_passes_one_per_interval() {
    holds("proptest-regressions/liveness.txt", past().prop_map(forward), |(head, words)| {
        let Some(mut worn) = wear(LimitKind::Queue, head, &words) else { return Ok(()) };
        let (interval, most) = (worn.config.interval(), worn.config.lock_max().unwrap_or(0));
        worn.drain();
        worn.now += most; // a single large cost may have filled it to the brim
        let passed = hammer(&mut worn, interval.max(4));
        let starved = passed.windows(interval as usize).position(|part| part.iter().all(|passed| *passed == 0));
        starved.map_or(Ok(()), |at| Err(format!("{:?}: nothing for {interval} ns after {at} ns", worn.config)))
    });
}

#[test]
fn a_hammered_fixed_window_passes_its_limit_in_every_window() {
    holds("proptest-regressions/liveness.txt", past().prop_map(forward), |(head, words)| {
        let Some(mut worn) = wear(LimitKind::FixedWindow, head, &words) else { return Ok(()) };
        let LimitConfig::FixedWindow { limit, window, offset } = worn.config else { return Ok(()) };
        let start = worn.now;
        let passed = hammer(&mut worn, window);
        let to_turn = (window - (i128::from(start) - i128::from(offset)).rem_euclid(window.into()) as u64) as usize;
        let whole = passed[to_turn..].chunks_exact(window as usize);
        match whole.map(|part| part.iter().sum::<u64>()).find(|sum| *sum != limit) {
            Some(sum) => Err(format!("{:?}: {sum} in a window", worn.config)),
            None => Ok(()),
        }
    });
}

#[test]
fn a_hammered_sliding_log_is_always_full() {
    holds("proptest-regressions/liveness.txt", past().prop_map(forward), |(head, words)| {
        let Some(mut worn) = wear(LimitKind::SlidingLog, head, &words) else { return Ok(()) };
        let LimitConfig::SlidingLog { limit, window } = worn.config else { return Ok(()) };
        let passed = hammer(&mut worn, window);
        match passed.windows(window as usize).skip(1).find(|part| part.iter().sum::<u64>() != limit) {
            Some(part) => Err(format!("{:?}: {part:?}", worn.config)),
            None => Ok(()),
        }
    });
}

/// The estimate rounds against the caller: what the older window still weighs in its last nanosecond is missing.
#[test]
fn a_hammered_sliding_counter_passes_nearly_its_limit_in_every_window() {
    holds("proptest-regressions/liveness.txt", past().prop_map(forward), |(head, words)| {
        let Some(mut worn) = wear(LimitKind::SlidingCounter, head, &words) else { return Ok(()) };
        let LimitConfig::SlidingCounter { limit, window, offset } = worn.config else { return Ok(()) };
        let start = worn.now;
        let passed = hammer(&mut worn, window);
        let to_turn = (window - (i128::from(start) - i128::from(offset)).rem_euclid(window.into()) as u64) as usize;
        let least = limit - limit.div_ceil(window);
        match passed[to_turn..].chunks_exact(window as usize).find(|part| part.iter().sum::<u64>() < least) {
            Some(part) => Err(format!("{:?}: {part:?}, at least {least} expected", worn.config)),
            None => Ok(()),
        }
    });
}

/// After a step back a caller retries until admitted: that takes exactly as long as the first refusal told.
fn recovers(kind: LimitKind) {
    let past = (past(), any::<u16>(), any::<bool>());
    holds("proptest-regressions/recovery.txt", past, |((head, words), back, far)| {
        let Some(mut worn) = wear(kind, head, &words) else { return Ok(()) };
        worn.now -= u64::from(if far { back } else { back % 64 });
        let since = worn.now;
        let (ask, most) = (Ask::Hold(SlotId(99)), worn.config.lock_max().unwrap_or(0));
        let first = worn.bucket.take(&worn.limit, Time::from_nanos(since), &ask, false);
        let mut allowed = first.allowed;
        while !allowed && worn.now <= since + most {
            worn.now += 1;
            allowed = worn.bucket.take(&worn.limit, Time::from_nanos(worn.now), &ask, false).allowed;
        }
        let waited = worn.now - since;
        let told = match first.wait {
            Wait::None => Some(0),
            Wait::For(span) => Some(span.nanos()),
            Wait::Never => None,
        };
        match allowed && told == Some(waited) {
            true => Ok(()),
            false => Err(format!("{:?}: told {told:?}, waited {waited}, at most {most}", worn.config)),
        }
    });
}

#[test]
fn gcra_recovers_from_a_step_back_as_told() {
    recovers(LimitKind::Gcra);
}

#[test]
fn queue_recovers_from_a_step_back_as_told() {
    recovers(LimitKind::Queue);
}

#[test]
fn fixed_window_recovers_from_a_step_back_as_told() {
    recovers(LimitKind::FixedWindow);
}

#[test]
fn sliding_log_recovers_from_a_step_back_as_told() {
    recovers(LimitKind::SlidingLog);
}

#[test]
fn sliding_counter_recovers_from_a_step_back_as_told() {
    recovers(LimitKind::SlidingCounter);
}

#[test]
fn concurrency_recovers_from_a_step_back_as_told() {
    recovers(LimitKind::Concurrency);
}

#[test]
fn quota_recovers_from_a_step_back_as_told() {
    recovers(LimitKind::Quota);
}
