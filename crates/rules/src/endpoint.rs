//! Conditions on method and path: `POST /api/*`, `/users/{id}`, `GET,HEAD *`, `*`.

use crate::path::{EscapedSlash, PathCase, is_method};
use crate::problem::{ParseError, quote, short};
use crate::route::PathPattern;

/// One method-and-path pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndpointPattern {
    /// The methods, sorted; empty means any, so that `HEAD` does not bypass a rule (RELIABILITY N13).
    pub methods: Vec<String>,
    /// The path.
    pub path: PathPattern,
}

impl EndpointPattern {
    /// Reads a pattern, without `!`.
    pub fn parse(text: &str, escaped_slash: EscapedSlash, case: PathCase) -> Result<Self, ParseError> {
        let trimmed = text.trim();
        let (methods, path) = match trimmed.split_once(' ') {
            Some((methods, path)) if !trimmed.starts_with('/') => (methods, path.trim_start()),
            _ => ("*", trimmed),
        };
        if methods == "*" && path.split(',').all(|word| is_method(&word.to_uppercase())) {
            return Err(ParseError::new(
                format!("{} has no path", quote(text)),
                format!("write `{} *` for every path, or `{0} /path`", short(&path.to_uppercase())),
            ));
        }
        Ok(Self { methods: parse_methods(methods)?, path: PathPattern::parse(path, escaped_slash, case)? })
    }

    /// Whether a request matches; a request without a method matches any methods.
    pub fn matches(&self, method: Option<&str>, path: &str) -> bool {
        method.is_none_or(|method| self.has_method(method)) && self.path.matches(path)
    }

    /// Whether it excludes a request when written with `!`; a request without a method only if the pattern has none.
    pub fn is_unwanted(&self, method: Option<&str>, path: &str) -> bool {
        (method.is_some() || self.methods.is_empty()) && self.matches(method, path)
    }

    /// Whether the pattern covers a method.
    pub fn has_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|own| own == method)
    }

    /// Whether it covers every endpoint.
    pub fn is_any(&self) -> bool {
        self.methods.is_empty() && self.path.is_any()
    }
}

impl std::fmt::Display for EndpointPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.methods.is_empty() {
            true => f.write_str(self.path.as_str()),
            false => write!(f, "{} {}", self.methods.join(","), self.path.as_str()),
        }
    }
}

/// A list of endpoint patterns, with the meaning of [`crate::Matcher`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EndpointMatcher {
    /// At least one of these must match.
    pub any: Vec<EndpointPattern>,
    /// None of these may match; written with `!`.
    pub none: Vec<EndpointPattern>,
}

impl EndpointMatcher {
    /// Adds a pattern; a leading `!` negates it.
    pub fn push(&mut self, text: &str, escaped_slash: EscapedSlash, case: PathCase) -> Result<(), ParseError> {
        let Some(unwanted) = text.strip_prefix('!') else {
            self.any.push(EndpointPattern::parse(text, escaped_slash, case)?);
            return Ok(());
        };
        let pattern = EndpointPattern::parse(unwanted, escaped_slash, case)?;
        if pattern.is_any() {
            return Err(ParseError::new("`!*` can never match", "leave it out, or name what is not wanted"));
        }
        self.none.push(pattern);
        Ok(())
    }

    /// Whether a request matches. Without a method it matches every pattern of `any` by path, and only those of `none`
    /// that have no method: omitting the method does not bypass a rule.
    pub fn matches(&self, method: Option<&str>, path: &str) -> bool {
        (self.any.is_empty() || self.any.iter().any(|pattern| pattern.matches(method, path)))
            && !self.none.iter().any(|pattern| pattern.is_unwanted(method, path))
    }

    /// Whether every endpoint matches.
    pub fn is_any(&self) -> bool {
        self.none.is_empty() && (self.any.is_empty() || self.any.iter().any(EndpointPattern::is_any))
    }

    /// The pattern of `any` that a request matches; its template identifies the bucket.
    pub fn pattern_of(&self, method: Option<&str>, path: &str) -> Option<&EndpointPattern> {
        self.any.iter().find(|pattern| pattern.matches(method, path))
    }
}

fn parse_methods(text: &str) -> Result<Vec<String>, ParseError> {
    if text == "*" {
        return Ok(Vec::new());
    }
    let mut methods: Vec<String> = Vec::new();
    for word in text.split(',') {
        if !is_method(word) {
            let upper = word.to_uppercase();
            let meant = if is_method(&upper) { format!("did you mean `{upper}`? ") } else { String::new() };
            let help = format!("{meant}methods are capital letters, several joined by commas: `GET,HEAD /path`");
            return Err(ParseError::new(format!("{} is not a method", quote(word)), help));
        }
        methods.push(word.to_owned());
    }
    methods.sort();
    methods.dedup();
    Ok(methods)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Result<EndpointPattern, ParseError> {
        EndpointPattern::parse(text, EscapedSlash::Reject, PathCase::Sensitive)
    }

    fn matcher(patterns: &[&str]) -> EndpointMatcher {
        let mut matcher = EndpointMatcher::default();
        for text in patterns {
            matcher.push(text, EscapedSlash::Reject, PathCase::Sensitive).unwrap();
        }
        matcher
    }

    #[test]
    fn methods_narrow_only_when_named() {
        let cases = [
            ("POST /api/*", Some("POST"), "/api/x", true),
            ("POST /api/*", Some("GET"), "/api/x", false),
            ("POST /api/*", None, "/api/x", true),
            ("/api/*", Some("DELETE"), "/api/x", true),
            ("*", Some("GET"), "/", true),
            ("*", None, "/a/b", true),
            ("* /a", Some("GET"), "/a", true),
            ("GET *", Some("GET"), "/a/b", true),
            ("GET *", Some("HEAD"), "/a/b", false),
            ("GET,HEAD /x", Some("HEAD"), "/x", true),
            ("GET,HEAD /x", Some("PUT"), "/x", false),
            ("GET   //x/", Some("GET"), "/x", true),
        ];
        for (text, method, path, expected) in cases {
            assert_eq!(pattern(text).unwrap().matches(method, path), expected, "{text} {method:?} {path}");
        }
    }

    #[test]
    fn n13_a_rule_without_method_covers_all() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND"] {
            assert!(pattern("/login").unwrap().matches(Some(method), "/login"), "{method}");
        }
    }

    #[test]
    fn lists_and_negations() {
        let cases: [(&[&str], Option<&str>, &str, bool); 8] = [
            (&["/a", "/b"], None, "/b", true),
            (&["/a", "/b"], None, "/c", false),
            (&["!/health"], None, "/a", true),
            (&["!/health"], None, "/health", false),
            (&["/api/*", "!/api/health"], Some("GET"), "/api/health", false),
            (&["/api/*", "!GET /api/health"], Some("POST"), "/api/health", true),
            (&["/api/*", "!GET /api/health"], None, "/api/health", true),
            (&["!GET *"], Some("GET"), "/x", false),
        ];
        for (patterns, method, path, expected) in cases {
            assert_eq!(matcher(patterns).matches(method, path), expected, "{patterns:?} {method:?} {path}");
        }
    }

    #[test]
    fn mistakes_are_explained() {
        let cases = [
            ("get /x", "`get` is not a method; did you mean `GET`?"),
            ("GET", "`GET` has no path; write `GET *` for every path, or `GET /path`"),
            ("post", "`post` has no path; write `POST *`"),
            ("GET,, /x", "`` is not a method"),
            ("G3T /x", "`G3T` is not a method; methods are"),
            ("api/x", "does not start with `/`"),
            ("GET api/x", "does not start with `/`"),
            ("", "pattern is empty"),
            ("/a?b=c", "has a query"),
        ];
        for (text, expected) in cases {
            let fault = pattern(text).expect_err(text).to_string();
            assert!(fault.contains(expected), "{text}: {fault}");
        }
        let refused = EndpointMatcher::default().push("!*", EscapedSlash::Reject, PathCase::Sensitive);
        assert!(refused.is_err());
    }

    #[test]
    fn displays_canonically() {
        for (text, shown) in [
            ("HEAD,GET //a/", "GET,HEAD /a"),
            ("*", "*"),
            ("/*", "*"),
            ("GET /*", "GET *"),
            ("/users/{id}/x", "/users/{id}/x"),
            ("/a/*/b*", "/a/*/b*"),
        ] {
            assert_eq!(pattern(text).unwrap().to_string(), shown, "{text}");
            assert_eq!(pattern(shown).unwrap(), pattern(text).unwrap(), "{text}");
        }
    }
}
