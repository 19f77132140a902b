//! SPEC 5.5: every entry is kept and counted again on each call.

use super::{Fate, Model, ModelAsk, Nanos, narrow};
use crate::{LimitConfig, SpecOutcome};

/// Time and cost, oldest first.
#[derive(Clone, Default)]
pub(super) struct ModelLog(Vec<(Nanos, u64)>);

fn numbers(config: &LimitConfig) -> (u64, Nanos) {
    let &LimitConfig::SlidingLog { limit, window } = config else { panic!("{config:?}") };
    (limit, window.into())
}

impl ModelLog {
    /// The log at `now`, and the time of new entries.
    fn seen(&self, window: Nanos, now: Nanos) -> (ModelLog, Nanos) {
        let newest = self.0.last().map_or(now, |(at, _)| *at);
        let shift = if newest - now >= window { newest - now } else { 0 };
        let at = now.max(newest - shift);
        let shifted = self.0.iter().map(|(time, cost)| (time - shift, *cost));
        (ModelLog(shifted.filter(|(time, _)| *time > at - window).collect()), at)
    }

    fn used(&self) -> u128 {
        self.0.iter().map(|(_, cost)| u128::from(*cost)).sum()
    }

    /// The entry whose departure brings the use down to `most`.
    fn down_to(&self, most: u64) -> Option<Nanos> {
        let leaves = |place: usize| self.0.iter().skip(place).map(|(_, cost)| u128::from(*cost)).sum::<u128>();
        (0..self.0.len()).find(|place| leaves(place + 1) <= u128::from(most)).map(|place| self.0[place].0)
    }

    /// A log is never longer than its limit: further units join the newest entry. Their sum fits 64 bits.
    fn push(&mut self, at: Nanos, cost: u64, limit: u64) {
        let full = self.0.len() as u64 >= limit.max(1);
        let cost = cost.min(u64::MAX - self.used() as u64);
        match self.0.last_mut() {
            _ if cost == 0 => {}
            Some(newest) if newest.0 == at || full => *newest = (at, newest.1 + cost),
            _ => self.0.push((at, cost)),
        }
    }
}

impl Model for ModelLog {
    fn ask(&mut self, config: &LimitConfig, now: Nanos, wish: ModelAsk) -> (SpecOutcome, u64) {
        let (limit, window) = numbers(config);
        let (mut log, at) = self.seen(window, now);
        let before = log.used();
        let room = u128::from(limit).saturating_sub(before) as u64;
        let allowed = before + u128::from(wish.least()) <= u128::from(limit);
        let fate = wish.fate(allowed, room);
        if let Fate::Charged(cost) | Fate::Forced(cost) = fate {
            log.push(at, cost, limit);
        }
        if fate != Fate::Read {
            *self = log.clone();
        }
        let used = log.used();
        let remaining = u128::from(limit).saturating_sub(used) as u64;
        let leaves_after = |time: Nanos| narrow(time + window - now);
        let retry_after = match allowed {
            true => Some(0),
            false if wish.least() > limit => None,
            false => log.down_to(limit - wish.least()).map(leaves_after),
        };
        let answer = SpecOutcome {
            allowed,
            limit,
            remaining,
            retry_after,
            reset_after: log.0.last().map_or(0, |(time, _)| leaves_after(*time)),
            next_unit: (remaining < limit).then(|| log.down_to(limit - remaining - 1).map(leaves_after)).flatten(),
            delay: allowed.then_some(0),
            in_use: u64::try_from(used).unwrap_or(u64::MAX),
        };
        (answer, u64::try_from(used - before).unwrap_or(u64::MAX))
    }

    fn refund(&mut self, config: &LimitConfig, now: Nanos, units: u64, stamp: Option<Nanos>) -> u64 {
        let (_, window) = numbers(config);
        *self = self.seen(window, now).0;
        let found = match stamp {
            None => self.0.last_mut(),
            Some(stamp) => self.0.iter_mut().find(|(at, _)| *at == stamp),
        };
        let back = found.map_or(0, |entry| {
            let back = units.min(entry.1);
            entry.1 -= back;
            back
        });
        self.0.retain(|(_, cost)| *cost > 0);
        back
    }
}
