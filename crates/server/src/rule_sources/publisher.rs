//! Combines the rules of all sources and activates them.
//!
//! The rules file takes precedence: it was reviewed and deployed, and the API cannot change it. A rule of the database
//! with the name of a rule in the file is hidden, and reported as such; settings of a namespace and of a client that
//! both have are the file's.
//!
//! The domains of Envoy's files are namespaces of their own. One that the rules file also has is rejected; rules of the
//! database in such a namespace are hidden.
//!
//! Overrides and switches live in the database and name a rule by namespace and name, so they apply to rules of any
//! source.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use tollgate_admin::FileRule;
use tollgate_control::change_feed::{LoadedNamespace, LoadedState};
use tollgate_engine::Engine;
use tollgate_rules::{Normalize, RuleFile, RuleSpec, shrinkage};
use tollgate_ruleset::Directory;
use tollgate_ruleset::{CompileOptions, DomainRules, NamespaceRules, RuleSet, generated_names, stable_names};
use tollgate_service::plans::PlanDocument;
use tollgate_service::store::ConfiguredStore;
use tollgate_service::traffic::TrafficMonitor;
use tollgate_telemetry::DecisionMetrics;
use tracing::{error, info, warn};

use super::directory::EnvoyDomains;
use super::error::RuleSourceError;
use super::file::Written;
use super::generation_numbers::GenerationNumbers;
use super::listed;
use super::plans::{self, has_plan, switched};

/// Most hidden rules that are listed.
const HIDDEN_LISTED_MAX: usize = 100;

/// Combines and activates the rules of all sources.
pub struct RulePublisher {
    engine: Arc<Engine<ConfiguredStore>>,
    metrics: Arc<DecisionMetrics>,
    traffic: Option<Arc<TrafficMonitor>>,
    options: CompileOptions,
    inputs: Mutex<RuleInputs>,
    listed: ArcSwap<Vec<FileRule>>,
    plans: ArcSwap<Vec<PlanDocument>>,
    /// The rules file, for readers that do not wait for the inputs.
    file: ArcSwapOption<RuleFile>,
}

/// The rules of each source.
#[derive(Default)]
struct RuleInputs {
    file: Option<Arc<RuleFile>>,
    /// The file's rules as the admin API lists them.
    listed: Vec<FileRule>,
    /// The file's plans, likewise.
    plans: Arc<Vec<PlanDocument>>,
    domains: EnvoyDomains,
    database: Option<Arc<LoadedState>>,
    /// The file's rules, until the start is over.
    held: Option<RuleSet>,
    /// Rules of the database that the file hides, by namespace and id.
    hidden: BTreeSet<(String, String)>,
    numbers: GenerationNumbers,
}

impl RulePublisher {
    /// A publisher without rules.
    pub fn new(
        engine: Arc<Engine<ConfiguredStore>>,
        metrics: Arc<DecisionMetrics>,
        traffic: Option<Arc<TrafficMonitor>>,
        options: CompileOptions,
    ) -> RulePublisher {
        let (listed, plans, file) = (ArcSwap::default(), ArcSwap::default(), ArcSwapOption::empty());
        RulePublisher { engine, metrics, traffic, options, inputs: Mutex::default(), listed, plans, file }
    }

    /// The rules of all files, which the API lists and does not change.
    pub fn file_rules(&self) -> Arc<Vec<FileRule>> {
        self.listed.load_full()
    }

    /// The plans of the rules file, which the API lists and does not change.
    pub fn file_plans(&self) -> Arc<Vec<PlanDocument>> {
        self.plans.load_full()
    }

    /// The rules file, whose clients and overrides the API lists and does not change.
    pub fn rules_file(&self) -> Option<Arc<RuleFile>> {
        self.file.load_full()
    }

    /// The IPv6 prefix length and the Unicode form of client keys, if the file sets them for this namespace.
    pub fn identities_of_file(&self, namespace: &str) -> Option<(u8, Normalize)> {
        let inputs = self.inputs.lock();
        let file = inputs.file.as_ref().filter(|file| file.namespace == namespace);
        file.map(|file| (file.ipv6_prefix, file.normalize))
    }

    /// Stores generation numbers in a directory, and continues those that are there.
    pub fn keep_numbers(&self, directory: &Path) {
        self.inputs.lock().numbers = GenerationNumbers::open(directory);
    }

    /// Sets the rules of the file at the start. They become active together with those of the database, or by
    /// [`settle`](RulePublisher::settle).
    pub fn hold(&self, written: Written) {
        let Written { rules, file, tree } = written;
        let mut inputs = self.inputs.lock();
        inputs.listed = listed::of_file(&rules, &file, &tree);
        inputs.plans = Arc::new(listed::plans_of_file(&file, &tree));
        (inputs.file, inputs.held) = (Some(Arc::new(file)), Some(rules));
        self.list(&inputs);
    }

    /// Sets the domains of Envoy's files at the start, likewise. Fails if the rules file has one of them as namespace.
    pub fn hold_domains(&self, domains: EnvoyDomains) -> Result<(), RuleSourceError> {
        let mut inputs = self.inputs.lock();
        inputs.domains = domains;
        self.list(&inputs);
        inputs.conflict()
    }

    /// Ends the start: activates the held rules, unless the database has done so.
    pub fn settle(&self) {
        let mut inputs = self.inputs.lock();
        let held = inputs.held.take();
        if self.engine.rules().number > 0 {
            return;
        }
        if inputs.domains.domains.is_empty() || self.assemble(&mut inputs).is_none() {
            self.publish(&mut inputs, held.unwrap_or_else(RuleSet::empty), 0);
        }
    }

    /// Applies a new version of the rules file. Returns the new generation.
    pub fn file(&self, written: Written) -> Result<u64, RuleSourceError> {
        let Written { rules, file, tree } = written;
        let listed = listed::of_file(&rules, &file, &tree);
        let plans = Arc::new(listed::plans_of_file(&file, &tree));
        let mut inputs = self.inputs.lock();
        if let Some(problem) = inputs.file.as_ref().and_then(|before| shrinkage(before, &file)) {
            return Err(RuleSourceError::Shrunk(problem));
        }
        let before = inputs.file.replace(Arc::new(file));
        if let Err(conflict) = inputs.conflict() {
            inputs.file = before;
            return Err(conflict);
        }
        (inputs.listed, inputs.plans) = (listed, plans);
        self.list(&inputs);
        if inputs.database.is_none() && inputs.domains.domains.is_empty() {
            return Ok(self.publish(&mut inputs, rules, 0));
        }
        Ok(self.assemble(&mut inputs).unwrap_or_else(|| self.engine.rules().number))
    }

    /// Applies a new version of Envoy's files. Returns the new generation.
    pub fn domains(&self, domains: EnvoyDomains) -> Result<u64, RuleSourceError> {
        let mut inputs = self.inputs.lock();
        if let Some(problem) = domains.shrinkage(&inputs.domains) {
            return Err(RuleSourceError::Shrunk(problem));
        }
        let before = std::mem::replace(&mut inputs.domains, domains);
        if let Err(conflict) = inputs.conflict() {
            inputs.domains = before;
            return Err(conflict);
        }
        self.list(&inputs);
        Ok(self.assemble(&mut inputs).unwrap_or_else(|| self.engine.rules().number))
    }

    /// Applies a new version of the database; false if the rules cannot be combined.
    pub fn database(&self, loaded: Arc<LoadedState>) -> bool {
        let mut inputs = self.inputs.lock();
        inputs.database = Some(loaded);
        self.assemble(&mut inputs).is_some()
    }

    /// Rules of the database that a file hides, by namespace and id.
    pub fn hidden(&self) -> Vec<(String, String)> {
        self.inputs.lock().hidden.iter().take(HIDDEN_LISTED_MAX).cloned().collect()
    }

    fn assemble(&self, inputs: &mut RuleInputs) -> Option<u64> {
        let file = inputs.file.as_deref();
        let (mut hidden, mut known) = (BTreeSet::new(), false);
        let mut together: Vec<Assembled<'_>> = Vec::new();
        let mut of_domains: BTreeMap<&str, &LoadedNamespace> = BTreeMap::new();
        for (name, namespace) in inputs.database.iter().flat_map(|loaded| &loaded.namespaces) {
            let directories = std::slice::from_ref(&namespace.directory);
            if inputs.domains.domains.iter().any(|domain| domain.name == *name) {
                let named = namespace.rules.iter().map(|rule| (name.clone(), rule.name.clone().unwrap_or_default()));
                hidden.extend(named);
                of_domains.insert(name, namespace);
                continue;
            }
            let (settings, rules) = match file.filter(|file| file.namespace == *name) {
                Some(file) => {
                    known = true;
                    let mut together = switched(file, &namespace.settings);
                    let mut rules = beside(file, &namespace.rules, &mut hidden);
                    plans::join(file, &namespace.settings, &mut together, &mut rules);
                    (together, rules)
                }
                None => (Cow::Borrowed(&*namespace.settings), Cow::Borrowed(namespace.rules.as_slice())),
            };
            together.push(Assembled { file: settings, rules, directories });
        }
        if let Some(file) = file.filter(|_| !known) {
            together.push(Assembled { file: Cow::Borrowed(file), rules: Cow::Borrowed(&[]), directories: &[] });
        }
        for (namespace, rule) in hidden.difference(&inputs.hidden) {
            warn!(
                namespace,
                rule, "a file has a rule of this name or this domain: the rule of the database is left out"
            );
        }
        let assembled: Vec<NamespaceRules<'_>> = together.iter().map(Assembled::part).collect();
        let no_modes = BTreeMap::new();
        let domains = inputs.domains.domains.iter().map(|domain| match of_domains.get(domain.name.as_str()) {
            Some(LoadedNamespace { settings, directory, .. }) => {
                DomainRules { domain, directories: std::slice::from_ref(directory), modes: &settings.modes }
            }
            None => DomainRules { domain, directories: &[], modes: &no_modes },
        });
        let domains: Vec<DomainRules<'_>> = domains.collect();
        let generation = inputs.database.as_ref().map_or(0, |loaded| loaded.state.generation);
        let at_least = u64::try_from(generation).unwrap_or(0);
        // Unchanged rules are shared with the active generation.
        let before = self.engine.rules();
        match before.rules.compile_successor(&assembled, &domains, &self.options) {
            Ok(rules) => {
                inputs.hidden = hidden;
                let count = rules.rules().len();
                let generation = self.publish(inputs, rules, at_least);
                info!(generation, rules = count, "rules in force");
                Some(generation)
            }
            Err(problems) => {
                // Each source was valid by itself, so this is a bug; the active rules stay.
                let (problems, more) = problems.into_parts();
                let first = problems.first().map_or("", |problem| problem.message.as_str());
                error!(
                    problem = first,
                    more = problems.len() + more,
                    "cannot combine the rules of all sources; the active rules stay"
                );
                None
            }
        }
    }

    /// Updates the list of file rules.
    fn list(&self, inputs: &RuleInputs) {
        self.listed.store(Arc::new(inputs.listed.iter().chain(&inputs.domains.listed).cloned().collect()));
        self.plans.store(inputs.plans.clone());
        self.file.store(inputs.file.clone());
    }

    fn publish(&self, inputs: &mut RuleInputs, rules: RuleSet, at_least: u64) -> u64 {
        let number = inputs.numbers.next(self.engine.rules().number, at_least);
        let generation = self.engine.swap_rules_as(rules, number);
        self.metrics.adopt(&self.engine.rules());
        if let Some(traffic) = &self.traffic {
            traffic.adopt(&self.engine.rules());
        }
        generation
    }
}

impl RuleInputs {
    /// A name is either the namespace of the rules file or a domain.
    fn conflict(&self) -> Result<(), RuleSourceError> {
        let Some(file) = &self.file else { return Ok(()) };
        match self.domains.domains.iter().any(|domain| domain.name == file.namespace) {
            true => Err(RuleSourceError::Conflict(format!(
                "`{}` is the namespace of the rules file and a domain of Envoy's files, and can only be one of them: \
                 rename one, or load the files without the rules",
                file.namespace
            ))),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for RulePublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RulePublisher")
    }
}

/// The rules of one namespace, from a file, from the database, or from both.
struct Assembled<'a> {
    file: Cow<'a, RuleFile>,
    rules: Cow<'a, [Arc<RuleSpec>]>,
    directories: &'a [Directory],
}

impl Assembled<'_> {
    fn part(&self) -> NamespaceRules<'_> {
        NamespaceRules { file: &self.file, rules: &self.rules, directories: self.directories }
    }
}

/// The rules of the database that the file does not hide by name.
fn beside<'a>(
    file: &RuleFile,
    rules: &'a [Arc<RuleSpec>],
    hidden: &mut BTreeSet<(String, String)>,
) -> Cow<'a, [Arc<RuleSpec>]> {
    // An unnamed rule of the file has the name it is listed under, and the one that an import would have stored. Names
    // are compared without case.
    let names = stable_names(file).into_iter().chain(generated_names(file));
    let names: HashSet<String> = names.map(|name| name.to_ascii_lowercase()).collect();
    let mut folded = String::new();
    let mut is_taken = |rule: &RuleSpec| {
        folded.clear();
        folded.push_str(rule.name.as_deref().unwrap_or_default());
        folded.make_ascii_lowercase();
        // A plan of the file hides the whole plan of that name.
        names.contains(&folded) || rule.plan.as_ref().is_some_and(|origin| has_plan(file, &origin.plan))
    };
    let taken = rules.iter().enumerate().filter(|(_, rule)| is_taken(rule));
    let taken: BTreeSet<usize> = taken.map(|(place, _)| place).collect();
    if taken.is_empty() {
        return Cow::Borrowed(rules);
    }
    let (mut left, mut number) = (rules.to_vec(), 0);
    left.retain(|rule| {
        number += 1;
        let keep = !taken.contains(&(number - 1));
        if !keep {
            hidden.insert((file.namespace.clone(), rule.name.clone().unwrap_or_default()));
        }
        keep
    });
    Cow::Owned(left)
}
