//! What a client has used of every rule that may apply to it. Charges nothing.

use tollgate_core::{Ask, Charge, Enforcement, Limit, Outcome, Request, Sharing, Span, Time};
use tollgate_ruleset::{ClientBuckets, RequestError};
use tollgate_store::{Outcomes, Store, StoreError};

use crate::{Engine, Pinned};

/// The usage of one rule.
#[derive(Clone, Debug)]
pub struct RuleUsage {
    /// Its name.
    pub rule: String,
    /// The meters that it counts, with their weights.
    pub meter: Vec<(String, u64)>,
    /// Units or slots in use.
    pub used: u64,
    /// The capacity for this client.
    pub limit: u64,
    /// Units of `limit` that were granted once.
    pub granted: u64,
    /// Room left.
    pub remaining: u64,
    /// Until the bucket is as if unused; for a quota, until the period ends.
    pub reset_after: Span,
    /// The period of a quota, by wall time; without an end if it never starts anew.
    pub period: Option<(Time, Option<Time>)>,
    /// Attributes of its conditions that were not given, and are assumed to hold.
    pub assumed: Vec<String>,
    /// False for a shadow rule.
    pub enforced: bool,
}

/// Why there is no usage.
#[derive(Debug)]
pub enum UsageError {
    /// The request cannot be read.
    Invalid(RequestError),
    /// The store did not answer.
    Store(StoreError),
}

/// A read of every bucket, with the index of its rule.
type BucketReads = Vec<(usize, Charge)>;

/// Most buckets that one call of the store reads: a larger one would block it for others.
const BUCKETS_PER_CALL: usize = 64;

impl<S: Store> Engine<S> {
    /// The usage of every rule that has a bucket for the client of `request`, with the generation of the rules and the
    /// wall time. Rules without a limit for it are left out.
    pub async fn usage(&self, request: &Request<'_>) -> Result<(Vec<RuleUsage>, u64, Time), UsageError> {
        let pinned = self.generations.pin();
        let wall = self.wall();
        let (mut rules, charges) = buckets(&pinned, request, wall, self.store.is_shared())?;
        let mut seen: Vec<Outcome> = Vec::with_capacity(charges.len());
        for part in charges.chunks(BUCKETS_PER_CALL) {
            let part: Vec<Charge> = part.iter().map(|(_, charge)| *charge).collect();
            let mut outcomes = Outcomes::new();
            let _ = self.ask(&part, &mut outcomes).await.map_err(UsageError::Store)?;
            seen.extend(outcomes.iter());
        }
        for ((rule, _), outcome) in charges.iter().zip(&seen) {
            let Some(usage) = rules.get_mut(*rule) else { continue };
            usage.used = usage.used.saturating_add(outcome.used);
            usage.limit = usage.limit.saturating_add(outcome.limit);
            usage.remaining = usage.remaining.saturating_add(outcome.remaining);
            usage.reset_after = usage.reset_after.max(outcome.reset_after);
        }
        Ok((rules, pinned.number, wall))
    }
}

impl<S: Store> Engine<S> {
    /// Reads buckets that charges name, a few at a time, and calls `seen` with each outcome and the time of the store.
    /// Stops at the first error.
    pub async fn read_buckets(
        &self,
        reads: &[Charge],
        mut seen: impl FnMut(&Charge, &Outcome, Time),
    ) -> Result<(), StoreError> {
        for part in reads.chunks(BUCKETS_PER_CALL) {
            let mut outcomes = Outcomes::new();
            let taken = self.ask(part, &mut outcomes).await?;
            part.iter().zip(&outcomes).for_each(|(read, outcome)| seen(read, outcome, taken.now));
        }
        Ok(())
    }
}

/// The rules with a bucket for the client, and a read of every bucket with the index of its rule.
fn buckets(
    pinned: &Pinned,
    request: &Request<'_>,
    wall: Time,
    shared: bool,
) -> Result<(Vec<RuleUsage>, BucketReads), UsageError> {
    let all = pinned.rules.buckets(request, wall).map_err(UsageError::Invalid)?;
    let (mut rules, mut charges) = (Vec::new(), Vec::new());
    for ClientBuckets { rule, assumed, charges: own, .. } in all {
        let Ok(own) = own else { continue };
        for charge in &own {
            // What nodes hold in advance is charged already, and what a node counts alone is its own.
            let sharing = if charge.sharing == Sharing::Local { Sharing::Local } else { Sharing::Exact };
            let identity = if shared { charge.identity } else { 0 };
            let read = Charge { ask: Ask::Peek(0), sharing, identity, enforcement: Enforcement::Enforce, ..*charge };
            charges.push((rules.len(), read));
        }
        rules.push(RuleUsage {
            rule: rule.name.clone(),
            meter: rule.spec.meter.weights().map(|(meter, weight)| (meter.to_owned(), weight)).collect(),
            used: 0,
            limit: 0,
            granted: own.iter().fold(0, |sum, charge| sum.saturating_add(granted(&charge.limit))),
            remaining: 0,
            reset_after: Span::ZERO,
            period: own.first().and_then(|charge| period(&charge.limit)),
            assumed,
            enforced: rule.is_enforced(),
        });
    }
    Ok((rules, charges))
}

/// What the node takes for granted; the store counts it unless its clock is in another period.
fn granted(limit: &Limit) -> u64 {
    if let Limit::Quota(quota) = limit { quota.grant() } else { 0 }
}

fn period(limit: &Limit) -> Option<(Time, Option<Time>)> {
    let Limit::Quota(quota) = limit else { return None };
    Some((quota.start(), Some(quota.end()).filter(|end| *end < tollgate_core::Quota::FOREVER)))
}
