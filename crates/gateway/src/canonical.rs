//! One canonical path per request: routes match it, rules count by it, and the server behind gets it. A path that two
//! readers could understand differently is refused, so that no spelling of it escapes a limit.

use std::borrow::Cow;

use tollgate_rules::path::PathError;
use tollgate_rules::{EscapedSlash, PathCase, canonical_path};

use crate::spec::RouteSpec;

/// The path of a request in its one spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CanonicalPath<'a> {
    path: Cow<'a, str>,
    /// The caller's path ends with a slash, which the canonical one never does.
    has_trailing_slash: bool,
}

impl<'a> CanonicalPath<'a> {
    /// Reads the path of a target, without its query.
    pub(crate) fn parse(path: &'a str) -> Result<CanonicalPath<'a>, PathError> {
        // Whether escaped slashes are refused is up to the route, which this path has to find first.
        let canonical = canonical_path(path, EscapedSlash::Keep)?;
        // Some servers drop what stands behind `;` and resolve the dots then.
        let dots = |segment: &str| {
            matches!(segment.split([';']).next(), Some("." | ".."))
                || segment.starts_with(".%3B")
                || segment.starts_with("..%3B")
        };
        let has_dot_first = canonical.as_bytes().windows(2).any(|pair| pair == b"/.");
        if has_dot_first && canonical.split('/').any(dots) {
            return Err(PathError::AboveRoot);
        }
        Ok(CanonicalPath { has_trailing_slash: path.len() > 1 && path.ends_with('/'), path: canonical })
    }

    /// As routes match it.
    pub(crate) fn as_str(&self) -> &str {
        &self.path
    }

    /// As rules of this route see it: in lower case if the server behind ignores the case.
    pub(crate) fn for_rules(&self, route: &RouteSpec) -> Result<Cow<'_, str>, PathError> {
        if route.escaped_slash == EscapedSlash::Reject && has_escaped_slash(&self.path) {
            return Err(PathError::EscapedSlash);
        }
        Ok(match route.path.case {
            PathCase::Sensitive => Cow::Borrowed(&*self.path),
            PathCase::Insensitive => Cow::Owned(lower(&self.path)),
        })
    }

    /// As the server gets it.
    pub(crate) fn forwarded(&self, route: &RouteSpec) -> Cow<'_, str> {
        let rest = match &route.strip_prefix {
            Some(prefix) => without_prefix(&self.path, prefix, route.path.case).unwrap_or(&self.path),
            None => &self.path,
        };
        let slash = self.has_trailing_slash && route.keep_trailing_slash && !rest.ends_with('/');
        if rest.len() == self.path.len() && route.add_prefix.is_none() && !slash {
            return Cow::Borrowed(&self.path);
        }
        let mut path = route.add_prefix.clone().unwrap_or_default();
        path.push_str(if rest.is_empty() { "/" } else { rest });
        if slash && !path.ends_with('/') {
            path.push('/');
        }
        Cow::Owned(path)
    }
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

/// The path behind leading segments; `None` if it has others.
fn without_prefix<'a>(path: &'a str, prefix: &str, case: PathCase) -> Option<&'a str> {
    let (start, rest) = path.split_at_checked(prefix.len())?;
    let is_same = match case {
        PathCase::Sensitive => start == prefix,
        PathCase::Insensitive => start.eq_ignore_ascii_case(prefix),
    };
    (is_same && (rest.is_empty() || rest.starts_with('/'))).then_some(rest)
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
