//! Path patterns: literal segments, `{id}` for exactly one segment, `*` for anything including slashes.
//!
//! A pattern is split at the first segment with a `*`: the segments before it can be looked up in a trie, the rest is
//! its [`Tail`]. Patterns are made canonical like paths, so `//login` in a rule is `/login`; a star that is meant is `%2A`.

mod glob;

use std::borrow::Cow;

use crate::path::{EscapedSlash, PathCase, PathError, canonical_pattern};
use crate::problem::{ParseError, quote};
pub use glob::PathGlob;

/// A path pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathPattern {
    /// Leading segments without a star.
    pub segments: Vec<Segment>,
    /// The rest.
    pub tail: Tail,
    /// Case sensitivity.
    pub case: PathCase,
    text: String,
    /// The joined segments, if all are literal and case-sensitive: one comparison instead of many.
    prefix: Option<String>,
}

/// One segment of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// Exactly this canonical text.
    Literal(String),
    /// Any one segment; the name appears in templates.
    Param(String),
}

/// How a path pattern ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tail {
    /// After the last segment.
    End,
    /// With anything or nothing: `/api/*` matches `/api/x/y`, and `/api`, the canonical form of `/api/`.
    Rest,
    /// With text and stars, matched against the rest of the path from its slash on.
    Glob(PathGlob),
}

impl PathPattern {
    /// Longest pattern accepted.
    pub const BYTES_MAX: usize = 1024;

    /// Reads a pattern: `*`, or a path with `{name}` segments and stars.
    pub fn parse(text: &str, escaped_slash: EscapedSlash, case: PathCase) -> Result<Self, ParseError> {
        check(text)?;
        let canonical = match text.starts_with('*') {
            // A leading star also matches the leading slash; the star is restored below.
            true => canonical(&format!("/{text}"), text, escaped_slash)?,
            false => canonical(text, text, escaped_slash)?,
        };
        let canonical = canonical.replace("%7B", "{").replace("%7D", "}");
        let words: Vec<&str> = canonical.split('/').skip(1).filter(|word| !word.is_empty()).collect();
        let starless =
            if text.starts_with('*') { 0 } else { words.iter().take_while(|word| !word.contains('*')).count() };
        let segments = words.iter().take(starless).map(|word| segment(word, text)).collect::<Result<Vec<_>, _>>()?;
        let rest = words.get(starless..).unwrap_or_default();
        let tail = match rest {
            [] => Tail::End,
            [star] if star.bytes().all(|byte| byte == b'*') => Tail::Rest,
            _ => Tail::Glob(tail_glob(rest, text)?),
        };
        let text = shown(&segments, &tail);
        let literal = segments.iter().all(|segment| matches!(segment, Segment::Literal(_)));
        let prefix = (literal && case == PathCase::Sensitive).then(|| joined(&segments));
        Ok(Self { segments, tail, case, text, prefix })
    }

    /// The pattern in canonical form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether every path matches.
    pub fn is_any(&self) -> bool {
        self.segments.is_empty() && self.tail == Tail::Rest
    }

    /// Whether a canonical path matches. Never allocates.
    pub fn matches(&self, path: &str) -> bool {
        let mut rest = if path == "/" { "" } else { path };
        if let Some(prefix) = &self.prefix {
            let rest = rest.strip_prefix(prefix.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
            return rest.is_some_and(|rest| self.matches_tail(rest));
        }
        for segment in &self.segments {
            let Some((word, after)) = next_segment(rest) else { return false };
            let same = match segment {
                Segment::Literal(text) => glob::same(text, word, self.case),
                Segment::Param(_) => !word.is_empty(),
            };
            if !same {
                return false;
            }
            rest = after;
        }
        self.matches_tail(rest)
    }

    /// Whether the rest of a path after the segments (empty, or from a slash on) matches the tail.
    pub fn matches_tail(&self, rest: &str) -> bool {
        match &self.tail {
            Tail::End => rest.is_empty(),
            Tail::Rest => true,
            Tail::Glob(glob) => glob.matches(rest, self.case),
        }
    }

    /// The template of all matching paths, if the pattern has only literals and parameters.
    pub fn template(&self) -> Option<&str> {
        (self.tail == Tail::End).then_some(self.text.as_str())
    }

    /// A matching path with its parameters replaced by their names: `/users/42/x` is `/users/{id}/x` for
    /// `/users/{id}/*`. Borrowed if there is no parameter.
    pub fn template_of<'a>(&'a self, path: &'a str) -> Cow<'a, str> {
        if let Some(template) = self.template() {
            return Cow::Borrowed(template);
        }
        if !self.segments.iter().any(|segment| matches!(segment, Segment::Param(_))) {
            return Cow::Borrowed(path);
        }
        let mut rest = path;
        for _ in &self.segments {
            rest = next_segment(rest).map_or("", |(_, after)| after);
        }
        Cow::Owned(format!("{}{rest}", joined(&self.segments)))
    }
}

/// The first segment of `/a/b` and what follows it.
fn next_segment(rest: &str) -> Option<(&str, &str)> {
    rest.strip_prefix('/').map(first_segment)
}

/// The text before the first slash, and the rest from it on. Byte by byte: segments are short.
#[inline]
pub fn first_segment(words: &str) -> (&str, &str) {
    words.split_at(words.bytes().position(|byte| byte == b'/').unwrap_or(words.len()))
}

fn check(text: &str) -> Result<(), ParseError> {
    let bad = |why: &str, help: &str| Err(ParseError::new(format!("the path pattern {} {why}", quote(text)), help));
    if text.is_empty() {
        return Err(ParseError::new(
            "the endpoint pattern is empty",
            "write `/path`, `METHOD /path`, or `*` for everything",
        ));
    }
    if text.len() > PathPattern::BYTES_MAX {
        return bad("is too long", &format!("use at most {} bytes", PathPattern::BYTES_MAX));
    }
    if text.contains(['?', '#']) {
        return bad("has a query or a fragment", "rules see paths only; cut it off");
    }
    if !text.starts_with(['/', '*']) {
        return bad("does not start with `/`", "write `/path`, `METHOD /path`, or `*` for everything");
    }
    if text.split('/').any(|word| word.replace("%2e", ".").replace("%2E", ".") == "..") {
        return bad("has a `..` segment", "write the path it stands for");
    }
    Ok(())
}

fn canonical(path: &str, written: &str, escaped_slash: EscapedSlash) -> Result<String, ParseError> {
    canonical_pattern(path, escaped_slash).map(Cow::into_owned).map_err(|error| {
        let help = match error {
            PathError::EscapedSlash => "no request can have it, unless `escaped_slash: keep` is set",
            _ => "write the path as requests have it; `*` stands for anything, `{name}` for one segment",
        };
        ParseError::new(format!("the path pattern {} is not a path: {error}", quote(written)), help)
    })
}

fn segment(word: &str, written: &str) -> Result<Segment, ParseError> {
    match word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) {
        Some(name) if is_name(name) => Ok(Segment::Param(name.to_owned())),
        None if !word.contains(['{', '}']) => Ok(Segment::Literal(word.to_owned())),
        _ => Err(ParseError::new(
            format!("{} has braces that are no parameter", quote(written)),
            "a parameter is a whole segment with a name of letters, digits and `_`, such as `/users/{id}`",
        )),
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn tail_glob(words: &[&str], written: &str) -> Result<PathGlob, ParseError> {
    for word in words {
        segment(word, written)?;
    }
    let slash = if written.starts_with('*') { "" } else { "/" };
    Ok(PathGlob::new(&format!("{slash}{}", words.join("/"))))
}

fn joined(segments: &[Segment]) -> String {
    let mut text = String::new();
    for segment in segments {
        text.push('/');
        match segment {
            Segment::Literal(word) => text.push_str(word),
            Segment::Param(name) => text.extend(["{", name, "}"]),
        }
    }
    text
}

fn shown(segments: &[Segment], tail: &Tail) -> String {
    let mut text = joined(segments);
    match tail {
        Tail::End if text.is_empty() => text.push('/'),
        Tail::End => {}
        Tail::Rest if text.is_empty() => text.push('*'),
        Tail::Rest => text.push_str("/*"),
        Tail::Glob(glob) => text.push_str(glob.as_str()),
    }
    text
}

#[cfg(test)]
mod tests;
