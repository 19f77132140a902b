//! Counts of denials in memory.
//!
//! A count is found by a digest of client, rule and minute, so that long texts of callers are neither copied nor
//! compared, and a repeated denial allocates nothing.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tollgate_control::{Instant, Violation};
use tollgate_core::{Charge, Digest, KeyHasher, Purpose, Request, Secret, Time};
use tollgate_engine::{Decision, Ruling, Verdict};

use super::ViolationMetrics;
use super::client::{self, ViolationClient};

/// Most counts between two flushes: 20 MiB if every text in them is as long as can be, and 2 MiB as they usually are.
const ENTRIES_MAX: usize = 10_000;
/// Shards, so that denials of different clients rarely contend.
const SHARDS: usize = 16;

const MINUTE_NANOS: u64 = 60_000_000_000;

/// Counts refusals by client, rule and minute.
pub struct Violations {
    shards: [Mutex<HashMap<Digest, Violation>>; SHARDS],
    /// How many there are in all shards.
    entries: AtomicUsize,
    hasher: KeyHasher,
    metrics: Arc<ViolationMetrics>,
}

impl Violations {
    /// Empty counts. Dropped denials are counted in `metrics`.
    pub fn new(metrics: Arc<ViolationMetrics>) -> Violations {
        // A random secret: no caller can construct a collision.
        let random = RandomState::new();
        let secret = [random.hash_one(0), random.hash_one(1)].map(u64::to_le_bytes).concat();
        let secret = Secret::new(secret.try_into().unwrap_or_default());
        Violations {
            shards: std::array::from_fn(|_| Mutex::default()),
            entries: AtomicUsize::new(0),
            hasher: KeyHasher::new(secret),
            metrics,
        }
    }

    /// Counts a decision at every rule that denied, including shadow rules, which are marked. A denial by policy while
    /// the store is away is no violation; neither is that of a peek.
    #[inline]
    pub fn decided(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
        if matches!(decision.verdict, Verdict::Deny) || decision.rulings().iter().any(Ruling::refused) {
            self.count_denials(requests, decision, charges);
        }
    }

    fn count_denials(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
        if matches!(decision.verdict, Verdict::Invalid(_)) {
            return;
        }
        let mut found = false;
        for ruling in decision.rulings().iter().filter(|ruling| ruling.refused()) {
            // An enforced rule that denied an allowed request did so for a report after the fact.
            if ruling.enforced && !matches!(decision.verdict, Verdict::Deny) {
                continue;
            }
            found |= ruling.enforced;
            self.count(requests, decision, ruling, charges);
        }
        // Requests that exceed the limit only together have no denying rule of their own.
        if matches!(decision.verdict, Verdict::Deny)
            && let Some(ruling) = decision.deciding().filter(|_| !found)
        {
            self.count(requests, decision, ruling, charges);
        }
    }

    fn count(&self, requests: &[Request<'_>], decision: &Decision, ruling: &Ruling, charges: &[Charge]) {
        let Some(request) = requests.get(usize::from(ruling.request)) else { return };
        let Some(rule) = decision.rule(ruling) else { return };
        let Some(outcome) = &ruling.outcome else { return };
        if matches!(request.purpose, Purpose::Peek | Purpose::Mention) {
            return;
        }
        let minute = decision.wall.nanos() / MINUTE_NANOS;
        let client = ViolationClient::of(request);
        let mut hasher = self.hasher;
        hasher.part(rule.namespace.as_bytes());
        hasher.part(rule.name.as_bytes());
        client.hash(&mut hasher);
        hasher.part(&minute.to_le_bytes());
        hasher.part(&[u8::from(ruling.enforced)]);
        let digest = hasher.finish();
        let Some(shard) = self.shards.get(digest.0[0] as usize % SHARDS) else { return };
        // What the rule was asked for: its meter and its costs say that. Requests decided together may share a charge.
        let charged = ruling.charge().and_then(|place| charges.get(place)).filter(|_| requests.len() == 1);
        let asked = charged.map(|charge| charge.ask.cost()).or_else(|| rule.metered(request)).unwrap_or(request.cost);
        let count = Denial {
            at: decision.wall.into(),
            limit_value: whole(ruling.requests),
            request_count: whole(outcome.used.max(outcome.limit).saturating_add(asked.max(1))),
        };
        if let Some(known) = shard.lock().get_mut(&digest) {
            return count.add_to(known);
        }
        // Shadow denials may take half of the room: real denials always have some.
        let most = if ruling.enforced { ENTRIES_MAX } else { ENTRIES_MAX / 2 };
        if self.entries.load(Ordering::Relaxed) >= most {
            return self.metrics.dropped(1); // before anything is allocated
        }
        let first = Violation {
            namespace: rule.namespace.clone(),
            client_key: client.text(),
            endpoint: client::path(request),
            rule_id: Some(rule.name.clone()),
            is_shadow: !ruling.enforced,
            minute: Time::from_nanos(minute * MINUTE_NANOS).into(),
            last: count.at,
            refused: 1,
            request_count: count.request_count,
            limit_value: count.limit_value,
        };
        self.add(shard, digest, first, &count);
    }

    /// Adds an entry, if there is room; another thread may have been quicker.
    fn add(&self, shard: &Mutex<HashMap<Digest, Violation>>, digest: Digest, first: Violation, count: &Denial) {
        let mut shard = shard.lock();
        if let Some(known) = shard.get_mut(&digest) {
            count.add_to(known);
        } else if self.entries.fetch_add(1, Ordering::Relaxed) < ENTRIES_MAX {
            shard.insert(digest, first);
        } else {
            self.entries.fetch_sub(1, Ordering::Relaxed);
            drop(shard);
            self.metrics.dropped(1);
        }
    }

    /// Takes all counts; the next denial starts a new one.
    pub fn drain(&self) -> Vec<Violation> {
        let mut drained = Vec::new();
        for shard in &self.shards {
            let counted = std::mem::take(&mut *shard.lock());
            self.entries.fetch_sub(counted.len(), Ordering::Relaxed);
            drained.extend(counted.into_values());
        }
        drained
    }
}

impl fmt::Debug for Violations {
    /// Without client keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Violations").field("entries", &self.entries).finish_non_exhaustive()
    }
}

/// One denial.
struct Denial {
    at: Instant,
    limit_value: i64,
    request_count: i64,
}

impl Denial {
    fn add_to(&self, known: &mut Violation) {
        known.refused += 1;
        known.last = known.last.max(self.at);
        known.limit_value = self.limit_value;
        known.request_count = known.request_count.max(self.request_count);
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
