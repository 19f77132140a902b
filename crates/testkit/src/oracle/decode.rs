//! Decodes raw words into a scenario, for property tests and fuzzing alike: what one finds the other replays.
//!
//! Small numbers make boundaries common: windows of a few dozen nanoseconds, limits of a few units. One scenario in
//! sixteen uses huge numbers instead. Zero decodes to the simplest step, so that shrinking leads there.

use tollgate_core::{Ask, LimitKind, SlotId};

use super::{Operation, Scenario, TimeStep};
use crate::LimitConfig;
use crate::model::ModelAsk;

/// A day in November 2023: looks like a real clock.
const TODAY: u64 = 1_700_000_000_000_000_000;

impl Scenario {
    /// The scenario that these words encode for this algorithm. Every word is valid.
    pub fn decode(kind: LimitKind, head: [u8; 8], words: &[u32]) -> Scenario {
        let [flags, start, scale, ..] = head;
        let is_huge = scale % 16 == 15;
        let start = match start % 8 {
            6 => u64::from(start / 8),
            7 if is_huge => u64::MAX - u64::from(start / 8),
            7 => u64::MAX - u64::from(start) * 8,
            _ if is_huge => u64::from(start) << 40,
            _ => TODAY + u64::from(start / 8),
        };
        let configs = (0..3).map(|place| config(kind, is_huge, start, head, place)).collect();
        let may = May { step_back: flags & 1 != 0, configure: flags & 2 != 0, force: flags & 4 != 0 };
        let mut scenario = Scenario { start, configs, steps: Vec::new() };
        scenario.steps = words.iter().map(|word| scenario.step(kind, may, word.to_le_bytes())).collect();
        scenario
    }

    fn step(&self, kind: LimitKind, may: May, [what, cost, time, amount]: [u8; 4]) -> (TimeStep, Operation) {
        let act = if kind == LimitKind::Concurrency {
            self.slot_act(may, what, cost)
        } else {
            self.rate_act(may, what, cost)
        };
        (self.pass(may, time, amount), act)
    }

    fn pass(&self, may: May, time: u8, amount: u8) -> TimeStep {
        let amount = u64::from(amount);
        let period = self.configs[0].lock_max().unwrap_or(64).clamp(8, 1 << 61);
        match time % 20 {
            0..=5 => TimeStep::On(0),
            6 | 7 => TimeStep::On(1),
            8 | 9 => TimeStep::On(amount % 8),
            10 | 11 => TimeStep::On(amount % 64),
            12 => TimeStep::On((period / 64).saturating_mul(amount)),
            13 => TimeStep::Retry,
            14 => TimeStep::AlmostRetry,
            15 => TimeStep::NextUnit,
            16 => TimeStep::Reset,
            17 if may.step_back => TimeStep::Back(amount % 64),
            18 if may.step_back => TimeStep::Back((period / 8).saturating_mul(amount)),
            19 if may.step_back => TimeStep::Back(u64::MAX >> (amount % 64)),
            _ => TimeStep::On(amount),
        }
    }

    fn rate_act(&self, may: May, what: u8, cost: u8) -> Operation {
        let n = self.cost(cost);
        let wish = |ask| Operation::Ask(ModelAsk { ask, count_denied: false });
        match what % 32 {
            16..=18 => wish(Ask::UpTo(n)),
            19..=21 => wish(Ask::Peek(n)),
            22 if may.force => wish(Ask::Force(n)),
            23 if may.force => Operation::Ask(ModelAsk { ask: Ask::Consume(n), count_denied: true }),
            24..=27 => Operation::Refund { receipt: usize::from(cost), half: what > 127 },
            28 | 29 if may.configure => Operation::Configure(usize::from(cost)),
            _ => wish(Ask::Consume(n)),
        }
    }

    fn slot_act(&self, may: May, what: u8, who: u8) -> Operation {
        let id = SlotId(u128::from(who % 6));
        let wish = |ask| Operation::Ask(ModelAsk { ask, count_denied: what > 200 });
        match what % 16 {
            8..=10 => Operation::Release(id),
            11 | 12 => wish(Ask::Renew(id)),
            13 => wish(Ask::Peek(u64::from(who % 3))),
            14 => wish(Ask::Consume(u64::from(who % 3))),
            15 if may.configure => Operation::Configure(usize::from(who)),
            _ => wish(Ask::Hold(id)),
        }
    }

    fn cost(&self, cost: u8) -> u64 {
        let (low, high) = (cost % 16, u64::from(cost / 16));
        let capacity = self.configs[0].capacity();
        match low {
            0..=6 => 1,
            7 => 0,
            8 => 2,
            9 => 3,
            10 => capacity / 2,
            11 => capacity,
            12 => capacity.saturating_add(1),
            13 => capacity.saturating_sub(1),
            14 => high,
            _ => [u64::MAX, 1 << 63, 1 << 53, 1000, capacity.saturating_mul(3)][high as usize % 5],
        }
    }
}

/// Which disturbances a scenario may contain. Without any, the bounds hold over its whole length.
#[derive(Clone, Copy)]
struct May {
    step_back: bool,
    configure: bool,
    force: bool,
}

/// The `place`-th limit of a scenario. Windows keep their length: another window is another bucket.
fn config(kind: LimitKind, is_huge: bool, start: u64, head: [u8; 8], place: u8) -> LimitConfig {
    let [_, _, _, a, b, c, d, e] = head.map(u64::from);
    let nth = u64::from(place);
    let small_limit = (b + 5 * nth + 1) % 10;
    if kind == LimitKind::Quota {
        return quota(is_huge, start, head, place);
    }
    if is_huge {
        return huge(kind, [a, b, c, d + nth]);
    }
    let (window, offset) = (a % 50 + 1, c % 64);
    match kind {
        LimitKind::Gcra => {
            let count = (a + nth) % 5 + u64::from(e % 16 != 15);
            LimitConfig::Gcra {
                count,
                period: count.max(1) + (c + 17 * nth) % 60,
                burst: small_limit,
                max_debt: d % 5,
                clamp: e % 8 != 7,
            }
        }
        LimitKind::Queue => {
            let count = (a + nth) % 5 + u64::from(e % 16 != 15);
            LimitConfig::Queue { count, period: count.max(1) + (c + 17 * nth) % 60, max_delay: (b + 13 * nth) % 80 }
        }
        LimitKind::FixedWindow => LimitConfig::FixedWindow { limit: small_limit, window, offset },
        LimitKind::SlidingLog => LimitConfig::SlidingLog { limit: small_limit, window },
        LimitKind::SlidingCounter => LimitConfig::SlidingCounter { limit: small_limit, window, offset },
        LimitKind::Concurrency => LimitConfig::Concurrency { slots: (b + nth) % 5, ttl: (a + 11 * nth) % 40 + 1 },
        LimitKind::Quota => quota(false, start, head, place),
    }
}

fn huge(kind: LimitKind, [a, b, c, d]: [u64; 4]) -> LimitConfig {
    const SPANS: [u64; 5] = [i64::MAX as u64, 1 << 61, 1 << 53, 86_400_000_000_000, (1 << 59) - 1];
    const LIMITS: [u64; 5] = [u64::MAX, 1 << 63, 1 << 53, 1_000_000, (1 << 62) - 1];
    let (window, limit) = (SPANS[a as usize % 5], LIMITS[(b + d) as usize % 5]);
    match kind {
        LimitKind::Gcra => {
            const BUCKETS: [(u64, u64, u64); 5] = [
                (1, i64::MAX as u64, 1),
                (1, 1, i64::MAX as u64),
                (1 << 62, 1 << 62, 1 << 53),
                (1, 1 << 53, 511),
                (3, 1 << 40, 1 << 20),
            ];
            let (count, period, burst) = BUCKETS[(b + d) as usize % 5];
            LimitConfig::Gcra { count, period, burst, max_debt: 0, clamp: c % 8 != 7 }
        }
        LimitKind::Queue => {
            let (count, period, max_delay) =
                [(1, 1 << 60, 1 << 61), (1, 1, 1 << 60), (7, 1 << 53, 1 << 53), (1, i64::MAX as u64, 0)]
                    [(b + d) as usize % 4];
            LimitConfig::Queue { count, period, max_delay }
        }
        LimitKind::FixedWindow => LimitConfig::FixedWindow { limit, window, offset: c << 53 },
        LimitKind::SlidingLog => LimitConfig::SlidingLog { limit: [10_000, 9_999, 1][(b + d) as usize % 3], window },
        LimitKind::SlidingCounter => LimitConfig::SlidingCounter { limit, window, offset: c << 53 },
        LimitKind::Concurrency => LimitConfig::Concurrency { slots: limit, ttl: window },
        LimitKind::Quota => unreachable!("quotas are decoded beside their start"),
    }
}

/// The `place`-th quota of a scenario that starts at `start`: of a node in the period before or after, of another
/// calendar, with another amount, or for a lifetime.
fn quota(is_huge: bool, start: u64, head: [u8; 8], place: u8) -> LimitConfig {
    const FOREVER: u64 = i64::MAX as u64;
    let [_, _, _, a, b, c, d, e] = head.map(u64::from);
    let nth = u64::from(place);
    let (amount, scale) = match is_huge {
        true => ([u64::MAX, 1 << 63, 1 << 53, 1_000_000, 7][(b + nth) as usize % 5], 1 << (a % 48)),
        false => ((b + 5 * nth) % 10, 1),
    };
    let share = |part: u64| if is_huge { (amount / 8).saturating_mul(part % 16) } else { part % 7 };
    let (overdraft, rollover, grant) = (share(d), share(d / 16), share(b / 10 + nth * (b / 128)));
    // Periods of three lengths that repeat, the second of which contains the start of the scenario.
    let lengths = [a % 40 + 1, c % 40 + 1, a / 40 + c / 40 + 1].map(|length| length * scale);
    let skew = if e & 1 == 0 { nth } else { [1, 0, 2][place as usize] };
    let mut from = start.saturating_sub((e / 8 % 8) * scale + lengths[0]);
    from = from.saturating_add(if e & 2 == 0 { 0 } else { nth * scale }); // another anchor
    let bounds: Vec<u64> =
        (0..5).map(|period| from.saturating_add((0..period).map(|period| lengths[period % 3]).sum())).collect();
    let [start, end, next_end] = [0, 1, 2].map(|at| bounds[at + skew as usize]);
    match e & 4 != 0 && place == 2 || next_end > FOREVER || end == next_end {
        true => LimitConfig::Quota { amount, overdraft, rollover, grant, start: 0, end: FOREVER, next_end: FOREVER },
        false => LimitConfig::Quota { amount, overdraft, rollover, grant, start, end, next_end },
    }
}
