//! One canonical path per request: routes match it, rules count by it, and the server behind gets it. A path that two
//! readers could understand differently is refused, so that no spelling of it escapes a limit.

use std::borrow::Cow;

use tollgate_rules::path::PathError;
use tollgate_rules::{EscapedSlash, PathCase, canonical_path, forwarded_path};

use crate::spec::{PathParameters, RouteSpec};

/// The path of a request in its one spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CanonicalPath<'a> {
    /// Without parameters.
    path: SpelledPath<'a>,
    /// With its parameters, if it has any.
    whole: Option<SpelledPath<'a>>,
    /// The caller's path ends with a slash, which the canonical one never does.
    has_trailing_slash: bool,
}

/// A path for rules and for servers: segment by segment the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SpelledPath<'a> {
    rules: Cow<'a, str>,
    /// If it is spelled otherwise.
    server: Option<Cow<'a, str>>,
}

impl<'a> SpelledPath<'a> {
    fn parse(path: &'a str) -> Result<SpelledPath<'a>, PathError> {
        // Whether escaped slashes are refused is up to the route, which this path has to find first.
        let rules = canonical_path(path, EscapedSlash::Keep)?;
        let server = match rules.contains('+') || rules.contains("%2A") {
            true => Some(forwarded_path(path, EscapedSlash::Keep)?),
            false => None,
        };
        Ok(SpelledPath { rules, server })
    }

    fn into_owned(self) -> SpelledPath<'static> {
        let server = self.server.map(|path| Cow::Owned(path.into_owned()));
        SpelledPath { rules: Cow::Owned(self.rules.into_owned()), server }
    }

    fn server(&self) -> &str {
        self.server.as_deref().unwrap_or(&self.rules)
    }
}

impl<'a> CanonicalPath<'a> {
    /// Reads the path of a target, without its query.
    pub(crate) fn parse(path: &'a str) -> Result<CanonicalPath<'a>, PathError> {
        let spelled = SpelledPath::parse(path)?;
        // Some servers drop what stands behind `;` and resolve the dots then.
        let dots = |segment: &str| {
            matches!(segment.split([';']).next(), Some("." | ".."))
                || segment.starts_with(".%3B")
                || segment.starts_with("..%3B")
        };
        let has_dot_first = spelled.rules.as_bytes().windows(2).any(|pair| pair == b"/.");
        if has_dot_first && spelled.rules.split('/').any(dots) {
            return Err(PathError::AboveRoot);
        }
        let has_trailing_slash = path.len() > 1 && path.ends_with('/');
        if !spelled.rules.contains(';') {
            return Ok(CanonicalPath { path: spelled, whole: None, has_trailing_slash });
        }
        let bare = SpelledPath::parse(&without_parameters(path))?.into_owned();
        Ok(CanonicalPath { path: bare, whole: Some(spelled), has_trailing_slash })
    }

    /// As routes match it: without parameters, or they would choose the route.
    pub(crate) fn as_str(&self) -> &str {
        &self.path.rules
    }

    /// As rules of this route see it: in lower case if the server behind ignores the case.
    pub(crate) fn for_rules(&self, route: &RouteSpec) -> Result<Cow<'_, str>, PathError> {
        if self.whole.is_some() && route.path_parameters == PathParameters::Reject {
            return Err(PathError::Parameter);
        }
        let path = &self.of(route).rules;
        if route.escaped_slash == EscapedSlash::Reject && has_escaped_slash(path) {
            return Err(PathError::EscapedSlash);
        }
        Ok(match route.path.case {
            PathCase::Sensitive => Cow::Borrowed(&**path),
            PathCase::Insensitive => Cow::Owned(lower(path)),
        })
    }

    /// With parameters only where they are letters.
    fn of(&self, route: &RouteSpec) -> &SpelledPath<'a> {
        let whole = self.whole.as_ref().filter(|_| route.path_parameters == PathParameters::Keep);
        whole.unwrap_or(&self.path)
    }

    /// As the server gets it.
    pub(crate) fn forwarded(&self, route: &RouteSpec) -> Cow<'_, str> {
        let path = self.of(route);
        let whole = path.server();
        let rest = match &route.strip_prefix {
            Some(prefix) if has_prefix(&path.rules, prefix, route.path.case) => after_segments(whole, prefix),
            _ => whole,
        };
        let slash = self.has_trailing_slash && route.keep_trailing_slash && !rest.ends_with('/');
        if rest.len() == whole.len() && route.add_prefix.is_none() && !slash {
            return Cow::Borrowed(whole);
        }
        let mut path = route.add_prefix.clone().unwrap_or_default();
        path.push_str(if rest.is_empty() { "/" } else { rest });
        if slash && !path.ends_with('/') {
            path.push('/');
        }
        Cow::Owned(path)
    }
}

/// A path as it was written, each segment up to its first `;`.
fn without_parameters(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').map(|segment| segment.split(';').next().unwrap_or_default()).collect();
    segments.join("/")
}

/// Canonical escapes have capital letters.
fn has_escaped_slash(path: &str) -> bool {
    path.contains('%') && (path.contains("%2F") || path.contains("%5C"))
}

/// ASCII letters in lower case, but not those of escapes: `%C3` stays, so that the path stays canonical.
fn lower(path: &str) -> String {
    let mut escape = 0;
    path.chars()
        .map(|letter| {
            if letter == '%' {
                escape = 3;
            }
            escape = if escape > 0 { escape - 1 } else { 0 };
            if escape > 0 || letter == '%' { letter } else { letter.to_ascii_lowercase() }
        })
        .collect()
}

/// Whether a path begins with these segments.
fn has_prefix(path: &str, prefix: &str, case: PathCase) -> bool {
    let Some((start, rest)) = path.split_at_checked(prefix.len()) else { return false };
    let is_same = match case {
        PathCase::Sensitive => start == prefix,
        PathCase::Insensitive => start.eq_ignore_ascii_case(prefix),
    };
    is_same && (rest.is_empty() || rest.starts_with('/'))
}

/// What follows as many segments as a prefix has. Counted, because the server's spelling may have another length.
fn after_segments<'a>(path: &'a str, prefix: &str) -> &'a str {
    let count = prefix.bytes().filter(|byte| *byte == b'/').count();
    let next = path.match_indices('/').nth(count);
    next.and_then(|(at, _)| path.get(at..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tollgate_rules::PathPattern;

    use super::*;

    fn route(case: PathCase, escaped_slash: EscapedSlash) -> RouteSpec {
        RouteSpec { path: PathPattern::parse("*", escaped_slash, case).unwrap(), escaped_slash, ..RouteSpec::default() }
    }

    #[test]
    fn every_spelling_of_a_path_is_one_path() {
        let plain = route(PathCase::Sensitive, EscapedSlash::Reject);
        for spelling in ["/api/orders", "//api//orders", "/api/./orders", "/api/x/../orders", "/%61pi/orders"] {
            let path = CanonicalPath::parse(spelling).unwrap();
            assert_eq!(path.for_rules(&plain).unwrap(), "/api/orders", "{spelling}");
            assert_eq!(path.forwarded(&plain), "/api/orders", "{spelling}");
        }
        for refused in
            ["/public/..;/admin", "/a/.;x/b", "/a/..%3Bx/b", "/../etc", "/a%00b", "/a%zz", "relative", "/%ff"]
        {
            assert!(CanonicalPath::parse(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn rules_see_one_plus_and_the_server_the_one_that_was_written() {
        let strip = |prefix: &str| RouteSpec { strip_prefix: Some(prefix.to_owned()), ..RouteSpec::default() };
        let plain = route(PathCase::Sensitive, EscapedSlash::Reject);
        for (raw, rules, server, stripped) in [
            ("/c++/%40me", "/c++/@me", "/c++/@me", "/@me"),
            ("/c%2b+//%40me", "/c++/@me", "/c%2B+/@me", "/@me"),
            ("/c++/*", "/c++/%2A", "/c++/*", "/*"),
            ("/c%2B%2B", "/c++", "/c%2B%2B", "/"),
        ] {
            let path = CanonicalPath::parse(raw).unwrap();
            assert_eq!((path.as_str(), &*path.for_rules(&plain).unwrap()), (rules, rules), "{raw}");
            assert_eq!(path.forwarded(&plain), server, "{raw}");
            assert_eq!(path.forwarded(&strip("/c++")), stripped, "{raw}");
        }
    }

    #[test]
    fn parameters_are_refused_removed_or_letters_and_never_choose_a_route() {
        let with = |path_parameters| RouteSpec { path_parameters, ..RouteSpec::default() };
        let (reject, strip, keep) =
            (with(PathParameters::Reject), with(PathParameters::Strip), with(PathParameters::Keep));
        for (raw, bare, whole) in [
            ("/login;a=1", "/login", "/login;a=1"),
            ("/a;x;y/%3bb/c;", "/a/%3Bb/c", "/a;x;y/%3Bb/c;"),
            ("/a/;x/b", "/a/b", "/a/;x/b"),
            ("/;x", "/", "/;x"),
            ("/c+;v=%2B", "/c+", "/c+;v=%2B"),
        ] {
            let path = CanonicalPath::parse(raw).unwrap();
            assert_eq!(path.as_str(), bare, "{raw}");
            assert_eq!(path.for_rules(&reject), Err(PathError::Parameter), "{raw}");
            assert_eq!((&*path.for_rules(&strip).unwrap(), &*path.forwarded(&strip)), (bare, bare), "{raw}");
            assert_eq!(path.forwarded(&keep), whole, "{raw}");
            assert_eq!(path.for_rules(&keep).unwrap(), canonical_path(whole, EscapedSlash::Keep).unwrap(), "{raw}");
        }
        let letter = CanonicalPath::parse("/a%3bb").unwrap();
        assert_eq!(letter.for_rules(&reject).unwrap(), "/a%3Bb", "the escape is a letter");
    }

    #[test]
    fn an_escaped_slash_is_refused_unless_the_route_keeps_it() {
        let path = CanonicalPath::parse("/api/orders/a%2fb").unwrap();
        let reject = route(PathCase::Sensitive, EscapedSlash::Reject);
        assert_eq!(path.for_rules(&reject), Err(PathError::EscapedSlash));
        let keep = route(PathCase::Sensitive, EscapedSlash::Keep);
        assert_eq!(path.for_rules(&keep).unwrap(), "/api/orders/a%2Fb");
        assert_eq!(path.forwarded(&keep), "/api/orders/a%2Fb");
    }

    #[test]
    fn rules_of_a_case_insensitive_route_see_lower_case_and_the_server_the_original() {
        let route = route(PathCase::Insensitive, EscapedSlash::Reject);
        let path = CanonicalPath::parse("/API/Orders/%C3%89").unwrap();
        assert_eq!(path.for_rules(&route).unwrap(), "/api/orders/%C3%89");
        assert_eq!(path.forwarded(&route), "/API/Orders/%C3%89");
    }

    #[test]
    fn prefixes_are_stripped_by_segments_and_added_in_front() {
        let with = |strip: Option<&str>, add: Option<&str>, keep_trailing_slash| RouteSpec {
            strip_prefix: strip.map(str::to_owned),
            add_prefix: add.map(str::to_owned),
            keep_trailing_slash,
            ..RouteSpec::default()
        };
        for (path, strip, add, keep, expected) in [
            ("/v1/orders", Some("/v1"), None, true, "/orders"),
            ("/v1", Some("/v1"), None, true, "/"),
            ("/v1/", Some("/v1"), None, true, "/"),
            ("/v10/orders", Some("/v1"), None, true, "/v10/orders"),
            ("/orders", None, Some("/v2"), true, "/v2/orders"),
            ("/v1/orders/", Some("/v1"), Some("/v2"), true, "/v2/orders/"),
            ("/v1/orders/", Some("/v1"), Some("/v2"), false, "/v2/orders"),
            ("/orders/", None, None, true, "/orders/"),
            ("/", None, None, true, "/"),
        ] {
            let forwarded = CanonicalPath::parse(path).unwrap();
            assert_eq!(forwarded.forwarded(&with(strip, add, keep)), expected, "{path}");
        }
    }
}
