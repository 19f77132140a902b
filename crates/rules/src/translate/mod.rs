//! Limits of other limiters as rules of ours: what they mean as far as rules can say it, and a note for the rest.
//!
//! A translation is a beginning for people: it reads well, loads as it stands, and every line that means something else
//! here, or nothing, is told.

mod envoy;
mod limitador;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::check::RULE_NAME_MAX;
use crate::document::{self, NamespaceSettings};
use crate::position::SourcePosition;
use crate::report::Report;
use crate::yaml::YamlNode;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceFormat {
    /// The file of one domain of envoyproxy/ratelimit.
    EnvoyRatelimit,
    /// A limits file of limitador.
    Limitador,
}

/// What became of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Translation {
    /// Rules files, one for each namespace, in the order of their names.
    pub files: Vec<TranslatedFile>,
    /// What could not be said, in the order of the lines.
    pub notes: Vec<TranslationNote>,
}

/// One rules file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslatedFile {
    /// Its namespace.
    pub namespace: String,
    /// How many rules it has.
    pub rules: usize,
    /// The file.
    pub text: String,
}

/// Something that rules cannot say, or say in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationNote {
    /// The line that says it.
    pub line: u32,
    /// What becomes of it.
    pub message: String,
    /// The namespace that lacks a limit because there is no rule for the one that stands there.
    pub lacks: Option<String>,
}

impl Translation {
    /// How many limits of a namespace have no rule.
    pub fn left_out(&self, namespace: &str) -> usize {
        self.notes.iter().filter(|note| note.lacks.as_deref() == Some(namespace)).count()
    }
}

/// Translates a file; fails only if it is not what it should be.
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

/// The rules of a namespace, and how often each name was wanted.
#[derive(Default)]
struct RulesDraft {
    nodes: Vec<YamlNode>,
    names: HashMap<String, usize>,
    /// Some rule lets nothing pass, which a file must say that it means.
    blocks: bool,
}

impl RulesDraft {
    /// The name, or if it is taken in any case of letters, the name with a number.
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

    /// Adds a rule, or a note if rules like this cannot be. False if there is none.
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

/// Why an attribute of that name would mean something else here, if it would.
fn reserved(name: &str) -> Option<String> {
    let meaning = match name {
        "endpoint" => "a method and a path",
        "namespace" => "the namespace itself, which every request has",
        "global" => "one bucket for all",
        _ => return None,
    };
    Some(format!("here, `{name}` means {meaning}: use another name, in the file and for whoever sends it"))
}

/// What to know of an attribute that is not taken as it stands.
fn peculiar(name: &str) -> Option<&'static str> {
    match name {
        "path" => Some("`path` is taken without its query and in one spelling: `/a//b?c` is `/a/b`"),
        "ip" => Some("`ip` must be an address, may come as `remote_address`, too, and counts IPv6 by network"),
        _ => None,
    }
}

/// Whether a name can be an attribute of ours without meaning something else: `a|b` is two of them.
fn is_attribute(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// A limit of `requests` per window, counted as both of them count.
fn fixed_window(requests: u64, window: &str) -> YamlNode {
    YamlNode::map([
        ("requests", YamlNode::plain(requests)),
        ("window", YamlNode::text(window)),
        ("algorithm", YamlNode::text("fixed_window")),
    ])
}

/// What makes two requests share a bucket.
fn key_by(names: &[&str]) -> YamlNode {
    match names {
        [] => YamlNode::text("global"),
        [one] => YamlNode::text(*one),
        many => YamlNode::list(many.iter().map(|name| YamlNode::text(*name))),
    }
}

#[cfg(test)]
mod tests;
