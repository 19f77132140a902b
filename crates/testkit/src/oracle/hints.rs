//! SPEC 0.2 by search: the hints of an outcome are compared with what the bucket does when asked again, now and later.
//!
//! Only `admits` and `view` at other times are used, never a formula, so that no algorithm can be wrong in the same way.

use tollgate_core::{Ask, Limit, Outcome, Quota, Time, Wait};

use crate::{Bucket, LimitConfig};

/// A bucket right after an outcome. Its state is settled: the clock has not stepped back since the last write.
pub(super) struct HintCheck<'a> {
    pub bucket: &'a Bucket,
    pub config: &'a LimitConfig,
    pub limit: &'a Limit,
    pub now: Time,
    pub ask: &'a Ask,
    pub told: &'a Outcome,
}

impl HintCheck<'_> {
    /// Checks all hints.
    pub fn hold(&self) -> Result<(), String> {
        self.remaining()?;
        self.wait()?;
        self.lock()?;
        self.next_unit()?;
        self.reset()
    }

    /// `remaining` is the largest cost that passes; for a queue, the number of callers that may still join.
    fn remaining(&self) -> Result<(), String> {
        let left = self.told.remaining;
        if matches!(self.limit, Limit::Queue(_)) {
            return self.joins(left);
        }
        let one_slot = matches!(self.limit, Limit::Concurrency(_)); // all costs count as one slot
        let hidden = if let Limit::Quota(quota) = self.limit { quota.overdraft() } else { 0 };
        if left > 0 && !self.admits(0, if one_slot { 1 } else { left }) {
            return Err(format!("remaining {left} does not pass"));
        }
        match left.checked_add(hidden).and_then(|most| most.checked_add(1)) {
            Some(more) if self.admits(0, more) && !(one_slot && left > 0) => {
                Err(format!("remaining is {left}, yet {more} pass"))
            }
            _ => Ok(()),
        }
    }

    fn joins(&self, left: u64) -> Result<(), String> {
        let mut queue = self.bucket.clone();
        let joined =
            (0..=left.min(100)).take_while(|_| queue.take(self.limit, self.now, &Ask::Consume(1), false).allowed);
        match joined.count() as u64 {
            count if count == left || left > 100 => Ok(()),
            count => Err(format!("remaining is {left}, yet {count} joined")),
        }
    }

    /// Waiting exactly as told passes, one nanosecond less does not; `never` is never.
    fn wait(&self) -> Result<(), String> {
        let Outcome { allowed, wait, reset_after, .. } = *self.told;
        let passes =
            |after: u64| self.bucket_after(after).is_some_and(|at| self.bucket.admits(self.limit, at, self.ask));
        match wait {
            Wait::None if allowed => Ok(()),
            _ if allowed => Err(format!("allowed, and told to wait: {wait:?}")),
            Wait::None => Err("refused, and told to come at once".to_owned()),
            Wait::For(span) if span.is_zero() => Err("refused, and told to wait for no time".to_owned()),
            Wait::For(span) if self.bucket_after(span.nanos()).is_none() => Ok(()),
            Wait::For(span) if !passes(span.nanos()) => Err(format!("waited {span} as told, refused again")),
            Wait::For(span) if passes(span.nanos() - 1) => Err(format!("told to wait {span}, passes 1 ns earlier")),
            Wait::For(_) => Ok(()),
            Wait::Never => {
                let ages = [1, reset_after.nanos()];
                let much_later = reset_after.nanos().saturating_add(1 << 40);
                match ages.into_iter().find(|after| passes(*after)).or_else(|| self.passes_ungranted(much_later)) {
                    Some(after) => Err(format!("never, it said; passes after {after} ns")),
                    None => Ok(()),
                }
            }
        }
    }

    /// The age, if the bucket admits the ask then. Without a grant: the one of a period after the next is not foreseen.
    fn passes_ungranted(&self, after: u64) -> Option<u64> {
        let limit = match *self.limit {
            Limit::Quota(quota) => Limit::Quota(quota.with_grant(0)),
            other => other,
        };
        self.bucket_after(after).filter(|at| self.bucket.admits(&limit, *at, self.ask)).map(|_| after)
    }

    /// P20: no caller waits longer than a small multiple of the period, whatever the clock did.
    fn lock(&self) -> Result<(), String> {
        match (self.told.wait, self.config.lock_max()) {
            (Wait::For(span), Some(most)) if span.nanos() > most => {
                Err(format!("locked for {span}, at most {most} ns"))
            }
            _ => Ok(()),
        }
    }

    fn next_unit(&self) -> Result<(), String> {
        let left = self.told.remaining;
        if matches!(self.limit, Limit::Concurrency(_)) {
            return Ok(());
        }
        let later = |after: u64| self.bucket_after(after).map(|at| self.bucket.peek(self.limit, at, 0).remaining);
        let Some(span) = self.told.next_unit_after else {
            let grows = later(self.told.reset_after.nanos()).is_some_and(|later| later > left);
            return if grows { Err("remaining grows, and no time was told".to_owned()) } else { Ok(()) };
        };
        match (later(span.nanos()), later(span.nanos().wrapping_sub(1))) {
            _ if span.is_zero() => Err("the next unit comes in no time".to_owned()),
            (Some(then), _) if then <= left => Err(format!("no unit more after {span}, as told")),
            (_, Some(before)) if before != left => Err(format!("next unit told after {span}, comes before")),
            _ => Ok(()),
        }
    }

    /// At the reset the bucket equals a fresh one, and a nanosecond earlier it does not. A window and a calendar's
    /// period always report their end.
    fn reset(&self) -> Result<(), String> {
        let after = self.told.reset_after;
        let is_window = matches!(self.limit, Limit::FixedWindow(_) | Limit::Quota(_));
        let Some(then) = self.bucket_after(after.nanos()) else { return Ok(()) };
        let full = self.limit.capacity().min(self.told.limit); // without units that are carried once
        if full > 0 && !self.bucket.admits(self.limit, then, &Ask::Consume(full)) {
            return Err(format!("the full limit does not pass after {after}, the reset told"));
        }
        let early = Time::from_nanos(then.nanos().wrapping_sub(1));
        let one_slot = matches!(self.limit, Limit::Concurrency(_));
        match after.is_zero() || is_window || full == 0 || one_slot || matches!(self.limit, Limit::Queue(_)) {
            false if self.bucket.admits(self.limit, early, &Ask::Consume(full)) => {
                Err(format!("the full limit passes 1 ns before {after}, the reset told"))
            }
            _ if !after.is_zero() && !is_window && full > 0 && self.bucket.is_fresh(early) => {
                Err(format!("fresh 1 ns before {after}, the reset told"))
            }
            _ => super::freshness::is_as_unused(self.bucket, self.limit, then),
        }
    }

    fn admits(&self, after: u64, cost: u64) -> bool {
        self.bucket_after(after).is_some_and(|at| self.bucket.admits(self.limit, at, &Ask::Peek(cost)))
    }

    /// The time `after` nanoseconds, unless it overflows or is after the end of a quota that never ends.
    fn bucket_after(&self, after: u64) -> Option<Time> {
        let at = self.now.nanos().checked_add(after).map(Time::from_nanos);
        let is_over =
            |at: Time| matches!(self.limit, Limit::Quota(quota) if quota.end() == Quota::FOREVER && at >= quota.end());
        at.filter(|at| !is_over(*at))
    }
}
