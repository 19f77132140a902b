//! One rule, compiled: conditions by number, key by number, limit as a value.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use tollgate_core::{
    Ask, AskedLimit, Digest, KeyHasher, Limit, LimitError, Owner, Purpose, Request, Sharing, Soft, Span,
};

use super::attributes::AttrId;
use super::limit::limit_of;
use crate::envoy::EnvoyRule;
use crate::lookup::{IndexedEndpoint, IndexedMatcher};
use crate::pattern::Pattern;
use crate::spec::{Enforcement, LimitSpec, OnFail, RuleSpec};

/// A rule's place in its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u32);

/// A compiled rule in its set.
#[derive(Debug)]
pub struct Rule {
    /// Its place in the set.
    pub id: RuleId,
    /// What does not depend on the set; shared by all generations in which the rule says the same.
    pub(super) body: Arc<RuleBody>,
    pub(super) replaces: Vec<RuleId>,
    /// Its number in each directory of its namespace.
    pub(super) numbers: SmallVec<[u32; 2]>,
}

impl Deref for Rule {
    type Target = RuleBody;

    #[inline]
    fn deref(&self) -> &RuleBody {
        &self.body
    }
}

/// What a rule says, compiled.
#[derive(Debug)]
pub struct RuleBody {
    /// Whose rule it is.
    pub namespace: String,
    /// Its name: as written, or made from what it says.
    pub name: String,
    /// What callers are told.
    pub resource: String,
    /// What it says, with defaults filled in.
    pub spec: Arc<RuleSpec>,
    /// The mode that the rule itself names, where an operator's switch holds instead of it.
    pub replaced_mode: Option<Enforcement>,
    /// Name of the file that it was read from; the line is in `spec`.
    pub file_name: Option<Arc<str>>,
    /// What happens when the store does not answer.
    pub on_fail: OnFail,
    /// The limit; `None` for an unlimited rule. Of a rule with shards: the whole, not the share.
    pub limit: Option<Limit>,
    /// What else it says, if it comes from a file of envoyproxy/ratelimit: the table at [`EnvoyRule`] tells what is
    /// where.
    pub envoy: Option<Box<EnvoyRule>>,
    pub(super) conditions: Conditions,
    pub(super) key: Vec<Vec<AttrId>>,
    pub(super) costs: Vec<(Conditions, u64)>,
    /// Has absorbed who the rule is; a key's parts follow.
    pub(super) hasher: KeyHasher,
    pub(super) owner: Owner,
    /// Has absorbed the namespace; what names the identity follows.
    pub(super) identity: KeyHasher,
    pub(super) sharing: Sharing,
    /// Makes the lots of one deployment differ from those of another.
    pub(super) seed: u64,
    pub(super) fingerprint: OnceLock<Digest>,
}

/// What must hold for a request; nothing at all always holds.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    pub(super) attributes: Vec<(AttrId, IndexedMatcher)>,
    pub(super) endpoint: Option<IndexedEndpoint>,
}

/// Stands before a window that is not the rule's own.
const ASKED: u64 = u64::MAX - 3;

impl Rule {
    pub(super) fn new(id: RuleId, body: Arc<RuleBody>) -> Rule {
        Rule { id, body, replaces: Vec::new(), numbers: SmallVec::new() }
    }

    /// What it says, to be kept beyond its set.
    pub fn body(&self) -> &Arc<RuleBody> {
        &self.body
    }

    /// True if the rule is enforced; a shadow rule is only reported.
    pub fn is_enforced(&self) -> bool {
        self.spec.mode == Enforcement::Enforce
    }

    /// Whether a refusal counts.
    pub fn enforcement(&self) -> tollgate_core::Enforcement {
        match self.is_enforced() {
            true => tollgate_core::Enforcement::Enforce,
            false => tollgate_core::Enforcement::Shadow,
        }
    }

    /// The tiers that its conditions or those of its costs name in full.
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

    /// The rule's limit with the requests and the window that the caller brings along. Another window is another bucket,
    /// as it would be in another generation.
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

    /// What the charge asks; `None` where a slot is needed and the request holds none.
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

    /// What a soft rule admits above `limit`, which may be a client's own or a share.
    pub(super) fn soft_at(&self, limit: &Limit) -> Option<Soft> {
        let percent = u128::from(self.spec.soft?.percent);
        let excess = (u128::from(limit.capacity()) * percent).div_ceil(100);
        Some(Soft { excess: u64::try_from(excess).unwrap_or(u64::MAX), seed: self.seed })
    }

    /// Into how many buckets each key is split. A rule whose nodes count by themselves is not: shards spread load over
    /// the shared store, and shares rounded up part by part would add up to more than the node's share of the whole.
    pub fn parts(&self) -> u64 {
        match self.sharing {
            Sharing::Local => 1,
            _ => u64::from(self.spec.shards.max(1)),
        }
    }

    /// The limit of one of the rule's sub-buckets: as even as whole units allow, adding up to the whole.
    pub(super) fn shard(&self, limit: Limit, shard: u64) -> Limit {
        let count = self.parts();
        let part = |total: u64| total / count + u64::from(shard < total % count);
        limit.with_requests(part(limit.requests()), part(limit.capacity())).unwrap_or(limit)
    }

    /// A window's offset for one bucket, so that the resets of many keys do not fall together.
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
