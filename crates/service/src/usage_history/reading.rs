//! What is known of the usage of one bucket in one period.

use tollgate_control::{Instant, PeriodUsage};
use tollgate_core::{Ask, Charge, Digest, Enforcement, Limit, Outcome, Quota, Sharing, Time};
use tollgate_ruleset::Rule;

/// A bucket of a quota and one of its periods.
pub(super) type PeriodKey = (Digest, Time);

/// A bucket whose usage changed in a period.
#[derive(Clone, Debug)]
pub(super) struct ChangedBucket {
    /// Reads it.
    pub(super) read: Charge,
    /// Its rule and client; `None` where a settlement named the bucket alone.
    pub(super) owner: Option<BucketOwner>,
    /// The latest usage that the store answered with.
    pub(super) seen: Option<SeenUsage>,
    /// Usage may be less than what was seen last: it must be read.
    pub(super) must_read: bool,
}

/// Whose bucket it is, in plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BucketOwner {
    pub(super) namespace: String,
    pub(super) rule: String,
    pub(super) client: Option<String>,
    pub(super) organisation: Option<String>,
}

impl BucketOwner {
    /// The owner as far as the rule alone tells.
    pub(super) fn of_rule(rule: &Rule) -> BucketOwner {
        let (namespace, rule) = (rule.namespace.clone(), rule.name.clone());
        BucketOwner { namespace, rule, client: None, organisation: None }
    }
}

/// Usage as the store said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenUsage {
    pub(super) used: u64,
    pub(super) limit: u64,
    pub(super) as_of: Time,
}

impl SeenUsage {
    pub(super) fn of(outcome: &Outcome, as_of: Time) -> SeenUsage {
        SeenUsage { used: outcome.used, limit: outcome.limit, as_of }
    }
}

impl ChangedBucket {
    /// A bucket of a quota that a charge names; `None` for another limit.
    pub(super) fn of(charge: &Charge) -> Option<ChangedBucket> {
        let Limit::Quota(_) = charge.limit else { return None };
        let (sharing, enforcement) = (Sharing::Exact, Enforcement::Enforce);
        let read = Charge { ask: Ask::Peek(0), sharing, enforcement, soft: None, count_denied: false, ..*charge };
        Some(ChangedBucket { read, owner: None, seen: None, must_read: false })
    }

    /// The end of the period that the charge proposed.
    pub(super) fn proposed_end(&self) -> Time {
        if let Limit::Quota(quota) = &self.read.limit { quota.end() } else { Time::ZERO }
    }

    /// Notes a later or earlier answer of the store. Charges only add: of answers without a refund in between the
    /// highest is the latest, whatever the order in which threads note them.
    pub(super) fn note(&mut self, seen: SeenUsage) {
        self.seen = Some(match self.seen {
            None => seen,
            Some(known) if self.must_read => {
                let is_later = (seen.as_of, seen.used) > (known.as_of, known.used);
                if is_later { seen } else { known }
            }
            Some(known) => {
                let higher = if seen.used >= known.used { seen } else { known };
                SeenUsage { as_of: seen.as_of.max(known.as_of), ..higher }
            }
        });
    }

    /// Adds what a later note of the same bucket and period knows.
    pub(super) fn join(&mut self, later: ChangedBucket) {
        self.must_read |= later.must_read;
        self.read = later.read;
        if let Some(seen) = later.seen {
            self.note(seen);
        }
        self.owner = self.owner.take().or(later.owner);
    }

    /// Takes over what was read under another key, unless a later answer was noted.
    pub(super) fn read_again(&mut self, read: ChangedBucket) {
        let is_later = |known: SeenUsage| read.seen.is_some_and(|seen| seen.as_of >= known.as_of);
        if self.seen.is_none_or(is_later) {
            self.seen = read.seen;
        }
        self.owner = self.owner.take().or(read.owner);
    }

    /// The row of this reading; `None` if the store said nothing yet. `client` spells client keys as they are stored.
    pub(super) fn row(&self, key: &PeriodKey, node: &str, client: impl Fn(&str) -> String) -> Option<PeriodUsage> {
        let (bucket, end) = *key;
        let seen = self.seen?;
        let owner = self.owner.as_ref();
        let stored = |text: Option<&String>| text.map(|text| client(text));
        Some(PeriodUsage {
            bucket: hex(bucket),
            node: node.to_owned(),
            namespace: owner.map_or_else(String::new, |owner| owner.namespace.clone()),
            rule_id: owner.map_or_else(String::new, |owner| owner.rule.clone()),
            client_key: stored(owner.and_then(|owner| owner.client.as_ref())),
            organisation: stored(owner.and_then(|owner| owner.organisation.as_ref())),
            period_start: start(&self.read.limit, end).map(Instant::from),
            period_end: Instant::from(end),
            used: units(seen.used),
            limit_value: Some(units(seen.limit)),
            as_of: Instant::from(seen.as_of),
        })
    }
}

/// The start of the period that ends at `end`, if the charge proposed it.
fn start(limit: &Limit, end: Time) -> Option<Time> {
    let Limit::Quota(quota) = limit else { return None };
    let known = match end {
        Quota::FOREVER => None,
        end if end == quota.end() => Some(quota.start()),
        end if end == quota.next_end() => Some(quota.end()),
        _ => None,
    };
    known.filter(|start| *start > Time::ZERO)
}

/// Units as the database counts them.
pub(super) fn units(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

/// A digest as text.
pub(super) fn hex(digest: Digest) -> String {
    let [high, low] = digest.0;
    format!("{high:016x}{low:016x}")
}
