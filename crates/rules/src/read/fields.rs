//! The fields of a map: present, missing and unknown ones.

use super::field::{FieldPath, FieldValue};
use crate::nearest::{nearest, suggest};
use crate::position::SourcePosition;
use crate::problem::{Problem, Problems, quote};
use crate::yaml::YamlKind;

/// The fields of a map, read one by one.
#[derive(Debug)]
pub struct MapFields<'a> {
    /// The map.
    pub value: FieldValue<'a>,
    known: bool,
    allowed: &'static [&'static str],
}

impl<'a> FieldValue<'a> {
    /// The fields of a map; none after a problem.
    pub fn fields(self, allowed: &'static [&'static str], example: &str, problems: &mut Problems) -> MapFields<'a> {
        let YamlKind::Map(entries) = &self.node.kind else {
            problems.push(self.mismatch("a map", format!("write for example `{example}`")));
            return MapFields { value: self, known: false, allowed };
        };
        for (key, _) in entries.iter().filter(|(key, _)| !allowed.contains(&key.text.as_str())) {
            match problems.is_full() {
                true => problems.skip(1),
                false => problems.push(unknown_field(&self, &key.text, key.position(), allowed)),
            }
        }
        MapFields { value: self, known: true, allowed }
    }
}

impl MapFields<'_> {
    /// Whether the value is a map; otherwise missing fields are not reported.
    pub fn known(&self) -> bool {
        self.known
    }

    /// The field of this name.
    pub fn get(&self, name: &'static str) -> Option<FieldValue<'_>> {
        self.value.node.get(name).map(|node| FieldValue { node, path: FieldPath::Field(&self.value.path, name) })
    }

    /// The field; a problem if it is missing.
    pub fn required(&self, name: &'static str, help: &str, problems: &mut Problems) -> Option<FieldValue<'_>> {
        let found = self.get(name);
        if found.is_none() && self.known && !self.is_misspelt(name) {
            let message = format!("{} has no `{name}`", self.value.path.title());
            problems.push(self.value.problem("missing-field", message).help(help));
        }
        found
    }

    /// Whether an unknown field was already reported as a typo of this one.
    fn is_misspelt(&self, name: &str) -> bool {
        let YamlKind::Map(entries) = &self.value.node.kind else { return false };
        let unknown = entries.iter().map(|(key, _)| key.text.as_str()).filter(|key| !self.allowed.contains(key));
        unknown.take(16).any(|key| nearest(key, self.allowed.iter().copied()) == Some(name))
    }
}

fn unknown_field(owner: &FieldValue<'_>, name: &str, at: SourcePosition, allowed: &[&str]) -> Problem {
    let message = format!("unknown field {} in {}", quote(name), owner.path.title());
    Problem::error("unknown-field", at, FieldPath::Field(&owner.path, name), message).help(suggest(name, allowed))
}
