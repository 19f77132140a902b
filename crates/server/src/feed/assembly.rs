//! What the file says and what the database says, put together and put into force.
//!
//! The file comes first: its rules are what somebody deployed and reviewed, and nobody changes them through the API. A
//! rule of the database that has the name of one in the file is left out, and said to be; settings of a namespace that
//! both describe are the file's; of a client that both know, what the file says counts.
//!
//! The domains of Envoy's files are namespaces of their own. One that a rules file describes too is refused; one that
//! exists in the database as well hides it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tollgate_control::feed::Loaded;
use tollgate_engine::Engine;
use tollgate_rules::ruleset::{CompileOptions, Part, RuleSet};
use tollgate_rules::yaml::Node;
use tollgate_rules::{Directory, KeyBy, OnFail, RuleFile, document};
use tracing::{error, info, warn};

use super::numbers::Numbers;
use super::{Domains, FeedError, Written};
use crate::admin::{FileRule, to_object};
use crate::backend::Backend;
use crate::telemetry::Metrics;

/// Puts rules into force, from wherever they come.
pub struct Assembly {
    engine: Arc<Engine<Backend>>,
    metrics: Arc<Metrics>,
    options: CompileOptions,
    parts: Mutex<Parts>,
    shown: ArcSwap<Vec<FileRule>>,
}

/// What rules are put together from.
#[derive(Default)]
struct Parts {
    file: Option<Arc<RuleFile>>,
    domains: Domains,
    database: Option<Arc<Loaded>>,
    /// The file's rules, until the start is over.
    held: Option<RuleSet>,
    /// Rules of the database that the file hides, by namespace and id.
    hidden: BTreeSet<(String, String)>,
    numbers: Numbers,
}

impl Assembly {
    /// For an engine whose rules come from `file`, if from anywhere.
    pub fn new(engine: Arc<Engine<Backend>>, metrics: Arc<Metrics>, options: CompileOptions) -> Assembly {
        Assembly { engine, metrics, options, parts: Mutex::default(), shown: ArcSwap::default() }
    }

    /// The rules of the file, which are not for the API to change.
    pub fn file_rules(&self) -> Arc<Vec<FileRule>> {
        self.shown.load_full()
    }

    /// The bits of an IPv6 address that count, if the file says so of this namespace.
    pub fn prefix_of_file(&self, namespace: &str) -> Option<u8> {
        let parts = self.parts.lock();
        parts.file.as_ref().filter(|file| file.namespace == namespace).map(|file| file.ipv6_prefix)
    }

    /// Keeps the numbers of generations in a directory, and goes on from those that are kept there.
    pub fn keep_numbers(&self, directory: &Path) {
        self.parts.lock().numbers = Numbers::kept_in(directory);
    }

    /// What the file says at the start, to be put into force together with what the database says, or by
    /// [`settle`](Assembly::settle).
    pub fn hold(&self, written: Written) {
        let Written { rules, file, tree } = written;
        self.shown.store(Arc::new(shown(&rules, &file, &tree)));
        let mut parts = self.parts.lock();
        (parts.file, parts.held) = (Some(Arc::new(file)), Some(rules));
    }

    /// What Envoy's files say at the start, in the same way. Fails where the rules file is about one of their domains.
    pub fn hold_domains(&self, domains: Domains) -> Result<(), FeedError> {
        let mut parts = self.parts.lock();
        parts.domains = domains;
        parts.conflict()
    }

    /// The start is over: what is held is put into force, unless a database did so.
    pub fn settle(&self) {
        let mut parts = self.parts.lock();
        let held = parts.held.take();
        if self.engine.rules().number > 0 {
            return;
        }
        if parts.domains.domains.is_empty() || self.assemble(&mut parts).is_none() {
            self.put(&mut parts, held.unwrap_or_else(RuleSet::empty), 0);
        }
    }

    /// The file says something new. Answers the generation that this makes.
    pub fn file(&self, written: Written) -> Result<u64, FeedError> {
        let Written { rules, file, tree } = written;
        let shown = shown(&rules, &file, &tree);
        let mut parts = self.parts.lock();
        let before = parts.file.replace(Arc::new(file));
        if let Err(conflict) = parts.conflict() {
            parts.file = before;
            return Err(conflict);
        }
        self.shown.store(Arc::new(shown));
        if parts.database.is_none() && parts.domains.domains.is_empty() {
            return Ok(self.put(&mut parts, rules, 0));
        }
        Ok(self.assemble(&mut parts).unwrap_or_else(|| self.engine.rules().number))
    }

    /// Envoy's files say something new. Answers the generation that this makes.
    pub fn domains(&self, domains: Domains) -> Result<u64, FeedError> {
        let mut parts = self.parts.lock();
        let before = std::mem::replace(&mut parts.domains, domains);
        if let Err(conflict) = parts.conflict() {
            parts.domains = before;
            return Err(conflict);
        }
        Ok(self.assemble(&mut parts).unwrap_or_else(|| self.engine.rules().number))
    }

    /// The database says something new; false if it cannot be put into force.
    pub fn database(&self, loaded: Arc<Loaded>) -> bool {
        let mut parts = self.parts.lock();
        parts.database = Some(loaded);
        self.assemble(&mut parts).is_some()
    }

    fn assemble(&self, parts: &mut Parts) -> Option<u64> {
        let file = parts.file.as_deref();
        let (mut hidden, mut known) = (BTreeSet::new(), false);
        let mut together: Vec<(RuleFile, Vec<Directory>)> = Vec::new();
        for (name, namespace) in parts.database.iter().flat_map(|loaded| &loaded.namespaces) {
            let mut rules = RuleFile::clone(&namespace.file);
            if parts.domains.domains.iter().any(|domain| domain.name == *name) {
                hidden.extend(rules.rules.iter().map(|rule| (name.clone(), rule.name.clone().unwrap_or_default())));
                continue;
            }
            if let Some(file) = file.filter(|file| file.namespace == *name) {
                rules = join(file, rules, &mut hidden);
                known = true;
            }
            together.push((rules, vec![namespace.directory.clone()]));
        }
        if let Some(file) = file.filter(|_| !known) {
            together.push((file.clone(), Vec::new()));
        }
        for (namespace, rule) in hidden.difference(&parts.hidden) {
            warn!(
                namespace,
                rule, "a file has a rule of this name or this domain: the rule of the database is left out"
            );
        }
        let assembled: Vec<Part<'_>> = together.iter().map(|(file, directories)| Part { file, directories }).collect();
        let generation = parts.database.as_ref().map_or(0, |loaded| loaded.state.generation);
        let at_least = u64::try_from(generation).unwrap_or(0);
        match RuleSet::assemble_with(&assembled, &parts.domains.domains, &self.options) {
            Ok(rules) => {
                parts.hidden = hidden;
                let count = rules.rules().len();
                let generation = self.put(parts, rules, at_least);
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

    fn put(&self, parts: &mut Parts, rules: RuleSet, at_least: u64) -> u64 {
        let number = parts.numbers.next(self.engine.rules().number, at_least);
        let generation = self.engine.swap_rules_as(rules, number);
        self.metrics.adopt(&self.engine.rules());
        generation
    }
}

impl Parts {
    /// A namespace has rules, or it is a domain.
    fn conflict(&self) -> Result<(), FeedError> {
        let Some(file) = &self.file else { return Ok(()) };
        match self.domains.domains.iter().any(|domain| domain.name == file.namespace) {
            true => Err(FeedError::Conflict(format!(
                "`{}` is the namespace of the rules file and a domain of Envoy's files, and can only be one of them: \
                 rename one, or load the files without the rules",
                file.namespace
            ))),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Assembly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Assembly")
    }
}

/// The rules of both, the file's first, under the file's settings.
fn join(file: &RuleFile, database: RuleFile, hidden: &mut BTreeSet<(String, String)>) -> RuleFile {
    let names: BTreeSet<&str> = file.rules.iter().filter_map(|rule| rule.name.as_deref()).collect();
    let mut joined = file.clone();
    for mut rule in database.rules {
        match &rule.name {
            Some(name) if names.contains(name.as_str()) => {
                hidden.insert((file.namespace.clone(), name.clone()));
            }
            _ => {
                // What the file says for all its rules is not meant for others.
                rule.on_fail = rule.on_fail.or(Some(OnFail::Local));
                rule.key_by = rule.key_by.or_else(|| Some(KeyBy { parts: vec![vec!["client_key".to_owned()]] }));
                joined.rules.push(rule);
            }
        }
    }
    joined
}

/// What a rule says, with what the file says for all of them, and without its name.
fn document(node: &Node, file: &RuleFile) -> Map<String, Value> {
    let mut document = to_object(&document::explicit(node, file));
    document.remove("name");
    document
}

/// Each rule of the file under the name that it has in decisions.
fn shown(rules: &RuleSet, file: &RuleFile, tree: &Node) -> Vec<FileRule> {
    let named = rules.rules().iter().zip(document::rules_of(tree));
    let shown = |(rule, node): (&tollgate_rules::ruleset::Rule, &Node)| FileRule {
        namespace: file.namespace.clone(),
        rule_id: rule.name.clone(),
        document: document(node, file),
    };
    named.map(shown).collect()
}
