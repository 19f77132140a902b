//! Conditions on the value of one attribute.
//!
//! The variants are public: an index treats exact patterns and prefixes differently.

use crate::address::{Cidr, parse_ip};
use crate::glob::Glob;
use crate::problem::ParseError;

/// A pattern for a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Exactly this text.
    Exact(String),
    /// Starts with this text: `abc*`.
    Prefix(String),
    /// Stars before or between other text.
    Glob(Glob),
    /// Any value: `*`.
    Any,
    /// An address in this network; for the attribute `ip` only.
    Cidr(Cidr),
}

impl Pattern {
    /// Longest pattern accepted.
    pub const BYTES_MAX: usize = 1024;

    /// Reads a pattern of text, without `!`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Err(ParseError::new(
                "the pattern is empty",
                "write a value, a glob such as `free*`, or `*` for any value",
            ));
        }
        if text.len() > Self::BYTES_MAX {
            return Err(ParseError::new("the pattern is too long", format!("use at most {} bytes", Self::BYTES_MAX)));
        }
        Ok(match Glob::parse(text) {
            None => Self::Exact(text.to_owned()),
            Some(glob) if !glob.suffix.is_empty() || !glob.middle.is_empty() => Self::Glob(glob),
            Some(glob) if glob.prefix.is_empty() => Self::Any,
            Some(glob) => Self::Prefix(glob.prefix),
        })
    }

    /// Reads a pattern for the attribute `ip`, without `!`.
    pub fn parse_ip(text: &str) -> Result<Self, ParseError> {
        match text {
            "*" => Ok(Self::Any),
            _ => Cidr::parse(text).map(Self::Cidr),
        }
    }

    /// Whether a value matches. Never allocates.
    pub fn matches(&self, value: &str) -> bool {
        match self {
            Self::Exact(text) => value == text,
            Self::Prefix(prefix) => value.starts_with(prefix.as_str()),
            Self::Glob(glob) => glob.matches(value),
            Self::Any => true,
            Self::Cidr(cidr) => parse_ip(value).is_some_and(|bits| cidr.matches(bits)),
        }
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact(text) => f.write_str(text),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
            Self::Glob(glob) => write!(f, "{glob}"),
            Self::Any => f.write_str("*"),
            Self::Cidr(cidr) => write!(f, "{cidr}"),
        }
    }
}

/// A list of patterns: a value matches if one of `any` does (or `any` is empty) and none of `none` does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Matcher {
    /// At least one of these must match.
    pub any: Vec<Pattern>,
    /// None of these may match; written with `!`.
    pub none: Vec<Pattern>,
}

impl Matcher {
    /// Adds a text pattern; a leading `!` negates it.
    pub fn push(&mut self, text: &str) -> Result<(), ParseError> {
        self.push_with(text, Pattern::parse)
    }

    /// Adds a pattern for the attribute `ip`.
    pub fn push_ip(&mut self, text: &str) -> Result<(), ParseError> {
        self.push_with(text, Pattern::parse_ip)
    }

    /// Adds a pattern that `parse` reads, without its leading `!`.
    pub fn push_with(
        &mut self,
        text: &str,
        parse: impl Fn(&str) -> Result<Pattern, ParseError>,
    ) -> Result<(), ParseError> {
        match text.strip_prefix('!') {
            Some("*") => Err(ParseError::new(
                "`!*` can never match",
                "leave it out; attributes that are absent cannot be matched",
            )),
            Some(rest) => parse(rest).map(|pattern| self.none.push(pattern)),
            None => parse(text).map(|pattern| self.any.push(pattern)),
        }
    }

    /// Whether a value matches. Never allocates.
    pub fn matches(&self, value: &str) -> bool {
        (self.any.is_empty() || self.any.iter().any(|pattern| pattern.matches(value)))
            && !self.none.iter().any(|pattern| pattern.matches(value))
    }

    /// Whether every value matches.
    pub fn is_any(&self) -> bool {
        self.none.is_empty() && (self.any.is_empty() || self.any.contains(&Pattern::Any))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(patterns: &[&str]) -> Matcher {
        let mut matcher = Matcher::default();
        patterns.iter().for_each(|text| matcher.push(text).unwrap());
        matcher
    }

    #[test]
    fn shapes_are_told_apart() {
        let cases = [
            ("free", Pattern::Exact("free".into())),
            ("free*", Pattern::Prefix("free".into())),
            ("free**", Pattern::Prefix("free".into())),
            ("*", Pattern::Any),
            ("**", Pattern::Any),
        ];
        for (text, expected) in cases {
            assert_eq!(Pattern::parse(text), Ok(expected), "{text}");
        }
        assert!(matches!(Pattern::parse("*e"), Ok(Pattern::Glob(_))));
        assert!(matches!(Pattern::parse("f*e*"), Ok(Pattern::Glob(_))));
        assert_eq!(Pattern::parse("f*e*").unwrap().to_string(), "f*e*");
    }

    #[test]
    fn lists_are_any_of_and_none_of() {
        let cases: [(&[&str], &str, bool); 10] = [
            (&["free"], "free", true),
            (&["free"], "Free", false),
            (&["free", "trial*"], "trial-2", true),
            (&["!free"], "paid", true),
            (&["!free"], "free", false),
            (&["!free", "!trial"], "trial", false),
            (&["!free", "!trial"], "paid", true),
            (&["p*", "!paid"], "paid", false),
            (&["p*", "!paid"], "pro", true),
            (&["p*", "!paid"], "free", false),
        ];
        for (patterns, value, expected) in cases {
            assert_eq!(matcher(patterns).matches(value), expected, "{patterns:?} {value}");
        }
    }

    #[test]
    fn addresses_match_by_network() {
        let mut inside = Matcher::default();
        inside.push_ip("10.0.0.0/8").unwrap();
        inside.push_ip("!10.1.0.0/16").unwrap();
        assert!(inside.matches("10.2.3.4") && inside.matches("::ffff:10.2.3.4"));
        assert!(!inside.matches("10.1.3.4") && !inside.matches("11.0.0.1") && !inside.matches("junk"));
        for text in ["1.2.3.4/33", "10.0.0.1/8", "010.0.0.1", "10.*", "", "!", "!!10.0.0.0/8"] {
            assert!(Matcher::default().push_ip(text).is_err(), "{text}");
        }
    }

    #[test]
    fn odd_patterns_are_refused() {
        for text in ["", "!", "!*"] {
            assert!(Matcher::default().push(text).is_err(), "{text}");
        }
        assert!(Pattern::parse(&"x".repeat(2000)).is_err());
    }
}
