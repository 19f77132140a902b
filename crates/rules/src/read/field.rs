//! Strict access to the tree: every value has its path, every mistake becomes a problem, and reading continues.

use std::fmt;

use crate::duration;
use crate::nearest::suggest;
use crate::position::SourcePosition;
use crate::problem::{ParseError, Problem, Problems, quote, short};
use crate::yaml::{YamlKind, YamlNode, is_blank};

/// Path from the root to a value; formatted only for a problem.
#[derive(Clone, Copy, Debug)]
pub enum FieldPath<'a> {
    /// The root, by its name: `file`, `rule`, ...
    Root(&'static str),
    /// A field of a map.
    Field(&'a FieldPath<'a>, &'a str),
    /// An item of a list, counted from 0.
    Item(&'a FieldPath<'a>, usize),
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(_) => Ok(()),
            Self::Field(Self::Root(_), name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

impl FieldPath<'_> {
    /// The path as the subject of a sentence.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Root(whole) => format!("the {whole}"),
            _ => self.to_string(),
        }
    }
}

/// A value and its path.
#[derive(Clone, Copy, Debug)]
pub struct FieldValue<'a> {
    /// The value.
    pub node: &'a YamlNode,
    /// Its path.
    pub path: FieldPath<'a>,
}

impl<'a> FieldValue<'a> {
    /// Where the value starts.
    pub fn position(&self) -> SourcePosition {
        self.node.position()
    }

    /// A problem with this value.
    pub fn problem(&self, code: &'static str, message: impl Into<String>) -> Problem {
        Problem::error(code, self.position(), self.path, message)
    }

    /// The problem of a value that cannot be parsed.
    pub fn fault(&self, code: &'static str, fault: ParseError) -> Problem {
        self.problem(code, format!("{}: {}", self.path, fault.message)).help(fault.help)
    }

    /// The problem of a value of another kind than `wanted`.
    pub fn mismatch(&self, wanted: &str, help: impl Into<String>) -> Problem {
        let found = match &self.node.kind {
            YamlKind::Scalar { text, quoted: false } if is_blank(text) => {
                let message = format!("{} is blank, and should be {wanted}", self.path.title());
                return self.problem("blank", message).help(help);
            }
            YamlKind::Scalar { text, quoted: true } => format!("the quoted text {}", quote(text)),
            YamlKind::Scalar { text, .. } => quote(text),
            _ => self.node.describe().to_owned(),
        };
        self.problem("wrong-type", format!("{} should be {wanted}, found {found}", self.path.title())).help(help)
    }

    /// The items of a list; empty after a problem.
    pub fn items(&self, wanted: &str, problems: &mut Problems) -> impl Iterator<Item = FieldValue<'_>> {
        let items: &[YamlNode] = match &self.node.kind {
            YamlKind::List(items) => items,
            _ => {
                problems
                    .push(self.mismatch(&format!("a list of {wanted}"), "write `[a, b]`, or one `- item` per line"));
                &[]
            }
        };
        items.iter().enumerate().map(|(index, node)| FieldValue { node, path: FieldPath::Item(&self.path, index) })
    }

    /// The items of a list, or the value itself.
    pub fn one_or_more(&self) -> Vec<FieldValue<'_>> {
        match &self.node.kind {
            YamlKind::List(items) => items
                .iter()
                .enumerate()
                .map(|(index, node)| FieldValue { node, path: FieldPath::Item(&self.path, index) })
                .collect(),
            _ => vec![*self],
        }
    }

    /// Text that is not blank.
    pub fn text(&self, problems: &mut Problems) -> Option<&'a str> {
        match &self.node.kind {
            YamlKind::Scalar { text, quoted } if (*quoted && !text.is_empty()) || !is_blank(text) => Some(text),
            YamlKind::Scalar { text, quoted } if *quoted && text.is_empty() => {
                let help = "write a value, or remove the field";
                problems.push(self.problem("blank", format!("{} is empty text", self.path)).help(help));
                None
            }
            _ => {
                problems.push(self.mismatch("text", "write a value, or remove the field"));
                None
            }
        }
    }

    /// A plain base-10 integer within a range (RELIABILITY Y04).
    pub fn integer(&self, range: std::ops::RangeInclusive<u64>, problems: &mut Problems) -> Option<u64> {
        let (low, high) = (range.start(), range.end());
        let help = format!(
            "a whole number from {low} to {high}: digits only, no quotes, sign, `_`, leading zero, dot or exponent"
        );
        let YamlKind::Scalar { text, quoted: false } = &self.node.kind else {
            problems.push(self.mismatch("a number", help));
            return None;
        };
        let negative = text.strip_prefix('-').is_some_and(is_digits);
        if !negative && (!is_digits(text) || (text.len() > 1 && text.starts_with('0'))) {
            let help = match text.replace('_', "").trim_start_matches('0') {
                plain if is_digits(plain) => format!("did you mean {}? {help}", short(plain)),
                _ => help,
            };
            problems.push(self.mismatch("a number", help));
            return None;
        }
        match text.parse().ok().filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => {
                let message = format!("{} is {}, which is out of range", self.path, quote(text));
                problems.push(self.problem("out-of-range", message).help(format!("allowed: {low} to {high}")));
                None
            }
        }
    }

    /// `true` or `false`.
    pub fn boolean(&self, problems: &mut Problems) -> Option<bool> {
        match &self.node.kind {
            YamlKind::Scalar { text, quoted: false } if text == "true" => Some(true),
            YamlKind::Scalar { text, quoted: false } if text == "false" => Some(false),
            _ => {
                problems.push(self.mismatch("true or false", "write `true` or `false`, without quotes"));
                None
            }
        }
    }

    /// One of the given words.
    pub fn choice<T: Copy>(&self, choices: &[(&'static str, T)], problems: &mut Problems) -> Option<T> {
        let text = self.text(problems)?;
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(*choice);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let message = format!("{} is {}", self.path, quote(text));
        problems.push(self.problem("unknown-value", message).help(suggest(text, &names)));
        None
    }

    /// A duration within a range of nanoseconds.
    pub fn duration(&self, range: std::ops::RangeInclusive<u64>, problems: &mut Problems) -> Option<u64> {
        let text = match &self.node.kind {
            YamlKind::Scalar { text, quoted } if *quoted || !is_blank(text) => text,
            _ => {
                problems.push(self.mismatch(
                    "a duration",
                    "a duration is a whole number with a unit, such as 250ms, 30s, 5m, 1h or 7d",
                ));
                return None;
            }
        };
        match duration::parse(text) {
            Ok(ns) if range.contains(&ns) => Some(ns),
            Ok(_) => {
                let message = format!("{} is {}, which is out of range", self.path, quote(text));
                let allowed = [*range.start(), *range.end()].map(duration::display).join(" to ");
                problems.push(self.problem("out-of-range", message).help(format!("allowed: {allowed}")));
                None
            }
            Err(fault) => {
                problems.push(self.fault("bad-duration", fault));
                None
            }
        }
    }

    /// A whole number of percent, written with its sign: `20%`.
    pub fn percent(&self, range: std::ops::RangeInclusive<u32>, problems: &mut Problems) -> Option<u32> {
        let text = self.text(problems)?;
        let digits = text.strip_suffix('%').filter(|digits| is_digits(digits) && !digits.starts_with('0'));
        match digits.and_then(|digits| digits.parse().ok()).filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => {
                let help =
                    format!("write a whole number of percent from {}% to {}%, such as 20%", range.start(), range.end());
                problems.push(self.problem("bad-percent", format!("{} is {}", self.path, quote(text))).help(help));
                None
            }
        }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
