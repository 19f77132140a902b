//! The deny cache: a key that is refused until a known time is refused by this node until then.
//!
//! A hot refused key would otherwise cost the shared store a call for every refusal. The cache remembers the state of
//! the bucket, not the verdict, so that it is right for every cost; the refusal is computed each time. Usage only
//! grows, so a state that refuses now still refuses after charges of other nodes, with two exceptions: refunds and
//! operators. Because of those an entry is valid only for a short time.

use tollgate_core::{Ask, Charge, Digest, Limit, LimitKind, Outcome, Source, Span, Time, Wait};

use super::mirror::{Mirror, Observation};
use super::sharded::{DigestMap, Sharded, per_shard};
use crate::{Outcomes, Taken};

/// Buckets of requests that the shared store refused recently.
#[derive(Debug)]
pub(super) struct DenyCache {
    shards: Sharded<Shard>,
    ttl: Span,
    /// Entries per shard.
    most: usize,
}

#[derive(Debug, Default)]
struct Shard {
    entries: DigestMap<Entry>,
    hits: u64,
    swept: Time,
}

#[derive(Debug)]
struct Entry {
    known: Known,
    seen: Observation,
    /// A request is asking the store again.
    asked_again: bool,
}

/// What the cache knows of a bucket.
#[derive(Debug)]
enum Known {
    /// Its whole state.
    State(Mirror),
    /// Its outcome for one ask under one limit: valid for the same ask until the outcome would change.
    Answer(Box<(Outcome, Ask, Limit)>),
}

impl DenyCache {
    pub(super) fn new(ttl: Span, max_entries: usize) -> DenyCache {
        DenyCache { shards: Sharded::new(Shard::default), ttl, most: per_shard(max_entries) }
    }

    fn is_off(&self) -> bool {
        self.ttl.is_zero() || self.most == 0
    }

    /// Refuses a request of which every charge is known and at least one certainly refuses. Shortly before an entry
    /// expires, one request that `may_ask` is not answered, so that it asks the store while the entry still serves
    /// other requests.
    #[inline]
    pub(super) fn check(&self, charges: &[Charge], now: Time, may_ask: bool, outcomes: &mut Outcomes) -> Option<Taken> {
        if self.is_off() {
            return None;
        }
        let mut refused = None;
        for (place, charge) in charges.iter().enumerate() {
            let mut shard = self.shards.lock(charge.bucket);
            let Some((outcome, time)) = shard.look(charge, now, self.ttl, may_ask) else { break };
            outcomes.push(outcome);
            if !outcome.allowed && charge.is_enforced() {
                refused = Some(time);
            }
            if let (Some(now), true) = (refused, place + 1 == charges.len()) {
                shard.hits += 1;
                return Some(Taken::new(false, now));
            }
        }
        outcomes.clear();
        None
    }

    /// The outcome of `charge`, if it is known, and the store's time of it.
    #[inline]
    pub(super) fn look(&self, charge: &Charge, now: Time, may_ask: bool) -> Option<(Outcome, Time)> {
        match self.is_off() {
            true => None,
            false => self.shards.lock(charge.bucket).look(charge, now, self.ttl, may_ask),
        }
    }

    /// Remembers the buckets of a request that was refused.
    pub(super) fn remember(&self, charges: &[Charge], outcomes: &[Outcome], seen: Observation) {
        let known = |(charge, outcome): (&Charge, &Outcome)| is_plain(charge) && outcome.source == Source::Bucket;
        if self.is_off() || !charges.iter().zip(outcomes).all(known) {
            return self.refresh(charges, outcomes, seen);
        }
        for (charge, outcome) in charges.iter().zip(outcomes) {
            let known = match Mirror::of(&charge.limit, outcome) {
                Some(state) => Known::State(state),
                None => Known::Answer(Box::new((*outcome, charge.ask, charge.limit))),
            };
            let mut shard = self.shards.lock(charge.bucket);
            if shard.has_room(charge, seen.received, self.ttl, self.most) {
                let older = shard.entries.get(&charge.bucket).is_none_or(|entry| entry.seen.sent <= seen.sent);
                if older {
                    shard.entries.insert(charge.bucket, Entry { known, seen, asked_again: false });
                }
            }
        }
    }

    /// Updates entries after a request that passed or cannot be remembered: they are outdated.
    pub(super) fn refresh(&self, charges: &[Charge], outcomes: &[Outcome], seen: Observation) {
        if self.is_off() {
            return;
        }
        for (charge, outcome) in charges.iter().zip(outcomes) {
            let entries = &mut self.shards.lock(charge.bucket).entries;
            let Some(entry) = entries.get_mut(&charge.bucket) else { continue };
            match Mirror::of(&charge.limit, outcome).filter(|_| outcome.source == Source::Bucket) {
                Some(state) if entry.seen.sent <= seen.sent => {
                    *entry = Entry { known: Known::State(state), seen, asked_again: false };
                }
                Some(_) => {}
                None => drop(entries.remove(&charge.bucket)),
            }
        }
    }

    /// Drops the entry of a bucket: units were given back, or the bucket was forgotten.
    pub(super) fn forget(&self, bucket: Digest) {
        if !self.is_off() {
            self.shards.lock(bucket).entries.remove(&bucket);
        }
    }

    /// Drops expired entries.
    pub(super) fn sweep(&self, now: Time) {
        self.shards.each().for_each(|mut shard| shard.sweep(now, self.ttl));
    }

    /// Number of entries and of refusals.
    pub(super) fn figures(&self) -> (usize, u64) {
        self.shards.each().fold((0, 0), |(len, hits), shard| (len + shard.entries.len(), hits + shard.hits))
    }
}

impl Shard {
    #[inline]
    fn look(&mut self, charge: &Charge, now: Time, ttl: Span, may_ask: bool) -> Option<(Outcome, Time)> {
        let entry = self.entries.get_mut(&charge.bucket)?;
        let age = entry.seen.age(now);
        if age > ttl {
            self.entries.remove(&charge.bucket);
            return None;
        }
        if is_aging(age, ttl) && !entry.asked_again {
            entry.asked_again = may_ask;
            return None;
        }
        let answer = if is_plain(charge) { entry.answer(charge, now) } else { None };
        // A remembered refusal still holds, but another node may have used remembered room: a read-only ask goes to the
        // store.
        answer.filter(|(outcome, _)| !outcome.allowed || !matches!(charge.ask, Ask::Peek(_)))
    }

    /// True if there is room for the bucket; a full shard first drops expired entries, once per lifetime of an entry.
    fn has_room(&mut self, charge: &Charge, now: Time, ttl: Span, most: usize) -> bool {
        if self.entries.len() >= most && !self.entries.contains_key(&charge.bucket) {
            if now.since(self.swept) > ttl {
                self.sweep(now, ttl);
            }
            return self.entries.len() < most;
        }
        true
    }

    fn sweep(&mut self, now: Time, ttl: Span) {
        self.swept = now;
        self.entries.retain(|_, entry| entry.seen.age(now) <= ttl);
    }
}

impl Entry {
    #[inline]
    fn answer(&self, charge: &Charge, now: Time) -> Option<(Outcome, Time)> {
        let (latest, earliest) = (self.seen.latest(now), self.seen.earliest(now));
        let outcome = match &self.known {
            Known::State(state) => {
                let allowed = state.admits(&charge.limit, latest, &charge.ask);
                let outcome = state.view(&charge.limit, earliest, &charge.ask, allowed, 0)?;
                if state.is_beyond(&outcome, earliest) {
                    return None;
                }
                outcome
            }
            Known::Answer(answer) => {
                let (outcome, ask, limit) = &**answer;
                if ask.cost() != charge.ask.cost() || *limit != charge.limit {
                    return None; // a larger cost would be refused as well, but its wait is unknown
                }
                let outcome = aged(outcome, latest.since(self.seen.store_time), earliest.since(self.seen.store_time))?;
                // The stamp of a log is the time of its outcome.
                let stamp = if let Limit::SlidingLog(_) = limit { earliest } else { outcome.stamp };
                Outcome { stamp, ..outcome }
            }
        };
        Some((outcome, earliest))
    }
}

/// True in the last quarter of the lifetime: a request should ask the store again.
#[inline]
pub(super) fn is_aging(age: Span, ttl: Span) -> bool {
    age.nanos() > ttl.nanos() / 4 * 3
}

/// The outcome between `least` and `most` later. `None` if it may have changed.
fn aged(outcome: &Outcome, most: Span, least: Span) -> Option<Outcome> {
    let lasts = |span: Option<Span>| span.is_none_or(|span| most < span);
    let wait = match outcome.wait {
        Wait::For(span) if !lasts(Some(span)) => return None,
        Wait::For(span) => Wait::For(span.minus(least)),
        other => other,
    };
    let next_unit_after = outcome.next_unit_after.map(|span| span.minus(least));
    let reset_after = outcome.reset_after.minus(least);
    lasts(outcome.next_unit_after).then_some(Outcome { wait, next_unit_after, reset_after, granted: 0, ..*outcome })
}

/// True for a charge that records nothing if refused, and whose refusal depends only on its bucket.
#[inline]
fn is_plain(charge: &Charge) -> bool {
    let kind = charge.limit.kind();
    matches!(charge.ask, Ask::Consume(_) | Ask::Peek(_))
        && charge.soft.is_none()
        && !charge.count_denied
        && !charge.owner.is_overflowing()
        && kind != LimitKind::Concurrency
        && kind != LimitKind::Queue
}
