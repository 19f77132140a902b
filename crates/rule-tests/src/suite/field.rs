//! Strict parsing of the values of a table: every mistake becomes a problem with a location, and parsing continues.

use std::ops::RangeInclusive;

use tollgate_core::{Span, Time};
use tollgate_rules::position::SourcePosition;
use tollgate_rules::problem::{ParseError, Problems};
use tollgate_rules::yaml::{YamlKey, YamlKind, YamlNode, is_blank};
use tollgate_rules::{Problem, datetime, duration, nearest};

/// A value and its path, for error messages.
#[derive(Clone, Debug)]
pub struct SuiteField<'a> {
    pub node: &'a YamlNode,
    pub path: String,
}

impl<'a> SuiteField<'a> {
    pub fn problem(&self, code: &'static str, message: impl Into<String>) -> Problem {
        Problem::error(code, self.node.position(), &self.path, message)
    }

    fn mismatch(&self, wanted: &str) -> Problem {
        let found = match &self.node.kind {
            YamlKind::Scalar { text, quoted: false } if is_blank(text) => "nothing".to_owned(),
            YamlKind::Scalar { text, .. } => format!("`{}`", text.chars().take(60).collect::<String>()),
            _ => self.node.describe().to_owned(),
        };
        self.problem("wrong-type", format!("{} should be {wanted}, found {found}", self.path))
    }

    fn fault(&self, code: &'static str, fault: ParseError) -> Problem {
        self.problem(code, format!("{}: {}", self.path, fault.message)).help(fault.help)
    }

    /// True for an empty value, such as `~`.
    pub fn is_blank(&self) -> bool {
        matches!(&self.node.kind, YamlKind::Scalar { text, quoted: false } if is_blank(text))
    }

    /// The entries of a map; none after a problem.
    pub fn entries(&self, problems: &mut Problems) -> Vec<(&'a YamlKey, SuiteField<'a>)> {
        let YamlKind::Map(entries) = &self.node.kind else {
            problems.push(self.mismatch("a map"));
            return Vec::new();
        };
        let below = |key: &YamlKey| match self.path.is_empty() {
            true => key.text.clone(),
            false => format!("{}.{}", self.path, key.text),
        };
        entries.iter().map(|(key, node)| (key, SuiteField { node, path: below(key) })).collect()
    }

    /// The items of a list; none after a problem.
    pub fn items(&self, problems: &mut Problems) -> Vec<SuiteField<'a>> {
        let YamlKind::List(items) = &self.node.kind else {
            problems.push(self.mismatch("a list"));
            return Vec::new();
        };
        let item = |(number, node)| SuiteField { node, path: format!("{}[{number}]", self.path) };
        items.iter().enumerate().map(item).collect()
    }

    /// Non-blank text.
    pub fn text(&self, problems: &mut Problems) -> Option<&'a str> {
        match &self.node.kind {
            YamlKind::Scalar { text, quoted } if *quoted || !is_blank(text) => Some(text),
            _ => {
                problems.push(self.mismatch("text"));
                None
            }
        }
    }

    /// An integer.
    pub fn integer(&self, range: RangeInclusive<u64>, problems: &mut Problems) -> Option<u64> {
        let plain = match &self.node.kind {
            YamlKind::Scalar { text, quoted: false } if text.bytes().all(|byte| byte.is_ascii_digit()) => Some(text),
            _ => None,
        };
        let number = plain.and_then(|text| text.parse().ok()).filter(|number| range.contains(number));
        if number.is_none() {
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            problems.push(self.mismatch(&wanted));
        }
        number
    }

    /// `true` or `false`.
    pub fn boolean(&self, problems: &mut Problems) -> Option<bool> {
        match &self.node.kind {
            YamlKind::Scalar { text, quoted: false } if text == "true" => Some(true),
            YamlKind::Scalar { text, quoted: false } if text == "false" => Some(false),
            _ => {
                problems.push(self.mismatch("true or false"));
                None
            }
        }
    }

    /// A duration.
    pub fn span(&self, problems: &mut Problems) -> Option<Span> {
        let text = self.text(problems)?;
        let read = duration::parse(text).map(Span::from_nanos).map_err(|fault| self.fault("bad-duration", fault));
        read.map_err(|problem| problems.push(problem)).ok()
    }

    /// An instant.
    pub fn time(&self, problems: &mut Problems) -> Option<Time> {
        let text = self.text(problems)?;
        let read = datetime::parse(text).map(Time::from_nanos).map_err(|fault| self.fault("bad-time", fault));
        read.map_err(|problem| problems.push(problem)).ok()
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, choices: &[(&'static str, T)], problems: &mut Problems) -> Option<T> {
        let text = self.text(problems)?;
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(*choice);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        problems.push(self.unknown("unknown-value", text, &names));
        None
    }

    /// The problem of a word that is not one of `names`.
    pub fn unknown(&self, code: &'static str, word: &str, names: &[&str]) -> Problem {
        self.problem(code, format!("{} is `{word}`", self.path)).help(suggest(word, names))
    }
}

/// The problem of a field that does not exist.
pub fn unknown_field(key: &YamlKey, path: &str, allowed: &[&str]) -> Problem {
    let at = SourcePosition { line: key.span.line, column: key.span.column };
    Problem::error("unknown-field", at, path, format!("unknown field `{}`", key.text)).help(suggest(&key.text, allowed))
}

/// The nearest name, and the allowed names, as far as they fit into a line or two.
pub fn suggest(word: &str, names: &[&str]) -> String {
    const SHOWN: usize = 40;
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let allowed = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match nearest(word, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`? allowed: {allowed}{more}"),
        None => format!("allowed: {allowed}{more}"),
    }
}
