//! The local cache in the answer to a message.

use tollgate_core::{Digest, Enforcement, Span, Time};
use tollgate_engine::{DecidedBy, Decision, MatchedRequests, Pinned};
use tollgate_ruleset::{EnvoyRule, Rule, RuleId};

use super::read::{DescriptorGroup, ParsedRls};
use crate::service::Service;

/// What the cache knows about a message, and the buckets that its answer may add.
pub(crate) struct CacheLookup {
    /// The descriptors that are over their limits.
    pub(crate) refusals: Vec<CachedRefusal>,
    /// Descriptor, rule and bucket of every other limit.
    asked: Vec<(u16, RuleId, Digest)>,
    generation: Option<Pinned>,
}

/// A descriptor that the cache refuses.
pub(crate) struct CachedRefusal {
    /// The index of the descriptor.
    pub(crate) index: u16,
    rule: RuleId,
    /// Units per window.
    pub(crate) requests: u64,
    /// Until the window ends.
    pub(crate) reset_after: Span,
}

impl CacheLookup {
    /// Nothing known, nothing to remember.
    pub(crate) const NONE: CacheLookup = CacheLookup { refusals: Vec::new(), asked: Vec::new(), generation: None };

    /// Looks up the descriptors of a message, and takes those that are over their limits out of its rounds.
    pub(crate) fn of(
        service: &Service,
        matched: &MatchedRequests,
        parsed: &mut ParsedRls<'_>,
        now: Time,
    ) -> CacheLookup {
        let Some(cache) = &service.rls_cache else { return CacheLookup::NONE };
        let is_enforced = service.engine.enforcement() == Enforcement::Enforce;
        // An override may begin while an entry holds, without another generation.
        if !parsed.is_domain || !is_enforced || matched.rules().has_dated_overrides() || parsed.rounds() > 1 {
            return CacheLookup::NONE;
        }
        let charges = matched.charges();
        let mut lookup = CacheLookup::NONE;
        for applied in charges.applied.iter().filter(|applied| parsed.is_decided(applied.request)) {
            let Some(charge) = applied.charge.and_then(|index| charges.charges.get(usize::from(index))) else {
                continue;
            };
            match cache.find(charge.bucket, now) {
                Some(end) => lookup.refusals.push(CachedRefusal {
                    index: applied.request,
                    rule: applied.rule,
                    requests: charge.limit.requests(),
                    reset_after: end.since(now),
                }),
                None => lookup.asked.push((applied.request, applied.rule, charge.bucket)),
            }
        }
        parsed.refuse_by_cache(lookup.refusals.iter().map(|refusal| refusal.index));
        CacheLookup { generation: Some(matched.generation()), ..lookup }
    }

    /// The rule of a refusal.
    pub(crate) fn rule(&self, refusal: &CachedRefusal) -> Option<(&Rule, &EnvoyRule)> {
        let rule = self.generation.as_ref()?.rules.rule(refusal.rule)?;
        Some((rule, rule.envoy.as_deref()?))
    }

    /// The refusal of a descriptor.
    pub(crate) fn refusal(&self, index: u16) -> Option<&CachedRefusal> {
        self.refusals.iter().find(|refusal| refusal.index == index)
    }

    /// Remembers the limits that refused, from `now` on, which is before the store was asked.
    pub(crate) fn remember(&self, service: &Service, parsed: &ParsedRls<'_>, rounds: &[Decision], now: Time) {
        let Some(cache) = service.rls_cache.as_ref().filter(|_| !self.asked.is_empty()) else { return };
        for ruling in rounds.iter().flat_map(|decision| decision.rulings()) {
            let is_new = ruling.refused() && ruling.decided_by == DecidedBy::Store && parsed.is_counted(ruling.request);
            let Some(outcome) = ruling.outcome.filter(|_| is_new) else { continue };
            let own = |(index, rule, _): &&(u16, RuleId, Digest)| *index == ruling.request && *rule == ruling.rule;
            for (_, _, bucket) in self.asked.iter().filter(own) {
                cache.insert(*bucket, now.after(outcome.reset_after), now);
            }
        }
    }
}

/// Forgets the buckets that a message refunds.
pub(crate) fn forget_refunded(service: &Service, matched: &MatchedRequests, parsed: &ParsedRls<'_>) {
    let Some(cache) = service.rls_cache.as_ref().filter(|_| parsed.has_refunds()) else { return };
    let refunds = parsed.groups().iter().zip(0..).filter(|(group, _)| **group == DescriptorGroup::Refund);
    let charges = refunds.flat_map(|(_, index)| matched.charges().of_request(index));
    charges.for_each(|charge| cache.forget(charge.bucket));
}
