//! One rule, compiled: conditions by number, key by number, limit as a value.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use tollgate_core::{
    Ask, AskedLimit, Digest, Enforcement, KeyHasher, Limit, LimitError, Owner, Purpose, Request, Sharing, Soft, Span,
};

use super::attributes::AttrId;
use super::body::limit_of;
use super::facts::Facts;
use crate::envoy::EnvoyRule;
use crate::lookup::{Folded, IndexedEndpoint, IndexedMatcher};
use crate::path::Case;
use crate::pattern::Pattern;
use crate::spec::{LimitSpec, Missing, Mode, OnFail, RuleSpec};

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
    pub replaced_mode: Option<Mode>,
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

impl Conditions {
    #[inline]
    pub(super) fn hold(&self, facts: &Facts<'_>) -> bool {
        self.attributes.iter().all(|(id, matcher)| attribute_holds(*id, matcher, facts))
            && self.endpoint.as_ref().is_none_or(|endpoint| endpoint_holds(endpoint, facts))
    }
}

/// An absent attribute meets no condition, not even `*` or a negation.
pub(super) fn attribute_holds(id: AttrId, matcher: &IndexedMatcher, facts: &Facts<'_>) -> bool {
    match id {
        AttrId::IP => facts.ip().is_some_and(|bits| matcher.matches_address(bits)),
        _ => facts.value(id).is_some_and(|value| matcher.matches(value)),
    }
}

pub(super) fn endpoint_holds(matcher: &IndexedEndpoint, facts: &Facts<'_>) -> bool {
    facts.endpoint().is_some_and(|(method, path)| matcher.matches(method, path))
}

/// Stands before a value that another attribute lent: `client_key` where `api_key` is absent. No length is as large.
const BORROWED: u64 = u64::MAX - 1;

/// Stands before a client key that is an address, in its one spelling.
const ADDRESS: u64 = u64::MAX - 2;

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
        self.spec.mode == Mode::Enforce
    }

    /// Whether a refusal counts.
    pub fn enforcement(&self) -> Enforcement {
        if self.is_enforced() { Enforcement::Enforce } else { Enforcement::Shadow }
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

    /// What one request costs here: its own cost times the rule's.
    pub(super) fn cost(&self, request: &Request<'_>, facts: &Facts<'_>) -> u64 {
        let case = self.costs.iter().find(|(conditions, _)| conditions.hold(facts));
        request.cost.saturating_mul(case.map_or(1, |(_, cost)| *cost))
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

    /// The bucket's digest before sharding; `None` if a key part is missing and the rule then does not apply.
    #[inline]
    pub(super) fn key(&self, facts: &Facts<'_>) -> Option<KeyHasher> {
        let mut hasher = self.hasher;
        for part in &self.key {
            match part_of(part, facts) {
                Some((id, borrowed)) => {
                    if borrowed {
                        hasher.word(BORROWED);
                    }
                    if part.len() > 1 {
                        hasher.word(id.place() as u64);
                    }
                    self.absorb(&mut hasher, id, facts);
                }
                None if self.spec.missing == Missing::Share => hasher.missing(),
                None => return None,
            }
        }
        Some(hasher)
    }

    /// Whom the bucket is about: namespace and first part of the key, so that all buckets of one caller live together.
    /// Rules for everybody have the namespace alone. A hot bucket that was split goes by its shard too: its parts are
    /// to live apart.
    pub(super) fn identity(&self, facts: &Facts<'_>, shard: Option<u64>) -> u32 {
        let mut hasher = self.identity;
        if let Some((id, _)) = self.key.first().and_then(|part| part_of(part, facts)) {
            hasher.word(id.place() as u64);
            self.absorb(&mut hasher, id, facts);
        }
        if let Some(shard) = shard {
            hasher.word(shard);
        }
        let [bits, _] = hasher.finish().0;
        bits as u32
    }

    fn absorb(&self, hasher: &mut KeyHasher, id: AttrId, facts: &Facts<'_>) {
        match id {
            AttrId::IP => {
                let key = facts.ip_key().map_or(0, |key| key.bits());
                hasher.part(&key.to_be_bytes());
            }
            AttrId::ENDPOINT => self.absorb_endpoint(hasher, facts),
            AttrId::CLIENT_KEY if let Some(key) = facts.client_ip() => {
                hasher.word(ADDRESS);
                hasher.part(&key.bits().to_be_bytes());
            }
            _ => hasher.part(facts.value(id).unwrap_or_default().as_bytes()),
        }
    }

    /// The path, with `{id}` segments as the template has them. The method counts only where the pattern names some:
    /// otherwise every invented method would be a bucket of its own.
    fn absorb_endpoint(&self, hasher: &mut KeyHasher, facts: &Facts<'_>) {
        let Some((method, path)) = facts.endpoint() else { return hasher.missing() };
        let pattern = self.conditions.endpoint.as_ref().and_then(|matcher| matcher.pattern_of(method, path));
        match pattern {
            Some(pattern) => {
                match method {
                    Some(method) if !pattern.methods.is_empty() => hasher.part(method.as_bytes()),
                    _ => hasher.missing(),
                }
                let path = pattern.path.template_of(path);
                match pattern.path.case {
                    Case::Sensitive => hasher.part(path.as_bytes()),
                    Case::Insensitive => hasher.part(Folded::of(&path).as_str().as_bytes()),
                }
            }
            None => {
                hasher.missing();
                hasher.part(path.as_bytes());
            }
        }
    }

    /// What a soft rule admits above `limit`, which may be a client's own or a share.
    pub(super) fn soft_at(&self, limit: &Limit) -> Option<Soft> {
        let percent = u128::from(self.spec.soft?.percent);
        let excess = (u128::from(limit.capacity()) * percent).div_ceil(100);
        Some(Soft { excess: u64::try_from(excess).unwrap_or(u64::MAX), seed: self.seed })
    }

    /// A key part as people read it.
    pub(super) fn key_text(&self, id: AttrId, facts: &Facts<'_>) -> String {
        match id {
            AttrId::IP => facts.ip_key().map(|key| key.to_string()).unwrap_or_default(),
            AttrId::ENDPOINT => {
                let (method, path) = facts.endpoint().unwrap_or((None, ""));
                match self.conditions.endpoint.as_ref().and_then(|matcher| matcher.pattern_of(method, path)) {
                    Some(pattern) => pattern.path.template_of(path).into_owned(),
                    None => path.to_owned(),
                }
            }
            _ => facts.value(id).unwrap_or_default().to_owned(),
        }
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

/// Which attribute fills a key part: the first one present; failing that, the client key for those that fall back to
/// it (then `true`).
pub(super) fn part_of(part: &[AttrId], facts: &Facts<'_>) -> Option<(AttrId, bool)> {
    // Among alternatives an empty value counts as absent: an empty header must not hide the address behind it.
    let filled = |id: &&AttrId| present(**id, facts) && (part.len() == 1 || facts.value(**id) != Some(""));
    if let Some(id) = part.iter().find(filled) {
        return Some((*id, false));
    }
    let borrows = part.iter().any(|id| id.falls_back()) && facts.has(AttrId::CLIENT_KEY);
    borrows.then_some((AttrId::CLIENT_KEY, true))
}

fn present(id: AttrId, facts: &Facts<'_>) -> bool {
    match id {
        AttrId::IP => facts.ip().is_some(),
        AttrId::ENDPOINT => facts.endpoint().is_some(),
        _ => facts.has(id),
    }
}
