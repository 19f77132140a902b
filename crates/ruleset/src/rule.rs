//! A compiled rule.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use tollgate_core::{
    Ask, AskedLimit, Concurrency, Digest, FixedWindow, Gcra, KeyHasher, Limit, LimitError, Owner, Purpose, Queue,
    Quota, Request, Sharing, SlidingCounter, SlidingLog, Soft, Span, Time,
};
use tollgate_rules::pattern::Pattern;
use tollgate_rules::spec::{Enforcement, LimitAlgorithm, LimitSpec, OnFail, RuleSpec};

use super::attributes::AttrId;
use super::quota::CompiledQuota;
use super::rule_numbers::RuleNumbers;
use crate::envoy_rule::EnvoyRule;
use crate::lookup::{IndexedEndpoint, IndexedMatcher};

/// Index of a rule in its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u32);

/// A compiled rule in its set.
#[derive(Debug)]
pub struct Rule {
    /// Its index in the set.
    pub id: RuleId,
    /// The part that does not depend on the set; shared by all generations in which the rule is unchanged.
    pub(super) body: Arc<RuleBody>,
    pub(super) replaces: Vec<RuleId>,
    /// Its numbers in each directory of the namespace.
    pub(super) numbers: SmallVec<[RuleNumbers; 2]>,
}

impl Deref for Rule {
    type Target = RuleBody;

    #[inline]
    fn deref(&self) -> &RuleBody {
        &self.body
    }
}

/// The part of a compiled rule that does not depend on its set.
#[derive(Debug)]
pub struct RuleBody {
    /// Its namespace.
    pub namespace: String,
    /// Its name, written or generated.
    pub name: String,
    /// Name that callers see.
    pub resource: String,
    /// The rule as written, with defaults filled in.
    pub spec: Arc<RuleSpec>,
    /// The mode of the rule itself, if an operator's mode replaces it.
    pub replaced_mode: Option<Enforcement>,
    /// Name of its file; the line is in `spec`.
    pub file_name: Option<Arc<str>>,
    /// Failure policy while the store does not answer.
    pub on_fail: OnFail,
    /// The limit; `None` for an unlimited rule. For a rule with shards, the whole limit.
    pub limit: Option<Limit>,
    /// Fields of a rule from an envoyproxy/ratelimit file; see the table at [`EnvoyRule`].
    pub envoy: Option<Box<EnvoyRule>>,
    pub(super) conditions: Conditions,
    pub(super) key: Vec<Vec<AttrId>>,
    pub(super) costs: Vec<(Conditions, u64)>,
    /// The calendar of a quota.
    pub(super) quota: Option<CompiledQuota>,
    /// The attribute with the class of a request, where a part of the slots is for one class.
    pub(super) reserved_by: Option<AttrId>,
    /// Meters and weights of a rule that does not count requests alone; empty otherwise.
    pub(super) meters: Vec<(String, u64)>,
    /// Has absorbed the identity of the rule; the parts of a key follow.
    pub(super) hasher: KeyHasher,
    pub(super) owner: Owner,
    /// Has absorbed the namespace; the identity of a client follows.
    pub(super) identity: KeyHasher,
    pub(super) sharing: Sharing,
    /// Seed of soft limits, so that deployments differ.
    pub(super) seed: u64,
    pub(super) fingerprint: OnceLock<Digest>,
}

/// Conditions on a request; without any, every request matches.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    pub(super) attributes: Vec<(AttrId, IndexedMatcher)>,
    pub(super) endpoint: Option<IndexedEndpoint>,
}

/// Precedes a window from the request in a digest.
const ASKED: u64 = u64::MAX - 3;

impl Rule {
    pub(super) fn new(id: RuleId, body: Arc<RuleBody>) -> Rule {
        Rule { id, body, replaces: Vec::new(), numbers: SmallVec::new() }
    }

    /// The shared part, which may outlive the set.
    pub fn body(&self) -> &Arc<RuleBody> {
        &self.body
    }

    /// True if it is a rule of a plan, with that name in it.
    pub(super) fn is_named_in_plans(&self, name: &str) -> bool {
        self.spec.plan.as_ref().is_some_and(|origin| origin.name == name)
    }

    /// The owner of its buckets.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// True if the rule is a quota.
    pub(super) fn is_quota(&self) -> bool {
        self.quota.is_some()
    }

    /// True if the rule limits concurrency.
    pub(super) fn is_concurrency(&self) -> bool {
        self.spec.limit.as_ref().is_some_and(|limit| limit.algorithm == LimitAlgorithm::Concurrency)
    }

    /// True if the rule delays requests.
    pub(super) fn is_queue(&self) -> bool {
        let delays = |limit: &LimitSpec| limit.algorithm == LimitAlgorithm::LeakyBucket && limit.max_delay_ns.is_some();
        self.spec.limit.as_ref().is_some_and(delays)
    }

    /// True if the rule is enforced; a shadow rule is only reported.
    pub fn is_enforced(&self) -> bool {
        self.spec.mode == Enforcement::Enforce
    }

    /// The enforcement of its charges.
    pub fn enforcement(&self) -> Enforcement {
        match self.is_enforced() {
            true => Enforcement::Enforce,
            false => Enforcement::Shadow,
        }
    }

    /// The tiers in exact conditions of the rule and its costs.
    pub(super) fn tiers(&self) -> impl Iterator<Item = &str> {
        let conditions = std::iter::once(&self.conditions).chain(self.costs.iter().map(|(conditions, _)| conditions));
        let matchers = conditions.flat_map(|conditions| &conditions.attributes).filter(|(id, _)| *id == AttrId::TIER);
        matchers.flat_map(|(_, matcher)| matcher.matcher.any.iter().chain(&matcher.matcher.none)).filter_map(
            |pattern| match pattern {
                Pattern::Exact(text) => Some(text.as_str()),
                _ => None,
            },
        )
    }

    /// The rule's limit with `requests` and `window` of the request. Another window is another bucket, as it is in
    /// another generation.
    #[cold]
    pub(super) fn accept(&self, asked: AskedLimit, hasher: &mut KeyHasher) -> Result<Option<Limit>, LimitError> {
        let Some(spec) = &self.spec.limit else { return Ok(None) };
        let (requests, window_ns) = (asked.requests, asked.window.nanos());
        if window_ns != spec.window_ns {
            hasher.word(ASKED);
            hasher.word(window_ns);
        }
        limit_of(&LimitSpec { requests, window_ns, ..spec.clone() }, &self.spec).map(Some)
    }

    /// The operation of the charge; `None` if it needs a slot and the request has none.
    pub(super) fn ask(&self, limit: &Limit, request: &Request<'_>, cost: u64) -> Option<Ask> {
        match (limit, request.purpose) {
            (Limit::Concurrency(_), Purpose::Consume) => request.slot.map(Ask::Hold),
            (Limit::Concurrency(_), Purpose::Peek) => request.slot.map(|_| Ask::Peek(1)),
            (Limit::Concurrency(_), Purpose::Report) | (_, Purpose::Mention) => None,
            (_, Purpose::Consume) => Some(Ask::Consume(cost)),
            (_, Purpose::Peek) => Some(Ask::Peek(cost)),
            (_, Purpose::Report) => Some(Ask::Force(cost)),
        }
    }

    /// The soft part above `limit`, which may come from an override or be a shard's.
    pub(super) fn soft_at(&self, limit: &Limit) -> Option<Soft> {
        let percent = u128::from(self.spec.soft?.percent);
        let excess = (u128::from(limit.capacity()) * percent).div_ceil(100);
        Some(Soft { excess: u64::try_from(excess).unwrap_or(u64::MAX), seed: self.seed })
    }

    /// Number of buckets per key. Always 1 if nodes count locally: shards spread load over the shared store, and
    /// rounding up the node's share of each shard would exceed its share of the whole.
    pub fn shards(&self) -> u64 {
        match self.sharing {
            Sharing::Local => 1,
            _ => u64::from(self.spec.shards.max(1)),
        }
    }

    /// The limit of one shard: as even as whole units allow; all shards add up to the whole.
    pub(super) fn shard(&self, limit: Limit, shard: u64) -> Limit {
        let count = self.shards();
        let part = |total: u64| total / count + u64::from(shard < total % count);
        limit.with_requests(part(limit.requests()), part(limit.capacity())).unwrap_or(limit)
    }

    /// The limit with a window offset by bucket, so that keys do not all reset at once.
    pub(super) fn aligned(&self, limit: Limit, bucket: Digest) -> Limit {
        let [_, bits] = bucket.0;
        let offset = |window: Span| Span::from_nanos(((u128::from(bits) * u128::from(window.nanos())) >> 64) as u64);
        match limit {
            Limit::FixedWindow(w) => Limit::FixedWindow(w.with_offset(offset(w.window()))),
            Limit::SlidingCounter(c) => Limit::SlidingCounter(c.with_offset(offset(c.window()))),
            other => other,
        }
    }
}

pub(super) fn limit_of(spec: &LimitSpec, rule: &RuleSpec) -> Result<Limit, LimitError> {
    let window = Span::from_nanos(spec.window_ns);
    Ok(match spec.algorithm {
        LimitAlgorithm::LeakyBucket if let Some(max_delay) = spec.max_delay_ns => {
            Limit::Queue(Queue::new(spec.requests, window, Span::from_nanos(max_delay))?)
        }
        LimitAlgorithm::TokenBucket | LimitAlgorithm::Gcra | LimitAlgorithm::LeakyBucket => {
            let burst = spec.burst.unwrap_or(spec.requests);
            // Usage above the capacity is kept as debt: it was reported, or charged although denied.
            let counted = if rule.count_denied { burst } else { 0 };
            let debt = rule.max_debt.unwrap_or(counted);
            Limit::Gcra(Gcra::new(spec.requests, window, burst)?.with_max_debt(debt)?)
        }
        LimitAlgorithm::FixedWindow => Limit::FixedWindow(FixedWindow::new(spec.requests, window)?),
        LimitAlgorithm::SlidingWindowLog => Limit::SlidingLog(SlidingLog::new(spec.requests, window)?),
        LimitAlgorithm::SlidingWindowCounter => Limit::SlidingCounter(SlidingCounter::new(spec.requests, window)?),
        LimitAlgorithm::Quota => {
            // The bounds of a period depend on the request's time: see `quota`.
            let (end, next) = (Time::from_nanos(window.nanos()), Time::from_nanos(2 * window.nanos()));
            match window.is_zero() {
                true => Limit::Quota(Quota::lifetime(spec.requests)),
                false => Limit::Quota(Quota::new(spec.requests, Time::ZERO, end, next)?),
            }
        }
        LimitAlgorithm::Concurrency => {
            Limit::Concurrency(Concurrency::new(spec.slots, Span::from_nanos(spec.slot_ttl_ns))?)
        }
    })
}
