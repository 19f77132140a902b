//! Denials on their way to being counted, and the penalties that they bring.
//!
//! Denials of one bucket wait as one entry, so a client that is refused a thousand times costs one call. Rules take turns,
//! and a full queue drops from the rule with the most entries: a flood of clients at one rule takes nothing from another.
//! Within that rule the entry with fewer denials of two random ones goes: a client that comes back outlasts a flood of
//! clients that were refused once.

use std::collections::{BTreeMap, HashMap, VecDeque};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tollgate_core::{Charge, Digest, Span, Time};
use tollgate_ruleset::PenaltyCharges;

/// Most buckets whose denials wait to be counted.
pub(crate) const WAITING_MAX: usize = 4096;

/// A penalty that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Penalty {
    /// The namespace of the rule.
    pub namespace: String,
    /// The rule.
    pub rule: String,
    /// The client, as the observer names it.
    pub client: String,
    /// The bucket whose denials brought it.
    pub bucket: Charge,
    /// How many penalties of this bucket are remembered, this one included.
    pub number: u64,
    /// When it began, by the wall clock of this node.
    pub begun: Time,
    /// How long it lasts.
    pub lasts: Span,
}

/// Why denials were not counted towards a penalty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncountedReason {
    /// More buckets had denials to count than the queue holds.
    QueueFull,
    /// The store did not answer.
    StoreFailed,
}

/// Denials of one bucket that wait to be counted.
#[derive(Debug)]
pub(crate) struct CountedDenials {
    pub(crate) namespace: String,
    pub(crate) rule: String,
    pub(crate) client: String,
    pub(crate) bucket: Charge,
    pub(crate) charges: PenaltyCharges,
    pub(crate) count: u64,
}

/// Denials that wait to be counted.
#[derive(Debug, Default)]
pub(crate) struct DenialQueue {
    waiting: Mutex<WaitingDenials>,
    added: Notify,
}

#[derive(Debug, Default)]
struct WaitingDenials {
    by_bucket: HashMap<Digest, CountedDenials>,
    /// The buckets of each rule, in the order of their turns; no rule without a bucket.
    by_rule: BTreeMap<u32, VecDeque<Digest>>,
    /// The rule whose turn it was.
    last_rule: u32,
}

impl DenialQueue {
    /// Adds a denial to those of its bucket, if some wait.
    pub(crate) fn join(&self, bucket: Digest) -> bool {
        let mut waiting = self.waiting.lock();
        let entry = waiting.by_bucket.get_mut(&bucket);
        entry.map(|entry| entry.count = entry.count.saturating_add(1)).is_some()
    }

    /// Adds denials of a bucket. Returns those that were dropped for them. `random` chooses these.
    #[must_use]
    pub(crate) fn push(&self, denials: CountedDenials, random: u64) -> Option<CountedDenials> {
        let dropped = self.waiting.lock().push(denials, random);
        self.added.notify_one();
        dropped
    }

    /// The denials whose turn it is; waits for some.
    pub(crate) async fn next(&self) -> CountedDenials {
        loop {
            let next = self.waiting.lock().pop();
            match next {
                Some(denials) => return denials,
                None => self.added.notified().await,
            }
        }
    }
}

impl WaitingDenials {
    fn push(&mut self, denials: CountedDenials, random: u64) -> Option<CountedDenials> {
        let (bucket, rule) = (denials.bucket.bucket, denials.bucket.owner.id);
        if let Some(entry) = self.by_bucket.get_mut(&bucket) {
            entry.count = entry.count.saturating_add(denials.count);
            return None;
        }
        let dropped = if self.by_bucket.len() < WAITING_MAX { None } else { self.evict(random) };
        self.by_bucket.insert(bucket, denials);
        self.by_rule.entry(rule).or_default().push_back(bucket);
        dropped
    }

    fn pop(&mut self) -> Option<CountedDenials> {
        let after = self.last_rule.checked_add(1).and_then(|after| self.by_rule.range(after..).next());
        let (&rule, _) = after.or_else(|| self.by_rule.iter().next())?;
        self.last_rule = rule;
        self.remove(rule, 0)
    }

    /// Drops an entry of the rule with the most entries.
    fn evict(&mut self, random: u64) -> Option<CountedDenials> {
        let (&rule, buckets) = self.by_rule.iter().max_by_key(|(_, buckets)| buckets.len())?;
        let place = |random: u64| ((u128::from(random) * buckets.len() as u128) >> 64) as usize;
        let denials =
            |place: &usize| buckets.get(*place).and_then(|bucket| self.by_bucket.get(bucket)).map(|one| one.count);
        let (one, other) = (place(random), place(random.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let victim = [one, other].into_iter().min_by_key(denials)?;
        self.remove(rule, victim)
    }

    fn remove(&mut self, rule: u32, place: usize) -> Option<CountedDenials> {
        let buckets = self.by_rule.get_mut(&rule)?;
        let bucket = match place {
            0 => buckets.pop_front(),
            _ => buckets.swap_remove_back(place),
        };
        if buckets.is_empty() {
            self.by_rule.remove(&rule);
        }
        self.by_bucket.remove(&bucket?)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Limit, Owner};

    use super::*;
    use crate::rules_from_yaml;

    /// Denials of this bucket at this rule.
    fn denials(rule: u32, bucket: u64) -> CountedDenials {
        let yaml = "rules: [{ name: a, limit: { requests: 1, window: 1s, algorithm: fixed_window }, penalty: { after: 3, within: 1s, block: 1m } }]";
        let rules = rules_from_yaml(yaml).unwrap();
        let charge = Charge {
            owner: Owner::new(rule),
            ..Charge::new(Digest([u64::from(rule), bucket]), Limit::per_second(1).unwrap(), 1)
        };
        let charges = PenaltyCharges::of(&rules.rules()[0], &charge).unwrap();
        let text = String::new;
        CountedDenials { namespace: text(), rule: text(), client: text(), bucket: charge, charges, count: 1 }
    }

    fn full_of(rule: u32) -> WaitingDenials {
        let mut waiting = WaitingDenials::default();
        for bucket in 0..WAITING_MAX as u64 {
            assert!(waiting.push(denials(rule, bucket), 0).is_none());
        }
        waiting
    }

    #[test]
    fn denials_of_one_bucket_wait_as_one() {
        let queue = DenialQueue::default();
        assert!(!queue.join(Digest([1, 7])));
        assert!(queue.push(denials(1, 7), 0).is_none() && queue.push(denials(1, 7), 0).is_none());
        assert!(queue.join(Digest([1, 7])));
        let mut waiting = queue.waiting.lock();
        assert_eq!(waiting.pop().map(|one| one.count), Some(3));
        assert!(waiting.pop().is_none() && waiting.by_rule.is_empty());
    }

    #[test]
    fn a_flood_at_one_rule_takes_neither_room_nor_turns_from_another() {
        let mut waiting = full_of(1);
        let dropped = waiting.push(denials(2, 0), 5).expect("one is dropped");
        assert_eq!(dropped.bucket.owner.id, 1);
        for bucket in 0..100 {
            assert_eq!(waiting.push(denials(1, 10_000 + bucket), bucket << 50).unwrap().bucket.owner.id, 1);
        }
        assert_eq!(waiting.by_bucket.len(), WAITING_MAX);
        let turns = [waiting.pop().unwrap(), waiting.pop().unwrap()].map(|one| one.bucket.owner.id);
        assert!(turns.contains(&2), "{turns:?}");
    }

    #[test]
    fn a_client_that_comes_back_outlasts_a_flood_of_others() {
        let mut waiting = full_of(1);
        for _ in 0..3 {
            let _ = waiting.push(denials(1, 77), 0);
        }
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for bucket in 0..20_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let dropped = waiting.push(denials(1, 1_000_000 + bucket), random).expect("one is dropped");
            assert_eq!(dropped.count, 1, "the flood drops its own");
        }
        assert_eq!(waiting.by_bucket[&Digest([1, 77])].count, 4);
    }
}
