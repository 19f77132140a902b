//! From files to a set: names, identities, limits and the index, with every problem reported at once.

use std::collections::{BTreeMap, HashMap};

use smallvec::SmallVec;
use tollgate_core::{
    Concurrency, FixedWindow, Gcra, KeyHasher, LeaseSize, Limit, LimitError, Owner, Queue, Secret, Sharing,
    SlidingCounter, SlidingLog, Span,
};

use super::attributes::Attributes;
use super::domain;
use super::index::Index;
use super::naming::{self, Generated};
use super::rule::{Conditions, Rule, RuleId};
use super::sources::Sources;
use super::{Namespace, RuleSet};
use crate::directory::Directory;
use crate::envoy::Domain;
use crate::key::KeyBy;
use crate::lookup::{IndexedEndpoint, IndexedMatcher};
use crate::problem::{Problem, Problems};
use crate::spec::{Algorithm, Consistency, Cost, Lease, LimitSpec, MatchSpec, Mode, OnFail, RuleFile, RuleSpec};

/// What compiling needs besides the files.
#[derive(Clone, Copy, Debug)]
pub struct CompileOptions {
    /// The key of all digests. Nodes that share buckets share it.
    pub secret: Secret,
    /// Makes the lots of soft limits differ between deployments.
    pub seed: u64,
}

impl CompileOptions {
    /// Fixed options, for tests and for tools that keep nothing.
    pub fn for_test() -> CompileOptions {
        CompileOptions { secret: Secret::new(*b"tollgate testing"), seed: 0 }
    }
}

/// The rules of one namespace, and who is looked up where.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its rules, and clients and overrides of its own, which come first.
    pub file: &'a RuleFile,
    /// Further clients and overrides, in the order in which they are asked about one identity.
    pub directories: &'a [Directory],
}

/// A domain of Envoy's files, and who is looked up where.
#[derive(Clone, Copy, Debug)]
pub struct DomainPart<'a> {
    /// The domain.
    pub domain: &'a Domain,
    /// Overrides of its rules, in the order in which they are asked about one identity.
    pub directories: &'a [Directory],
    /// Modes that hold instead of those of the file, by the name of the rule.
    pub modes: &'a BTreeMap<String, Mode>,
}

pub(super) fn assemble(
    parts: &[Part<'_>],
    domains: &[DomainPart<'_>],
    options: &CompileOptions,
) -> Result<RuleSet, Problems> {
    let mut set = RuleSet { secret: options.secret, ..RuleSet::empty() };
    let mut problems = Problems::default();
    for part in parts {
        let file = part.file;
        if set.namespaces.contains_key(&file.namespace) {
            let message = format!("the namespace `{}` has rules in two files", file.namespace);
            problems.push(Problem::error("duplicate-namespace", Default::default(), "namespace", message));
            continue;
        }
        let namespace = compile_part(part, options, &mut set, &mut problems);
        set.namespaces.insert(file.namespace.clone(), namespace);
    }
    for part in domains {
        let domain = part.domain;
        if set.namespaces.contains_key(&domain.name) {
            let message = format!("the namespace `{}` has rules, and is also a domain of Envoy's files", domain.name);
            let problem = Problem::error("duplicate-namespace", domain.at, "domain", message);
            problems.push(problem.help("rename one of them: the rules of a namespace come from one kind of file"));
            continue;
        }
        let namespace = domain::compile(part, options, &mut set, &mut problems);
        set.namespaces.insert(domain.name.clone(), namespace);
    }
    if problems.is_empty() { Ok(set) } else { Err(problems) }
}

fn compile_part(part: &Part<'_>, options: &CompileOptions, set: &mut RuleSet, problems: &mut Problems) -> Namespace {
    let file = part.file;
    let mut attributes = Attributes::new();
    let first = set.rules.len();
    let mut names: HashMap<String, RuleId> = HashMap::new();
    let generated = naming::generate(file);
    for (number, spec) in file.rules.iter().enumerate() {
        let id = RuleId(set.rules.len() as u32);
        match compile_rule(id, file, spec, generated.get(&number), options, &mut attributes) {
            Err(error) => {
                let field = format!("rules[{number}].limit");
                problems.push(Problem::error("bad-limit", spec.at, field, error.to_string()));
            }
            Ok(rule) => {
                if let Some(twin) = names.insert(rule.name.clone(), id).and_then(|twin| set.rule(twin)) {
                    let message = format!("this rule says the same as the one in line {}", twin.spec.at.line);
                    let problem = Problem::error("duplicate-rule", spec.at, format!("rules[{number}]"), message);
                    problems.push(problem.help("remove one of them, or give each a name"));
                }
                set.rules.push(rule);
            }
        }
    }
    resolve_replaces(&names, set.rules.get_mut(first..).unwrap_or_default());
    check_overrides(file, &names, &set.rules, problems);
    let own = own_directory(file, options.secret);
    let sources = Sources::new(std::iter::once(own).chain(part.directories.iter().cloned()), &attributes);
    if !sources.suit(options.secret, file.ipv6_prefix, file.normalize) {
        let message = format!("a directory of the namespace `{}` finds nobody here", file.namespace);
        let problem = Problem::error("bad-directory", Default::default(), "ipv6_prefix", message);
        problems.push(problem.help("build it with the secret, the `ipv6_prefix` and the `normalize` of these rules"));
    }
    sources.number(set.rules.get_mut(first..).unwrap_or_default());
    set.dated |= sources.are_dated();
    let rules = set.rules.get(first..).unwrap_or_default();
    let index = Index::build(rules.iter().filter(|rule| rule.spec.mode != Mode::Off), &attributes);
    let tiers = sources.tiers().next().is_some();
    let RuleFile { ipv6_prefix, escaped_slash, normalize, .. } = *file;
    Namespace { index, attributes, sources, tiers, ipv6_prefix, escaped_slash, normalize, domain: None }
}

pub(super) fn compile_rule(
    id: RuleId,
    file: &RuleFile,
    spec: &RuleSpec,
    generated: Option<&Generated>,
    options: &CompileOptions,
    attributes: &mut Attributes,
) -> Result<Rule, LimitError> {
    let spec = &*file.normalize.rule(spec);
    let key_by = key_of(file, spec);
    let name = spec.name.as_ref().or(generated.map(|names| &names.name)).cloned().unwrap_or_default();
    let identity_name = spec.name.as_ref().or(generated.map(|names| &names.identity)).unwrap_or(&name);
    let limit = spec.limit.as_ref().filter(|_| !spec.unlimited).map(|limit| limit_of(limit, spec)).transpose()?;
    let mut hasher = KeyHasher::new(options.secret);
    let mut public = KeyHasher::new(Secret::new([0; 16]));
    for hasher in [&mut hasher, &mut public] {
        hasher.part(file.namespace.as_bytes());
        hasher.part(identity_name.as_bytes());
        hasher.word(limit.map_or(u64::MAX, |limit| limit.kind() as u64));
        hasher.word(limit.map_or(0, |limit| limit.window().nanos()));
    }
    let [bits, _] = public.finish().0;
    let mut identity = KeyHasher::new(options.secret);
    identity.part(b"identity");
    identity.part(file.namespace.as_bytes());
    let [namespace, _] = identity.finish().0;
    let mode = file.modes.get(&name).copied();
    Ok(Rule {
        id,
        replaced_mode: mode.map(|_| spec.mode),
        namespace: file.namespace.clone(),
        file_name: file.file_name.clone().filter(|_| spec.at.line > 0),
        resource: spec.resource.clone().unwrap_or_else(|| name.clone()),
        name,
        on_fail: spec.on_fail.or(file.on_fail).unwrap_or(OnFail::Local),
        limit,
        envoy: None,
        conditions: conditions_of(&spec.matches, attributes),
        key: key_by.parts.iter().map(|part| part.iter().map(|name| attributes.intern(name)).collect()).collect(),
        costs: costs_of(&spec.cost, attributes),
        hasher,
        owner: Owner { id: bits as u32, share: spec.max_memory.unwrap_or(100), namespace: namespace as u32 },
        identity,
        sharing: sharing_of(spec),
        seed: options.seed,
        replaces: Vec::new(),
        numbers: SmallVec::new(),
        spec: RuleSpec { key_by: Some(key_by), mode: mode.unwrap_or(spec.mode), ..spec.clone() },
    })
}

fn sharing_of(spec: &RuleSpec) -> Sharing {
    let size = match spec.lease {
        None => LeaseSize::Auto,
        Some(Lease::Tokens(tokens)) => LeaseSize::Units(u32::try_from(tokens).unwrap_or(u32::MAX)),
        Some(Lease::Seconds(seconds)) => {
            LeaseSize::Millis(u32::try_from(seconds.saturating_mul(1000)).unwrap_or(u32::MAX))
        }
    };
    match spec.consistency {
        Consistency::Exact => Sharing::Exact,
        Consistency::Leased => Sharing::Leased(size),
        Consistency::Async => Sharing::Async,
        Consistency::Local => Sharing::Local,
    }
}

/// What a rule counts by: its own key, or the file's, or the client.
pub(super) fn key_of(file: &RuleFile, spec: &RuleSpec) -> KeyBy {
    let by_client = || KeyBy { parts: vec![vec!["client_key".to_owned()]] };
    spec.key_by.clone().or_else(|| file.key_by.clone()).unwrap_or_else(by_client)
}

pub(super) fn limit_of(spec: &LimitSpec, rule: &RuleSpec) -> Result<Limit, LimitError> {
    let window = Span::from_nanos(spec.window_ns);
    Ok(match spec.algorithm {
        Algorithm::LeakyBucket if let Some(max_delay) = spec.max_delay_ns => {
            Limit::Queue(Queue::new(spec.requests, window, Span::from_nanos(max_delay))?)
        }
        Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket => {
            let burst = spec.burst.unwrap_or(spec.requests);
            // Usage above the capacity is kept as debt: forced, or counted although denied.
            let counted = if rule.count_denied { burst } else { 0 };
            let debt = rule.max_debt.unwrap_or(counted);
            Limit::Gcra(Gcra::new(spec.requests, window, burst)?.with_max_debt(debt)?)
        }
        Algorithm::FixedWindow => Limit::FixedWindow(FixedWindow::new(spec.requests, window)?),
        Algorithm::SlidingWindowLog => Limit::SlidingLog(SlidingLog::new(spec.requests, window)?),
        Algorithm::SlidingWindowCounter => Limit::SlidingCounter(SlidingCounter::new(spec.requests, window)?),
        Algorithm::Concurrency => Limit::Concurrency(Concurrency::new(spec.slots, Span::from_nanos(spec.slot_ttl_ns))?),
    })
}

fn conditions_of(spec: &MatchSpec, attributes: &mut Attributes) -> Conditions {
    let by_number =
        spec.attributes.iter().map(|(name, matcher)| (attributes.intern(name), IndexedMatcher::new(matcher.clone())));
    Conditions { attributes: by_number.collect(), endpoint: spec.endpoint.clone().map(IndexedEndpoint::new) }
}

fn costs_of(cost: &Cost, attributes: &mut Attributes) -> Vec<(Conditions, u64)> {
    match cost {
        Cost::Fixed(1) => Vec::new(),
        Cost::Fixed(cost) => vec![(Conditions::default(), *cost)],
        Cost::ByMatch(cases) => {
            cases.iter().map(|case| (conditions_of(&case.matches, attributes), case.cost)).collect()
        }
    }
}

/// Names to numbers. Names of rules that do not exist were refused when the file was checked.
fn resolve_replaces(names: &HashMap<String, RuleId>, rules: &mut [Rule]) {
    for rule in rules {
        rule.replaces = rule.spec.replaces.iter().filter_map(|name| names.get(name)).copied().collect();
    }
}

/// An override whose numbers make no limit would silently leave the rule's: it is a problem of the file instead.
fn check_overrides(file: &RuleFile, names: &HashMap<String, RuleId>, rules: &[Rule], problems: &mut Problems) {
    for (number, spec) in file.overrides.iter().enumerate() {
        let rule = names.get(&spec.rule).and_then(|id| rules.get(id.0 as usize));
        let Some((rule, limit)) = rule.and_then(|rule| Some((rule, rule.limit?))) else { continue };
        let requests = spec.requests.unwrap_or_else(|| limit.requests());
        let burst = spec.burst.or(spec.requests).unwrap_or_else(|| limit.capacity());
        let shards = u64::from(rule.spec.shards);
        let fault = match limit.with_requests(requests, burst) {
            Err(error) => error.to_string(),
            Ok(new) if new.capacity() > 0 && new.requests().min(new.capacity()) < shards => {
                format!("the rule has {shards} shards, and each needs at least one unit")
            }
            Ok(_) => continue,
        };
        problems.push(Problem::error("bad-limit", spec.at, format!("overrides[{number}]"), fault));
    }
}

/// What the file itself says of clients.
fn own_directory(file: &RuleFile, secret: Secret) -> Directory {
    let mut builder = Directory::builder(secret, file.ipv6_prefix);
    builder.normalize(file.normalize);
    file.clients.iter().for_each(|client| builder.client(client));
    file.overrides.iter().for_each(|change| builder.override_of(change));
    builder.finish()
}
