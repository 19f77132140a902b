//! Compiled rules: immutable, indexed, and turned into charges without allocating.
//!
//! A [`RuleSet`] is compiled from whole [`RuleFile`]s and then only read. For a request it returns the buckets to
//! charge and their limits. The cost depends on the rules that match, not on all rules: each rule is indexed under its
//! rarest condition (`matching`), and clients and overrides are looked up by identity (`directories`). Nothing here keeps
//! state, reads a clock or decides.

mod attributes;
mod billed_client;
mod charges;
mod compile;
mod compile_rule;
mod directories;
pub mod directory;
mod domain;
mod envoy_rule;
mod explain;
mod facts;
mod fast_hash;
mod fingerprint;
mod granting;
mod input;
mod lookup;
mod matching;
mod naming;
mod normalized;
mod penalties;
mod quota;
mod rule;
mod rule_numbers;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use tollgate_core::{Attribute, Owner, Request, Secret, Time};
use tollgate_rules::Normalize;
use tollgate_rules::envoy::EnvoyDomain;
use tollgate_rules::path::EscapedSlash;
use tollgate_rules::problem::Problems;
use tollgate_rules::spec::RuleFile;

pub use self::billed_client::BilledClient;
pub use self::charges::{AppliedRule, Charges};
pub use self::directory::{
    ActiveGrant, ActiveOverride, Directory, DirectoryBuilder, DirectoryRecord, canonical_client_key,
};
pub use self::envoy_rule::EnvoyRule;
pub use self::explain::ClientBuckets;
pub use self::explain::{Applicability, Explanation, KeyPart};
pub use self::facts::RequestError;
pub use self::input::{CompileOptions, DomainRules, NamespaceRules};
pub use self::naming::{generated_names, stable_names};
pub use self::penalties::PenaltyCharges;
pub use self::rule::{Rule, RuleBody, RuleId};

use self::attributes::{AttrId, Attributes};
use self::directories::BoundDirectories;
use self::domain::{DescriptorRequest, DomainIndex};
use self::facts::RequestFacts;
use self::matching::LayeredIndex;
use self::normalized::NormalizedValues;
use crate::fast_hash::FastMap;

/// One immutable version of all rules of all namespaces.
#[derive(Debug)]
pub struct RuleSet {
    rules: Vec<Rule>,
    namespaces: FastMap<String, CompiledNamespace>,
    secret: Secret,
    seed: u64,
    dated_overrides: bool,
    quotas: bool,
    slots: bool,
    queues: bool,
    penalties: bool,
    /// Rules by the owner of their buckets. Made at the first use: only receipts name a rule by its owner.
    by_owner: OnceLock<FastMap<u64, RuleId>>,
}

/// The rules of one namespace, and the settings for reading its requests.
#[derive(Debug)]
struct CompiledNamespace {
    index: LayeredIndex,
    /// Indices of its rules in the set.
    rules: Range<usize>,
    /// Number of rules from the file; they come first, and the others are sorted by name.
    own: usize,
    attributes: Attributes,
    directories: BoundDirectories,
    /// Whether some client has a tier; otherwise tiers need no lookup.
    tiers: bool,
    /// The plan of clients without one.
    default_plan: Option<String>,
    /// The number of the attribute `plan`, if a rule refers to it.
    plan: Option<AttrId>,
    ipv6_prefix: u8,
    escaped_slash: EscapedSlash,
    /// The form in which values are compared and counted.
    normalize: Normalize,
    /// The meters of its rules, besides `requests`.
    meters: BTreeSet<String>,
    /// For a domain of Envoy files: the tree that finds rules instead of conditions.
    domain: Option<Box<DomainIndex>>,
}

impl CompiledNamespace {
    fn without_rules() -> CompiledNamespace {
        CompiledNamespace {
            index: LayeredIndex::default(),
            rules: 0..0,
            own: 0,
            attributes: Attributes::new(),
            directories: BoundDirectories::default(),
            tiers: false,
            default_plan: None,
            plan: None,
            ipv6_prefix: 64,
            escaped_slash: EscapedSlash::default(),
            normalize: Normalize::None,
            meters: BTreeSet::new(),
            domain: None,
        }
    }
}

impl CompiledNamespace {
    /// The request's values in the namespace's Unicode form; `None` if they are already, as nearly always.
    #[inline]
    fn rewritten(&self, request: &Request<'_>) -> Option<NormalizedValues> {
        match self.normalize {
            Normalize::None => None,
            form => NormalizedValues::new(form, request),
        }
    }

    /// The request as a domain of Envoy files reads it: the descriptor is in its custom attributes.
    fn descriptor<'a>(&'a self, request: &'a Request<'a>, wall: Time) -> DescriptorRequest<'a> {
        DescriptorRequest { namespace: self, request, wall }
    }

    /// Rejects a request with a meter that no rule counts: a misspelt one would never be charged.
    #[inline]
    fn know_meters(&self, request: &Request<'_>) -> Result<(), RequestError> {
        match request.costs.iter().find(|(name, _)| !self.meters.contains(*name)) {
            Some((name, _)) if !request.ignores_uncounted => Err(RequestError::unknown_meter(name, &self.meters)),
            _ => Ok(()),
        }
    }
}

impl RuleSet {
    /// Compiles files, one per namespace, or returns all problems.
    pub fn compile(files: &[RuleFile], options: &CompileOptions) -> Result<RuleSet, Problems> {
        let parts: Vec<NamespaceRules<'_>> =
            files.iter().map(|file| NamespaceRules { file, rules: &[], directories: &[] }).collect();
        RuleSet::assemble(&parts, options)
    }

    /// Compiles files, one per namespace, with their directories. Directories may be large: they are shared, neither
    /// copied nor scanned. Overrides of rules that do not exist are ignored.
    pub fn assemble(parts: &[NamespaceRules<'_>], options: &CompileOptions) -> Result<RuleSet, Problems> {
        RuleSet::assemble_with(parts, &[], options)
    }

    /// Compiles files and domains of Envoy files; each domain is a namespace.
    pub fn assemble_with(
        parts: &[NamespaceRules<'_>],
        domains: &[EnvoyDomain],
        options: &CompileOptions,
    ) -> Result<RuleSet, Problems> {
        let modes = BTreeMap::new();
        let domains: Vec<DomainRules<'_>> =
            domains.iter().map(|domain| DomainRules { domain, directories: &[], modes: &modes }).collect();
        RuleSet::assemble_all(parts, &domains, options)
    }

    /// Compiles files and domains, with overrides and operator modes for the rules of domains.
    pub fn assemble_all(
        parts: &[NamespaceRules<'_>],
        domains: &[DomainRules<'_>],
        options: &CompileOptions,
    ) -> Result<RuleSet, Problems> {
        compile::assemble(parts, domains, options, None)
    }

    /// Compiles the successor of this set. Unchanged rules are shared with it, and the index is reused while few rules
    /// changed, so the cost depends on the change.
    pub fn compile_successor(
        &self,
        parts: &[NamespaceRules<'_>],
        domains: &[DomainRules<'_>],
        options: &CompileOptions,
    ) -> Result<RuleSet, Problems> {
        compile::assemble(parts, domains, options, Some(self))
    }

    /// A set without rules, which allows every request.
    pub fn empty() -> RuleSet {
        RuleSet {
            rules: Vec::new(),
            namespaces: FastMap::default(),
            secret: Secret::new([0; 16]),
            seed: 0,
            dated_overrides: false,
            quotas: false,
            slots: false,
            queues: false,
            penalties: false,
            by_owner: OnceLock::new(),
        }
    }

    /// All rules, in the order of their files; a [`RuleId`] is an index into this list.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rule with that id.
    pub fn rule(&self, id: RuleId) -> Option<&Rule> {
        self.rules.get(id.0 as usize)
    }

    /// The rule whose buckets have this owner.
    pub fn rule_of_owner(&self, owner: Owner) -> Option<RuleId> {
        let all = || self.rules.iter().map(|rule| (u64::from(rule.owner().id), rule.id)).collect();
        self.by_owner.get_or_init(all).get(&u64::from(owner.id)).copied()
    }

    /// The rule of that name.
    pub fn rule_named(&self, namespace: &str, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.namespace == namespace && rule.name == name)
    }

    /// True if the rules of this namespace come from envoyproxy/ratelimit files. Its requests have the entries of one
    /// descriptor as custom attributes, in order, including built-in names. Responses follow the table at the field
    /// `envoy` of [`Rule`].
    pub fn is_domain(&self, namespace: &str) -> bool {
        self.namespaces.get(namespace).is_some_and(|namespace| namespace.domain.is_some())
    }

    /// True if there is a rule in the namespace.
    pub fn has_rules(&self, namespace: &str) -> bool {
        self.namespaces.get(namespace).is_some_and(|namespace| !namespace.rules.is_empty())
    }

    /// True if a rule of the namespace counts the meter. Every rule without a meter counts `requests`.
    pub fn counts(&self, namespace: &str, meter: &str) -> bool {
        meter == Request::REQUESTS
            || self.namespaces.get(namespace).is_some_and(|namespace| namespace.meters.contains(meter))
    }

    /// True if some rule is a quota.
    #[inline]
    pub fn has_quotas(&self) -> bool {
        self.quotas
    }

    /// True if some rule has a penalty.
    #[inline]
    pub fn has_penalties(&self) -> bool {
        self.penalties
    }

    /// True if some rule limits concurrency.
    #[inline]
    pub fn has_slots(&self) -> bool {
        self.slots
    }

    /// True if some rule delays requests instead of refusing them.
    #[inline]
    pub fn has_queues(&self) -> bool {
        self.queues
    }

    /// True if decisions depend on the wall clock: some override has a start or an end, some client changes its plan at
    /// a date, or a rule is a quota.
    pub fn is_dated(&self) -> bool {
        self.dated_overrides || self.quotas
    }

    /// True if some override has a start or an end.
    pub fn has_dated_overrides(&self) -> bool {
        self.dated_overrides
    }

    /// All tiers of rules and clients, sorted: the values of the metric label.
    pub fn tiers(&self) -> Vec<&str> {
        let of_clients = self.namespaces.values().flat_map(|namespace| namespace.directories.tiers());
        let mut tiers: Vec<&str> = self.rules.iter().flat_map(Rule::tiers).chain(of_clients).collect();
        tiers.sort_unstable();
        tiers.dedup();
        tiers
    }

    /// The tier of a request: as sent, or from the client directory.
    pub fn tier_of<'a>(&'a self, request: &Request<'a>) -> Option<&'a str> {
        if let sent @ Some(_) = request.get(Attribute::Tier) {
            return sent;
        }
        let namespace = self.namespaces.get(request.namespace)?;
        if !namespace.tiers {
            return None;
        }
        if let Some(values) = namespace.rewritten(request) {
            let tier = values.with(request, |request| self.tier_of(request).map(str::to_owned))?;
            return namespace.directories.tiers().find(|known| **known == tier);
        }
        let mut facts = RequestFacts::new(namespace, Time::ZERO);
        facts.identify(namespace, request, self.secret).ok()?;
        facts.sent_or_known(AttrId::TIER)
    }

    /// Attributes of the client of a request from the directories: tier, organisation, the plan at `wall`, and others.
    pub fn client_attributes(&self, request: &Request<'_>, wall: Time) -> Vec<(String, String)> {
        let Some(namespace) = self.namespaces.get(request.namespace).filter(|namespace| namespace.domain.is_none())
        else {
            return Vec::new();
        };
        if let Some(values) = namespace.rewritten(request) {
            return values.with(request, |request| self.client_attributes(request, wall));
        }
        let mut facts = RequestFacts::new(namespace, wall);
        let read = facts.identify(namespace, request, self.secret);
        if read.is_ok() { facts.known(namespace, self.secret) } else { Vec::new() }
    }

    /// Whether a request is valid; evaluates no rule.
    #[cold]
    pub fn readable(&self, request: &Request<'_>) -> Result<(), RequestError> {
        let Some(namespace) = self.namespaces.get(request.namespace) else { return Ok(()) };
        if namespace.domain.is_some() {
            return domain::readable(request);
        }
        if let Some(values) = namespace.rewritten(request) {
            return values.with(request, |request| self.readable(request));
        }
        namespace.know_meters(request)?;
        RequestFacts::new(namespace, Time::ZERO).gather(namespace, request, self.secret)
    }

    /// How each rule of the request's namespace evaluates the request. Slow and complete, for diagnostics.
    pub fn explain(&self, request: &Request<'_>, wall: Time) -> Result<Vec<Explanation<'_>>, RequestError> {
        let Some(namespace) = self.namespaces.get(request.namespace) else { return Ok(Vec::new()) };
        if let Some(domain) = &namespace.domain {
            return domain.explain(self, &namespace.descriptor(request, wall));
        }
        if let Some(values) = namespace.rewritten(request) {
            return values.with(request, |request| self.explain(request, wall));
        }
        let mut facts = RequestFacts::new(namespace, wall);
        facts.gather(namespace, request, self.secret)?;
        namespace.know_meters(request)?;
        Ok(explain::explain(self, namespace, request, &facts, wall))
    }

    /// The buckets that each rule of the request's namespace may have for the client of the request. Slow, for
    /// diagnostics. Empty for a domain of Envoy files, whose buckets are not determined by a client.
    pub fn buckets(&self, request: &Request<'_>, wall: Time) -> Result<Vec<ClientBuckets<'_>>, RequestError> {
        let namespace = self.namespaces.get(request.namespace).filter(|namespace| namespace.domain.is_none());
        let Some(namespace) = namespace else { return Ok(Vec::new()) };
        if let Some(values) = namespace.rewritten(request) {
            return values.with(request, |request| self.buckets(request, wall));
        }
        let mut facts = RequestFacts::new(namespace, wall);
        facts.gather(namespace, request, self.secret)?;
        Ok(explain::buckets(self, namespace, request, &facts, wall))
    }
}

#[cfg(test)]
mod tests;
