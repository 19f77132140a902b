//! Translates limits of other rate limiters into rules, with a note for everything that rules cannot express.
//!
//! A translation is a starting point for people: it is readable and loads unchanged, and every line that means
//! something else here, or nothing, has a note.

mod envoy;
mod limitador;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::check::RULE_NAME_MAX;
use crate::document::{self, NamespaceSettings};
use crate::position::SourcePosition;
use crate::report::Report;
use crate::yaml::YamlNode;

/// Format of the file to translate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceFormat {
    /// A domain file of envoyproxy/ratelimit.
    EnvoyRatelimit,
    /// A limits file of limitador.
    Limitador,
}

/// The result of a translation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Translation {
    /// Rules files, one for each namespace, sorted by name.
    pub files: Vec<TranslatedFile>,
    /// Notes, sorted by line.
    pub notes: Vec<TranslationNote>,
}

/// One rules file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslatedFile {
    /// Its namespace.
    pub namespace: String,
    /// Number of rules.
    pub rules: usize,
    /// Content of the file.
    pub text: String,
}

/// Something that rules cannot express, or express differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationNote {
    /// The line in the source.
    pub line: u32,
    /// What the translation does with it.
    pub message: String,
    /// The namespace that misses a limit, if the line was not translated.
    pub lacks: Option<String>,
}

impl Translation {
    /// Number of limits of a namespace that were not translated.
    pub fn left_out(&self, namespace: &str) -> usize {
        self.notes.iter().filter(|note| note.lacks.as_deref() == Some(namespace)).count()
    }
}

/// Translates a file; fails only if the file is invalid.
pub fn translate(origin: SourceFormat, file_name: &str, text: &str) -> Result<Translation, Report> {
    let mut draft = TranslationDraft::default();
    match origin {
        SourceFormat::EnvoyRatelimit => envoy::translate(&crate::envoy::read(file_name, text)?, &mut draft),
        SourceFormat::Limitador => limitador::translate(file_name, text, &mut draft)?,
    }
    Ok(draft.finish())
}

/// Rules so far, by namespace.
#[derive(Default)]
struct TranslationDraft {
    namespaces: BTreeMap<String, RulesDraft>,
    notes: Vec<TranslationNote>,
}

/// The rules of a namespace, and how often each name was requested.
#[derive(Default)]
struct RulesDraft {
    nodes: Vec<YamlNode>,
    names: HashMap<String, usize>,
    /// Some rule denies every request, so the file needs `allow_block_all`.
    blocks: bool,
}

impl RulesDraft {
    /// The name, with a number if it is taken (ignoring case).
    fn unique(&mut self, name: &str) -> String {
        loop {
            let times = self.names.entry(name.to_ascii_lowercase()).or_default();
            *times += 1;
            if *times == 1 {
                return name.to_owned();
            }
            let number = format!("-{times}");
            let kept = name.get(..name.len().min(RULE_NAME_MAX.saturating_sub(number.len()))).unwrap_or(name);
            let unique = format!("{kept}{number}");
            if self.names.insert(unique.to_ascii_lowercase(), 1).is_none() {
                return unique;
            }
        }
    }
}

impl TranslationDraft {
    fn note(&mut self, at: SourcePosition, message: impl Into<String>) {
        self.notes.push(TranslationNote { line: at.line, message: message.into(), lacks: None });
    }

    fn leave_out(&mut self, namespace: &str, at: SourcePosition, why: impl fmt::Display) {
        let lacks = Some(namespace.to_owned());
        self.notes.push(TranslationNote { line: at.line, message: format!("left out: {why}"), lacks });
    }

    /// Adds a rule; if it is invalid, adds a note and returns `false`.
    fn add(&mut self, namespace: &str, at: SourcePosition, name: &str, fields: Vec<(&str, YamlNode)>) -> bool {
        let rules = self.namespaces.entry(namespace.to_owned()).or_default();
        let rule = YamlNode::map([("name", YamlNode::text(rules.unique(name)))].into_iter().chain(fields));
        match document::rule(&rule, &NamespaceSettings { allow_block_all: true, ..NamespaceSettings::default() }) {
            Ok(spec) => {
                rules.blocks |= spec.limit.is_some_and(|limit| limit.blocks());
                rules.nodes.push(rule);
                true
            }
            Err(problems) => {
                self.leave_out(namespace, at, problems.first().map_or("", |problem| problem.message.as_str()));
                false
            }
        }
    }

    fn finish(mut self) -> Translation {
        self.notes.sort_by_key(|note| note.line);
        let file = |(namespace, RulesDraft { nodes, blocks, .. }): (String, RulesDraft)| {
            let count = nodes.len();
            let head = [("namespace", YamlNode::text(namespace.clone()))];
            let zero = blocks.then(|| ("allow_block_all", YamlNode::plain(true)));
            let root = YamlNode::map(head.into_iter().chain(zero).chain([("rules", YamlNode::list(nodes))]));
            TranslatedFile { namespace, rules: count, text: document::print(&root) }
        };
        let files = self.namespaces.into_iter().filter(|(_, rules)| !rules.nodes.is_empty()).map(file).collect();
        Translation { files, notes: self.notes }
    }
}

/// Why an attribute of that name would mean something else here; `None` if it would not.
fn reserved(name: &str) -> Option<String> {
    let meaning = match name {
        "endpoint" => "a method and a path",
        "namespace" => "the namespace itself, which every request has",
        "global" => "one bucket for all",
        _ => return None,
    };
    Some(format!("here, `{name}` means {meaning}: use another name, in the file and in requests"))
}

/// A note about an attribute whose values are not used as sent.
fn peculiar(name: &str) -> Option<&'static str> {
    match name {
        "path" => Some("`path` is taken without its query and in one spelling: `/a//b?c` is `/a/b`"),
        "ip" => Some("`ip` must be an address, may come as `remote_address`, too, and counts IPv6 by network"),
        _ => None,
    }
}

/// Whether a name is one attribute in `key_by`: `a|b` is two.
fn is_attribute(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// A fixed window, the algorithm of both limiters.
fn fixed_window(requests: u64, window: &str) -> YamlNode {
    YamlNode::map([
        ("requests", YamlNode::plain(requests)),
        ("window", YamlNode::text(window)),
        ("algorithm", YamlNode::text("fixed_window")),
    ])
}

/// The value of `key_by`.
fn key_by(names: &[&str]) -> YamlNode {
    match names {
        [] => YamlNode::text("global"),
        [one] => YamlNode::text(*one),
        many => YamlNode::list(many.iter().map(|name| YamlNode::text(*name))),
    }
}

#[cfg(test)]
mod tests;
