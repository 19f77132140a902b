//! Limits of other limiters as rules of ours: what they mean as far as rules can say it, and a note for the rest.
//!
//! A translation is a beginning for people: it reads well, loads as it stands, and every line that means something else
//! here, or nothing, is told.

mod envoy;
mod limitador;

use std::collections::{BTreeMap, HashMap};

use crate::document::{self, Settings};
use crate::report::Report;
use crate::spec::Place;
use crate::yaml::Node;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file of one domain of envoyproxy/ratelimit.
    EnvoyRatelimit,
    /// A limits file of limitador.
    Limitador,
}

/// What became of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Translation {
    /// Rules files, one for each namespace, in the order of their names.
    pub files: Vec<Translated>,
    /// What could not be said, in the order of the lines.
    pub notes: Vec<Note>,
}

/// One rules file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    /// Its namespace.
    pub namespace: String,
    /// How many rules it has.
    pub rules: usize,
    /// The file.
    pub text: String,
}

/// Something that rules cannot say, or say in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line that says it.
    pub line: u32,
    /// What becomes of it.
    pub message: String,
}

/// Translates a file; fails only if it is not what it should be.
pub fn translate(origin: Origin, file_name: &str, text: &str) -> Result<Translation, Report> {
    let mut draft = Draft::default();
    match origin {
        Origin::EnvoyRatelimit => envoy::translate(&crate::envoy::read(file_name, text)?, &mut draft),
        Origin::Limitador => limitador::translate(file_name, text, &mut draft)?,
    }
    Ok(draft.finish())
}

/// Rules so far, by namespace.
#[derive(Default)]
struct Draft {
    namespaces: BTreeMap<String, Rules>,
    notes: Vec<Note>,
}

/// The rules of a namespace, and how often each name was wanted.
#[derive(Default)]
struct Rules {
    nodes: Vec<Node>,
    names: HashMap<String, usize>,
}

impl Rules {
    /// The name, or if it is taken, the name with a number.
    fn unique(&mut self, name: &str) -> String {
        loop {
            let times = self.names.entry(name.to_owned()).or_default();
            *times += 1;
            let unique = if *times == 1 { name.to_owned() } else { format!("{name} {times}") };
            if unique == name || self.names.insert(unique.clone(), 1).is_none() {
                return unique;
            }
        }
    }
}

impl Draft {
    fn note(&mut self, at: Place, message: impl Into<String>) {
        self.notes.push(Note { line: at.line, message: message.into() });
    }

    /// Adds a rule, or a note if rules like this cannot be.
    fn add(&mut self, namespace: &str, at: Place, name: &str, fields: Vec<(&str, Node)>) {
        let rules = self.namespaces.entry(namespace.to_owned()).or_default();
        let rule = Node::map([("name", Node::text(rules.unique(name)))].into_iter().chain(fields));
        match document::rule(&rule, &Settings::default()) {
            Ok(_) => rules.nodes.push(rule),
            Err(problems) => {
                let why = problems.first().map_or("", |problem| problem.message.as_str());
                self.note(at, format!("left out: {why}"));
            }
        }
    }

    fn finish(mut self) -> Translation {
        self.notes.sort_by_key(|note| note.line);
        let file = |(namespace, Rules { nodes, .. }): (String, Rules)| {
            let count = nodes.len();
            let root = Node::map([("namespace", Node::text(namespace.clone())), ("rules", Node::list(nodes))]);
            Translated { namespace, rules: count, text: document::print(&root) }
        };
        let files = self.namespaces.into_iter().filter(|(_, rules)| !rules.nodes.is_empty()).map(file).collect();
        Translation { files, notes: self.notes }
    }
}

/// Whether a name can be an attribute of ours without meaning something else: `a|b` is two of them.
fn is_attribute(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// A limit of `requests` per window, counted as both of them count.
fn fixed_window(requests: u64, window: &str) -> Node {
    Node::map([
        ("requests", Node::plain(requests)),
        ("window", Node::text(window)),
        ("algorithm", Node::text("fixed_window")),
    ])
}

/// What makes two requests share a bucket.
fn key_by(names: &[&str]) -> Node {
    match names {
        [] => Node::text("global"),
        [one] => Node::text(*one),
        many => Node::list(many.iter().map(|name| Node::text(*name))),
    }
}

#[cfg(test)]
mod tests;
