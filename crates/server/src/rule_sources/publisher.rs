//! What the file says and what the database says, put together and put into force.
//!
//! The file comes first: its rules are what somebody deployed and reviewed, and nobody changes them through the API. A
//! rule of the database that has the name of one in the file is left out, and said to be; settings of a namespace that
//! both describe are the file's; of a client that both know, what the file says counts.
//!
//! The domains of Envoy's files are namespaces of their own. One that a rules file describes too is refused; rules of
//! the database in such a namespace are left out.
//!
//! Overrides and switches live in the database and name a rule by namespace and name, so they apply to rules of any
//! source.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tollgate_admin::FileRule;
use tollgate_control::feed::{Loaded, LoadedNamespace};
use tollgate_engine::Engine;
use tollgate_rules::ruleset::{CompileOptions, DomainPart, Part, RuleSet, generated_names, stable_names};
use tollgate_rules::{Directory, Normalize, RuleFile, RuleSpec, shrinkage};
use tollgate_service::store::ConfiguredStore;
use tollgate_telemetry::DecisionMetrics;
use tracing::{error, info, warn};

use super::directory::EnvoyDomains;
use super::error::RuleSourceError;
use super::file::Written;
use super::generation_numbers::GenerationNumbers;
use super::listed;

/// Rules that are left out because of a file, and told about one by one.
const HIDDEN_LISTED_MAX: usize = 100;

/// Puts rules into force, from wherever they come.
pub struct RulePublisher {
    engine: Arc<Engine<ConfiguredStore>>,
    metrics: Arc<DecisionMetrics>,
    options: CompileOptions,
    inputs: Mutex<RuleInputs>,
    listed: ArcSwap<Vec<FileRule>>,
}

/// What rules are put together from.
#[derive(Default)]
struct RuleInputs {
    file: Option<Arc<RuleFile>>,
    /// The file's rules as the admin API lists them.
    listed: Vec<FileRule>,
    domains: EnvoyDomains,
    database: Option<Arc<Loaded>>,
    /// The file's rules, until the start is over.
    held: Option<RuleSet>,
    /// Rules of the database that the file hides, by namespace and id.
    hidden: BTreeSet<(String, String)>,
    numbers: GenerationNumbers,
}

impl RulePublisher {
    /// For an engine whose rules come from `file`, if from anywhere.
    pub fn new(
        engine: Arc<Engine<ConfiguredStore>>,
        metrics: Arc<DecisionMetrics>,
        options: CompileOptions,
    ) -> RulePublisher {
        RulePublisher { engine, metrics, options, inputs: Mutex::default(), listed: ArcSwap::default() }
    }

    /// The rules of all files, which the API lists and does not change.
    pub fn file_rules(&self) -> Arc<Vec<FileRule>> {
        self.listed.load_full()
    }

    /// The bits of an IPv6 address that count, and the Unicode form of keys, if the file says so of this namespace.
    pub fn identities_of_file(&self, namespace: &str) -> Option<(u8, Normalize)> {
        let inputs = self.inputs.lock();
        let file = inputs.file.as_ref().filter(|file| file.namespace == namespace);
        file.map(|file| (file.ipv6_prefix, file.normalize))
    }

    /// Keeps the numbers of generations in a directory, and goes on from those that are kept there.
    pub fn keep_numbers(&self, directory: &Path) {
        self.inputs.lock().numbers = GenerationNumbers::open(directory);
    }

    /// What the file says at the start, to be put into force together with what the database says, or by
    /// [`settle`](RulePublisher::settle).
    pub fn hold(&self, written: Written) {
        let Written { rules, file, tree } = written;
        let mut inputs = self.inputs.lock();
        inputs.listed = listed::of_file(&rules, &file, &tree);
        (inputs.file, inputs.held) = (Some(Arc::new(file)), Some(rules));
        self.list(&inputs);
    }

    /// What Envoy's files say at the start, in the same way. Fails where the rules file is about one of their domains.
    pub fn hold_domains(&self, domains: EnvoyDomains) -> Result<(), RuleSourceError> {
        let mut inputs = self.inputs.lock();
        inputs.domains = domains;
        self.list(&inputs);
        inputs.conflict()
    }

    /// The start is over: what is held is put into force, unless a database did so.
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

    /// The file says something new. Answers the generation that this makes.
    pub fn file(&self, written: Written) -> Result<u64, RuleSourceError> {
        let Written { rules, file, tree } = written;
        let listed = listed::of_file(&rules, &file, &tree);
        let mut inputs = self.inputs.lock();
        if let Some(problem) = inputs.file.as_ref().and_then(|before| shrinkage(before, &file)) {
            return Err(RuleSourceError::Shrunk(problem));
        }
        let before = inputs.file.replace(Arc::new(file));
        if let Err(conflict) = inputs.conflict() {
            inputs.file = before;
            return Err(conflict);
        }
        inputs.listed = listed;
        self.list(&inputs);
        if inputs.database.is_none() && inputs.domains.domains.is_empty() {
            return Ok(self.publish(&mut inputs, rules, 0));
        }
        Ok(self.assemble(&mut inputs).unwrap_or_else(|| self.engine.rules().number))
    }

    /// Envoy's files say something new. Answers the generation that this makes.
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

    /// The database says something new; false if it cannot be put into force.
    pub fn database(&self, loaded: Arc<Loaded>) -> bool {
        let mut inputs = self.inputs.lock();
        inputs.database = Some(loaded);
        self.assemble(&mut inputs).is_some()
    }

    /// Rules of the database that are left out because of a file, by namespace and id.
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
                    (switched(file, &namespace.settings), beside(file, &namespace.rules, &mut hidden))
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
        let assembled: Vec<Part<'_>> = together.iter().map(Assembled::part).collect();
        let no_modes = BTreeMap::new();
        let domains = inputs.domains.domains.iter().map(|domain| match of_domains.get(domain.name.as_str()) {
            Some(LoadedNamespace { settings, directory, .. }) => {
                DomainPart { domain, directories: std::slice::from_ref(directory), modes: &settings.modes }
            }
            None => DomainPart { domain, directories: &[], modes: &no_modes },
        });
        let domains: Vec<DomainPart<'_>> = domains.collect();
        let generation = inputs.database.as_ref().map_or(0, |loaded| loaded.state.generation);
        let at_least = u64::try_from(generation).unwrap_or(0);
        // What did not change is shared with what is in force.
        let before = self.engine.rules();
        match before.rules.succeed(&assembled, &domains, &self.options) {
            Ok(rules) => {
                inputs.hidden = hidden;
                let count = rules.rules().len();
                let generation = self.publish(inputs, rules, at_least);
                info!(generation, rules = count, "rules in force");
                Some(generation)
            }
            Err(problems) => {
                // Each part was valid by itself, so this is our mistake; what is in force stays.
                let (problems, more) = problems.into_parts();
                let first = problems.first().map_or("", |problem| problem.message.as_str());
                error!(problem = first, more = problems.len() + more, "rules do not go together; those in force stay");
                None
            }
        }
    }

    /// Lists the rules of files as they are now.
    fn list(&self, inputs: &RuleInputs) {
        self.listed.store(Arc::new(inputs.listed.iter().chain(&inputs.domains.listed).cloned().collect()));
    }

    fn publish(&self, inputs: &mut RuleInputs, rules: RuleSet, at_least: u64) -> u64 {
        let number = inputs.numbers.next(self.engine.rules().number, at_least);
        let generation = self.engine.swap_rules_as(rules, number);
        self.metrics.adopt(&self.engine.rules());
        generation
    }
}

impl RuleInputs {
    /// A namespace has rules, or it is a domain.
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
    fn part(&self) -> Part<'_> {
        Part { file: &self.file, rules: &self.rules, directories: self.directories }
    }
}

/// The file with the switches that the database has for rules of its namespace.
fn switched<'a>(file: &'a RuleFile, database: &RuleFile) -> Cow<'a, RuleFile> {
    match database.modes.is_empty() {
        true => Cow::Borrowed(file),
        false => Cow::Owned(RuleFile { modes: database.modes.clone(), ..file.clone() }),
    }
}

/// The rules of the database that stand beside those of a file: all but those whose names the file has.
fn beside<'a>(
    file: &RuleFile,
    rules: &'a [Arc<RuleSpec>],
    hidden: &mut BTreeSet<(String, String)>,
) -> Cow<'a, [Arc<RuleSpec>]> {
    // A rule that has no name in the file has the one that it is shown by, and the one under which an import would have
    // stored it. Names that differ only in case are the same.
    let names = stable_names(file).into_iter().chain(generated_names(file));
    let names: HashSet<String> = names.map(|name| name.to_ascii_lowercase()).collect();
    let mut folded = String::new();
    let mut is_taken = |rule: &RuleSpec| {
        folded.clear();
        folded.push_str(rule.name.as_deref().unwrap_or_default());
        folded.make_ascii_lowercase();
        names.contains(&folded)
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
