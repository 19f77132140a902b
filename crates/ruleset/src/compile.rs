//! Compiles files into a set, and reports all problems at once. Unchanged rules are shared with the previous set.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use tollgate_core::{Request, Secret};
use tollgate_rules::problem::{Problem, Problems};
use tollgate_rules::spec::{self, OnFail, OverrideSpec, RuleFile, RuleSpec};

use super::attributes::Attributes;
use super::compile_rule::compile_body;
use super::directories::BoundDirectories;
use super::input::{CompileOptions, Defaults, DomainRules, NamespaceRules};
use super::matching::LayeredIndex;
use super::rule::{Rule, RuleBody, RuleId};
use super::{CompiledNamespace, RuleSet, domain, naming};
use crate::directory::Directory;

pub(super) fn assemble(
    parts: &[NamespaceRules<'_>],
    domains: &[DomainRules<'_>],
    options: &CompileOptions,
    previous: Option<&RuleSet>,
) -> Result<RuleSet, Problems> {
    let mut set = RuleSet { secret: options.secret, seed: options.seed, ..RuleSet::empty() };
    let mut problems = Problems::default();
    for part in parts {
        let file = part.file;
        if set.namespaces.contains_key(&file.namespace) {
            let message = format!("the namespace `{}` has rules in two files", file.namespace);
            problems.push(Problem::error("duplicate-namespace", Default::default(), "namespace", message));
            continue;
        }
        let namespace = compile_part(part, options, previous, &mut set, &mut problems);
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

fn compile_part(
    part: &NamespaceRules<'_>,
    options: &CompileOptions,
    previous: Option<&RuleSet>,
    set: &mut RuleSet,
    problems: &mut Problems,
) -> CompiledNamespace {
    let file = part.file;
    let mut before = PreviousNamespace::of(previous, &file.namespace, options, file.rules.len() + part.rules.len());
    let mut attributes = before.attributes();
    let generated = naming::generate(file);
    let first = set.rules.len();
    // Number of each rule in the reused index.
    let mut indexed: Vec<u32> = Vec::with_capacity(file.rules.len() + part.rules.len());
    let own = file.rules.iter().map(|spec| (Cow::Owned(Arc::new(spec.clone())), Defaults::of(file)));
    let more = part.rules.iter().map(|spec| (Cow::Borrowed(spec), Defaults::beside(file)));
    for (number, (spec, defaults)) in own.chain(more).enumerate() {
        let id = RuleId(set.rules.len() as u32);
        let filled = if spec.key_by.is_some() { spec } else { Cow::Owned(defaults.fill(&spec)) };
        let filled = filled.normalized(file.normalize).map_or(filled, |respelled| Cow::Owned(Arc::new(respelled)));
        let generated = generated.get(&number);
        let known = match number < file.rules.len() {
            true => before.at(number, &filled, defaults.on_fail(&filled)),
            false => before.named(&filled),
        };
        // A rule with an operator's mode, now or before, is compiled again: its spec differs from the compiled one.
        let same = |body: &RuleBody| {
            let switched = body.replaced_mode.is_some() || file.modes.contains_key(&body.name);
            let named = generated.is_none_or(|names| names.name == body.name);
            !switched && named && body.file_name == defaults.file_name(&body.spec)
        };
        if let Some((body, number)) = known.filter(|(body, _)| same(body)) {
            indexed.push(number);
            set.rules.push(Rule::new(id, body));
            continue;
        }
        let spec = filled.into_owned();
        match compile_body(defaults, generated, spec.clone(), options, &mut attributes) {
            Err(error) => {
                let field = format!("{}.limit", file.path_of(number));
                problems.push(Problem::error("bad-limit", spec.at, field, error.to_string()));
            }
            Ok(body) => {
                indexed.push(u32::MAX);
                set.rules.push(Rule::new(id, Arc::new(body)));
            }
        }
    }
    let rules = set.rules.get_mut(first..).unwrap_or_default();
    relate(file, rules, problems);
    let own = own_directory(file, options.secret);
    let directories = BoundDirectories::new(std::iter::once(own).chain(part.directories.iter().cloned()), &attributes);
    if !directories.suit(options.secret, file.ipv6_prefix, file.normalize) {
        let message = format!("a directory of the namespace `{}` was built with other settings", file.namespace);
        let problem = Problem::error("bad-directory", Default::default(), "ipv6_prefix", message);
        problems.push(problem.help("build it with the secret, the `ipv6_prefix` and the `normalize` of these rules"));
    }
    directories.number(rules);
    let plan = attributes.find(spec::PLAN);
    set.quotas |= rules.iter().any(|rule| rule.is_quota());
    set.penalties |= rules.iter().any(|rule| rule.spec.penalty.is_some());
    set.slots |= rules.iter().any(|rule| rule.is_concurrency());
    set.queues |= rules.iter().any(|rule| rule.is_queue());
    set.dated_overrides |= directories.are_dated();
    let index = LayeredIndex::new(before.index(), rules, indexed, &attributes);
    let tiers = directories.tiers().next().is_some();
    let meters = rules.iter().flat_map(|rule| rule.meter_names()).filter(|name| name != Request::REQUESTS).collect();
    let RuleFile { ipv6_prefix, escaped_slash, normalize, .. } = *file;
    let (rules, own) = (first..set.rules.len(), file.rules.len());
    CompiledNamespace {
        index,
        rules,
        own,
        attributes,
        directories,
        tiers,
        default_plan: file.default_plan().map(str::to_owned),
        plan,
        ipv6_prefix,
        escaped_slash,
        normalize,
        meters,
        domain: None,
    }
}

/// Resolves references between rules, and from overrides of the file, if there are any.
fn relate(file: &RuleFile, rules: &mut [Rule], problems: &mut Problems) {
    let replaces = rules.iter().any(|rule| !rule.spec.replaces.is_empty());
    let fresh = file.rules.iter().any(|spec| spec.name.is_none());
    if !replaces && !fresh && file.overrides.is_empty() {
        return;
    }
    let mut names: HashMap<String, usize> = HashMap::new();
    for (number, rule) in rules.iter().enumerate() {
        if let Some(twin) = names.insert(rule.name.clone(), number).and_then(|twin| rules.get(twin)) {
            let message = format!("this rule says the same as the one in line {}", twin.spec.at.line);
            let problem = Problem::error("duplicate-rule", rule.spec.at, format!("rules[{number}]"), message);
            problems.push(problem.help("remove one of them, or give each a name"));
        }
    }
    check_overrides(file, &names, rules, problems);
    let ids: HashMap<String, RuleId> =
        names.into_iter().filter_map(|(name, number)| Some((name, rules.get(number)?.id))).collect();
    resolve_replaces(&ids, rules);
}

/// Resolves `replaces`. The check of the file rejected unknown names.
fn resolve_replaces(names: &HashMap<String, RuleId>, rules: &mut [Rule]) {
    for rule in rules {
        rule.replaces = rule.spec.replaces.iter().filter_map(|name| names.get(name)).copied().collect();
    }
}

/// Reports overrides with invalid numbers, which would otherwise be ignored.
fn check_overrides(file: &RuleFile, names: &HashMap<String, usize>, rules: &[Rule], problems: &mut Problems) {
    for (number, spec) in file.overrides.iter().enumerate() {
        let fault = match names.get(&spec.rule).and_then(|number| rules.get(*number)) {
            Some(rule) => fault_of(spec, rule),
            None => {
                rules.iter().filter(|rule| rule.is_named_in_plans(&spec.rule)).find_map(|rule| fault_of(spec, rule))
            }
        };
        let problem = |fault| Problem::error("bad-limit", spec.at, format!("overrides[{number}]"), fault);
        fault.map(problem).into_iter().for_each(|problem| problems.push(problem));
    }
}

/// Why a rule cannot have the numbers of an override.
fn fault_of(spec: &OverrideSpec, rule: &Rule) -> Option<String> {
    let limit = rule.limit?;
    let requests = spec.requests.unwrap_or_else(|| limit.requests());
    let burst = spec.burst.or(spec.requests).unwrap_or_else(|| limit.capacity());
    let shards = u64::from(rule.spec.shards);
    match limit.with_requests(requests, burst) {
        Err(error) => Some(error.to_string()),
        Ok(new) if new.capacity() > 0 && new.requests().min(new.capacity()) < shards => {
            Some(format!("the rule has {shards} shards, and each needs at least one unit"))
        }
        Ok(_) => None,
    }
}

/// The directory of the file's own clients, overrides and grants.
fn own_directory(file: &RuleFile, secret: Secret) -> Directory {
    let mut builder = Directory::builder(secret, file.ipv6_prefix);
    builder.normalize(file.normalize);
    file.clients.iter().for_each(|client| builder.client(client));
    file.overrides.iter().for_each(|change| builder.override_of(change));
    file.grants.iter().for_each(|grant| builder.grant(grant));
    builder.finish()
}

/// A namespace of the previous set.
struct PreviousNamespace<'a> {
    namespace: Option<&'a CompiledNamespace>,
    rules: &'a [Rule],
    /// Index of the next rule among those sorted by name.
    next: usize,
}

/// A rule to share, and its number in the index.
type ReusedRule = (Arc<RuleBody>, u32);

impl<'a> PreviousNamespace<'a> {
    /// Empty if secret or seed differ, or if so much changed that the index should be rebuilt, which also drops
    /// attributes that no rule uses any more.
    fn of(previous: Option<&'a RuleSet>, name: &str, options: &CompileOptions, rules: usize) -> PreviousNamespace<'a> {
        let previous = previous.filter(|set| set.secret == options.secret && set.seed == options.seed);
        let found = previous.and_then(|set| Some((set, set.namespaces.get(name)?)));
        let found = found.filter(|(_, namespace)| namespace.domain.is_none() && namespace.index.is_worthwhile(rules));
        match found {
            Some((set, namespace)) => PreviousNamespace {
                namespace: Some(namespace),
                rules: set.rules.get(namespace.rules.clone()).unwrap_or_default(),
                next: namespace.own,
            },
            None => PreviousNamespace { namespace: None, rules: &[], next: 0 },
        }
    }

    /// The attributes to continue with; numbers stay the same.
    fn attributes(&self) -> Attributes {
        self.namespace.map_or_else(Attributes::new, |namespace| namespace.attributes.clone())
    }

    fn index(&self) -> Option<&'a LayeredIndex> {
        self.namespace.map(|namespace| &namespace.index)
    }

    /// The equal rule at the same index of the file.
    fn at(&self, index: usize, spec: &RuleSpec, on_fail: OnFail) -> Option<ReusedRule> {
        let own = self.namespace.map_or(0, |namespace| namespace.own);
        let rule = self.rules.get(index).filter(|_| index < own)?;
        (*rule.spec == *spec && rule.on_fail == on_fail).then(|| self.known(index, rule))
    }

    /// The rule with the same shared spec. Must be called in the order of names.
    fn named(&mut self, spec: &Arc<RuleSpec>) -> Option<ReusedRule> {
        while let Some(rule) = self.rules.get(self.next) {
            if Arc::ptr_eq(&rule.spec, spec) {
                self.next += 1;
                return Some(self.known(self.next - 1, rule));
            }
            if Some(rule.name.as_str()) >= spec.name.as_deref() {
                return None;
            }
            self.next += 1;
        }
        None
    }

    fn known(&self, index: usize, rule: &Rule) -> ReusedRule {
        (rule.body.clone(), self.namespace.map_or(u32::MAX, |namespace| namespace.index.number_of(index)))
    }
}
