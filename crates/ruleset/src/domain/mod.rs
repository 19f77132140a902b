//! Namespaces from envoyproxy/ratelimit files: a tree finds the rule of a request, which is charged like any other.

mod tree;
mod wildcard;

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::{Ask, AskedLimit, Charge, FixedWindow, KeyHasher, Limit, Purpose, Request, Secret, Time};
use tollgate_rules::check::is_label;
use tollgate_rules::envoy::{
    Allowance, EnvoyDescriptor, OVERRIDE, RateLimit, Unit, client_key, descriptor_key, label, rule_name,
};
use tollgate_rules::problem::{Problem, Problems};
use tollgate_rules::spec::{Enforcement, LimitAlgorithm, LimitSpec, RuleSpec};

use self::tree::{DescriptorTree, TreeMatch};
use super::charges::{ChargeSink, ChargeTerms};
use super::compile_rule::compile_body;
use super::directories::BoundDirectories;
use super::envoy_rule::{DescriptorLevel, EnvoyRule};
use super::explain::{Applicability, Explanation, KeyPart};
use super::facts::{CUSTOM_MAX, RequestError, VALUE_BYTES_MAX};
use super::input::{CompileOptions, Defaults, DomainRules};
use super::rule::{Rule, RuleBody, RuleId};
use super::{CompiledNamespace, RuleSet};
use crate::directory::{Identity, PackedOverride};

/// Finds the rules of a domain.
#[derive(Debug)]
pub(super) struct DomainIndex {
    tree: DescriptorTree,
    /// The rule for requests that contain a limit.
    overriding: RuleId,
    /// Some rule replaces another, so the requests of one decision depend on each other.
    replaces: bool,
}

/// A request with its namespace and time.
pub(super) struct DescriptorRequest<'a> {
    pub(super) namespace: &'a CompiledNamespace,
    pub(super) request: &'a Request<'a>,
    pub(super) wall: Time,
}

impl<'a> DescriptorRequest<'a> {
    /// The override of a rule that is in force for the request, and its client: the whole descriptor, else the first
    /// entry with an override.
    fn exception(&self, rule: &Rule, secret: Secret) -> Option<(String, &'a PackedOverride)> {
        let directories = &self.namespace.directories;
        if directories.kinds == 0 {
            return None;
        }
        let entries = self.request.custom;
        let whole = std::iter::once_with(|| descriptor_key(entries));
        whole.chain(entries.iter().map(|(key, value)| client_key(key, value))).find_map(|client_key| {
            let identity = Identity::of(&client_key);
            if identity.bit() & directories.kinds == 0 {
                return None;
            }
            let digest = identity.digest(secret, self.namespace.ipv6_prefix);
            let held = directories
                .all
                .iter()
                .zip(&rule.numbers)
                .find_map(|(bound, numbers)| numbers.find(bound.directory.find(digest)?.overrides, self.wall))?;
            Some((client_key, held))
        })
    }
}

/// Rules that are replaced within one decision.
pub(super) type ReplacedRules = SmallVec<[RuleId; 8]>;

impl DomainIndex {
    /// The rule of a request; `None` if it has no limit.
    fn find(&self, request: &Request<'_>) -> Option<TreeMatch> {
        match request.limit {
            Some(_) => Some(TreeMatch { rule: self.overriding, shared: 0 }),
            None => self.tree.find(request.custom),
        }
    }

    /// Adds the rules that the rule of `request` replaces.
    pub(super) fn add_replaced(&self, set: &RuleSet, request: &Request<'_>, replaced: &mut ReplacedRules) {
        if let Some(rule) = self
            .find(request)
            .filter(|_| self.replaces)
            .and_then(|found| set.rule(found.rule))
            .filter(|rule| rule.spec.mode != Enforcement::Off)
        {
            replaced.extend_from_slice(&rule.replaces);
        }
    }

    /// Adds the charge of the request's rule, unless the rule is replaced or off.
    pub(super) fn collect(
        &self,
        set: &RuleSet,
        descriptor: &DescriptorRequest<'_>,
        replaced: &[RuleId],
        mut sink: ChargeSink<'_>,
    ) -> Result<(), RequestError> {
        let request = descriptor.request;
        readable(request)?;
        if request.purpose == Purpose::Mention {
            return Ok(());
        }
        let Some(found) = self.find(request).filter(|found| !replaced.contains(&found.rule)) else { return Ok(()) };
        let Some(rule) = set.rule(found.rule).filter(|rule| rule.spec.mode != Enforcement::Off) else { return Ok(()) };
        let exception = descriptor.exception(rule, set.secret).map(|(_, held)| held);
        match charge_of(rule, found, request, exception, sink.terms())? {
            None => sink.add_unlimited(rule.id),
            Some(charge) if sink.add(rule.id, &charge, 1) => {}
            Some(_) => return Err(RequestError::mixed(&rule.name)),
        }
        Ok(())
    }

    /// Explains every rule of the domain.
    pub(super) fn explain<'a>(
        &self,
        set: &'a RuleSet,
        descriptor: &DescriptorRequest<'_>,
    ) -> Result<Vec<Explanation<'a>>, RequestError> {
        let request = descriptor.request;
        readable(request)?;
        let found = self.find(request);
        let rules = set.rules.iter().filter(|rule| rule.namespace == request.namespace);
        let explain = |rule: &'a Rule| {
            let own = found.filter(|found| found.rule == rule.id);
            let found_exception = own.and_then(|_| descriptor.exception(rule, set.secret));
            let exception = found_exception.as_ref().map(|(_, held)| *held);
            let applicability = match own {
                Some(_) if rule.spec.mode == Enforcement::Off => Applicability::Off,
                Some(found) => {
                    let terms = ChargeTerms { identities: true, ..ChargeTerms::default() };
                    let charge = charge_of(rule, found, request, exception, terms)?;
                    let overridden = request.limit.is_some() || exception.is_some();
                    charge.map_or(Applicability::Unlimited, |charge| Applicability::Applies {
                        charge: Box::new(charge),
                        overridden,
                    })
                }
                None => Applicability::NoMatch {
                    attribute: "descriptor".to_owned(),
                    wanted: rule.name.clone(),
                    found: Some(rule_name(request.custom.iter().map(|(key, value)| (*key, Some(*value))))),
                },
            };
            let part = |(key, value): &(&str, &str)| KeyPart {
                attribute: (*key).to_owned(),
                value: Some((*value).to_owned()),
            };
            let key = if own.is_some() { request.custom.iter().map(part).collect() } else { Vec::new() };
            let active_override = found_exception.map(|(client_key, held)| held.shown(client_key));
            Ok(Explanation {
                rule,
                applicability,
                key,
                overrides: descriptor.namespace.directories.overrides_of(rule),
                active_override,
                grants: Vec::new(), // descriptors have no quotas of a calendar
            })
        };
        rules.map(explain).collect()
    }
}

/// Whether a descriptor is valid: only sizes can be wrong.
pub(super) fn readable(request: &Request<'_>) -> Result<(), RequestError> {
    if request.custom.len() > CUSTOM_MAX {
        return Err(RequestError::too_many_attributes());
    }
    for (key, value) in request.custom {
        if key.len() > VALUE_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return Err(RequestError::too_long("entries", VALUE_BYTES_MAX));
        }
    }
    // Rules of Envoy's files count hits only.
    match request.costs.first() {
        Some((meter, _)) if !request.ignores_uncounted => Err(RequestError::unknown_meter(meter, &BTreeSet::new())),
        _ => Ok(()),
    }
}

/// The charge of a rule; `None` if the rule or the override is unlimited.
fn charge_of(
    rule: &Rule,
    found: TreeMatch,
    request: &Request<'_>,
    exception: Option<&PackedOverride>,
    terms: ChargeTerms,
) -> Result<Option<Charge>, RequestError> {
    let Some(mut limit) = rule.limit else { return Ok(None) };
    if exception.is_some_and(PackedOverride::is_unlimited) {
        return Ok(None);
    }
    if let Some(exception) = exception {
        limit = exception.apply(limit, false);
    }
    let mut hasher = rule.hasher;
    if let Some(AskedLimit { requests, window }) = request.limit {
        let asked = FixedWindow::new(requests, window).map_err(|error| RequestError::bad_limit(&error))?;
        limit = Limit::FixedWindow(asked);
        hasher.word(window.nanos());
    }
    for (number, (key, value)) in request.custom.iter().enumerate() {
        hasher.part(key.as_bytes());
        match found.shared >> (number & 63) & 1 {
            0 => hasher.part(value.as_bytes()),
            _ => hasher.missing(),
        }
    }
    let cost = request.cost;
    let ask = match request.purpose {
        Purpose::Consume => Ask::Consume(cost),
        Purpose::Peek | Purpose::Mention => Ask::Peek(cost),
        Purpose::Report => Ask::Force(cost),
    };
    Ok(Some(Charge {
        bucket: hasher.finish(),
        limit,
        ask,
        enforcement: terms.enforcement(rule),
        count_denied: rule.spec.count_denied,
        soft: None,
        owner: rule.owner,
        identity: if terms.identities { identity(rule.identity, found, request) } else { 0 },
        sharing: rule.sharing,
    }))
}

/// The identity of the bucket: the first entry, which is what the counters of one caller have in common.
fn identity(mut hasher: KeyHasher, found: TreeMatch, request: &Request<'_>) -> u32 {
    if let Some((key, value)) = request.custom.first().filter(|_| found.shared & 1 == 0) {
        hasher.part(key.as_bytes());
        hasher.part(value.as_bytes());
    }
    let [bits, _] = hasher.finish().0;
    bits as u32
}

/// Compiles a domain and adds its rules to the set.
pub(super) fn compile(
    part: &DomainRules<'_>,
    options: &CompileOptions,
    set: &mut RuleSet,
    problems: &mut Problems,
) -> CompiledNamespace {
    let (domain, first) = (part.domain, set.rules.len());
    let mut namespace = CompiledNamespace::without_rules();
    let mut add = |mut spec: RuleSpec, mut envoy: EnvoyRule, file_name: Option<Arc<str>>| {
        let switched = spec.name.as_ref().and_then(|name| part.modes.get(name)).copied();
        let replaced_mode = switched.map(|mode| switch(mode, &mut spec, &mut envoy));
        let id = RuleId(set.rules.len() as u32);
        let (defaults, at) = (Defaults::none(&domain.name), spec.at);
        match compile_body(defaults, None, defaults.fill(&Arc::new(spec)), options, &mut namespace.attributes) {
            Ok(body) => {
                let envoy = Some(Box::new(EnvoyRule { domain: domain.name.clone(), ..envoy }));
                set.rules.push(Rule::new(id, Arc::new(RuleBody { envoy, file_name, replaced_mode, ..body })));
                Some(id)
            }
            Err(error) => {
                problems.push(Problem::error("bad-limit", at, "descriptors", error.to_string()));
                None
            }
        }
    };
    let overriding = add(overriding_spec(), EnvoyRule { overrides: true, ..EnvoyRule::default() }, None);
    let mut limits: Vec<(RuleId, &RateLimit)> = Vec::new();
    let tree = DescriptorTree::of(&domain.descriptors, &mut |path| {
        let (last, limit) = path.last().and_then(|last| Some((last, last.rate_limit.as_ref()?)))?;
        let id = add(spec_of(path, last, limit), envoy_of(path, last, limit), last.file_name.clone())?;
        limits.push((id, limit));
        Some(id)
    });
    resolve(&limits, set);
    let replaces = limits.iter().any(|(_, limit)| !limit.replaces.is_empty());
    let overriding = overriding.unwrap_or(RuleId(u32::MAX));
    namespace.directories = BoundDirectories::new(part.directories.iter().cloned(), &namespace.attributes);
    if !namespace.directories.suit(options.secret, namespace.ipv6_prefix, namespace.normalize) {
        let message = format!("a directory of the domain `{}` was built with other settings", domain.name);
        problems.push(Problem::error("bad-directory", domain.at, "domain", message));
    }
    namespace.directories.number(set.rules.get_mut(first..).unwrap_or_default());
    set.dated_overrides |= namespace.directories.are_dated();
    namespace.domain = Some(Box::new(DomainIndex { tree, overriding, replaces }));
    namespace
}

/// Sets an operator's mode; returns the mode of the file. A quota never denies by itself.
fn switch(mode: Enforcement, spec: &mut RuleSpec, envoy: &mut EnvoyRule) -> Enforcement {
    envoy.shadow_mode = mode == Enforcement::Shadow;
    let mode = if mode == Enforcement::Enforce && envoy.quota_mode { Enforcement::Shadow } else { mode };
    std::mem::replace(&mut spec.mode, mode)
}

/// Resolves `replaces`. Several limits may share a name, and a name may have no limit. Unlimited ones are not counted,
/// so they cannot be replaced.
fn resolve(limits: &[(RuleId, &RateLimit)], set: &mut RuleSet) {
    let mut named: HashMap<&str, Vec<RuleId>> = HashMap::new();
    for (id, limit) in limits.iter().filter(|(_, limit)| limit.allowance != Allowance::Unlimited) {
        if let Some(name) = &limit.name {
            named.entry(name).or_default().push(*id);
        }
    }
    for (id, limit) in limits.iter().filter(|(_, limit)| !limit.replaces.is_empty()) {
        if let Some(rule) = set.rules.get_mut(id.0 as usize) {
            rule.replaces =
                limit.replaces.iter().filter_map(|name| named.get(name.as_str())).flatten().copied().collect();
        }
    }
}

/// The spec of a descriptor's rule. Every matching rule is charged, even if the request is denied: callers report usage
/// afterwards, and a request does not show whether it is a report.
fn spec_of(path: &[&EnvoyDescriptor], last: &EnvoyDescriptor, limit: &RateLimit) -> RuleSpec {
    let name = rule_name(path.iter().map(|node| (node.key.as_str(), node.value.as_deref())));
    let (requests, window_ns, unlimited) = match limit.allowance {
        Allowance::Limited { requests_per_unit, unit } => (u64::from(requests_per_unit), unit.window().nanos(), false),
        Allowance::Unlimited => (0, 0, true),
    };
    RuleSpec {
        at: last.at,
        resource: limit.name.as_deref().map(label).filter(|name| is_label(name)),
        limit: (!unlimited).then(|| fixed_window(requests, window_ns)),
        unlimited,
        // A quota denies only together with others; the transport combines them.
        mode: if last.shadow_mode || last.quota_mode { Enforcement::Shadow } else { Enforcement::Enforce },
        max_debt: Some(requests),
        ..counted(name)
    }
}

fn envoy_of(path: &[&EnvoyDescriptor], last: &EnvoyDescriptor, limit: &RateLimit) -> EnvoyRule {
    let level = |node: &&EnvoyDescriptor| DescriptorLevel {
        key: node.key.clone(),
        value: node.value.clone(),
        shared: node.share_threshold,
        by_value: node.value_to_metric,
    };
    EnvoyRule {
        name: limit.name.as_deref().map(label),
        limit: match limit.allowance {
            Allowance::Limited { requests_per_unit, unit } => Some((requests_per_unit, unit)),
            Allowance::Unlimited => None,
        },
        shadow_mode: last.shadow_mode,
        quota_mode: last.quota_mode,
        metadata: last.metadata.clone(),
        levels: path.iter().map(level).collect(),
        detailed: last.detailed_metric,
        ..EnvoyRule::default()
    }
}

/// The rule for limits that requests contain; its own limit is never used.
fn overriding_spec() -> RuleSpec {
    RuleSpec { limit: Some(fixed_window(0, Unit::Second.window().nanos())), ..counted(OVERRIDE.to_owned()) }
}

fn counted(name: String) -> RuleSpec {
    RuleSpec { name: Some(name), count_denied: true, ..RuleSpec::default() }
}

fn fixed_window(requests: u64, window_ns: u64) -> LimitSpec {
    LimitSpec { algorithm: LimitAlgorithm::FixedWindow, requests, window_ns, ..LimitSpec::default() }
}
