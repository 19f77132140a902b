//! The patterns of one condition: a short list is scanned, a long one is indexed.

use tollgate_rules::endpoint::{EndpointMatcher, EndpointPattern};
use tollgate_rules::literal::LiteralCounts;
use tollgate_rules::pattern::{Matcher, Pattern};

use super::networks::NetworkIndex;
use super::routes::RouteIndex;
use super::texts::TextIndex;

/// Longest list that is scanned.
const SHORT: usize = 8;

/// [`Matcher`] with its long lists indexed.
#[derive(Debug)]
pub(crate) struct IndexedMatcher {
    pub(crate) matcher: Matcher,
    any: Option<ListIndex>,
    none: Option<ListIndex>,
}

#[derive(Debug)]
enum ListIndex {
    Texts(Box<TextIndex>),
    Networks(Box<NetworkIndex>),
}

impl IndexedMatcher {
    pub(crate) fn new(matcher: Matcher) -> IndexedMatcher {
        let (any, none) = (ListIndex::of(&matcher.any), ListIndex::of(&matcher.none));
        IndexedMatcher { matcher, any, none }
    }

    /// As [`Matcher::matches`]. Never allocates.
    #[inline]
    pub(crate) fn matches(&self, value: &str) -> bool {
        let Matcher { any, none } = &self.matcher;
        (any.is_empty() || one_matches(any, self.any.as_ref(), value)) && !one_matches(none, self.none.as_ref(), value)
    }

    /// Whether an address matches.
    pub(crate) fn matches_address(&self, bits: u128) -> bool {
        let Matcher { any, none } = &self.matcher;
        (any.is_empty() || one_holds(any, self.any.as_ref(), bits)) && !one_holds(none, self.none.as_ref(), bits)
    }
}

impl ListIndex {
    fn of(patterns: &[Pattern]) -> Option<ListIndex> {
        if patterns.len() <= SHORT {
            return None;
        }
        let numbered = patterns.iter().zip(0..);
        if patterns.iter().any(|pattern| matches!(pattern, Pattern::Cidr(_))) {
            let network = |(pattern, id): (&Pattern, u32)| match pattern {
                Pattern::Cidr(cidr) => (Some(*cidr), id),
                _ => (None, id),
            };
            return Some(ListIndex::Networks(Box::new(NetworkIndex::new(numbered.map(network)))));
        }
        let counts = LiteralCounts::of_list(patterns);
        let texts = numbered.map(|(pattern, id)| (counts.list_literal(pattern), id));
        Some(ListIndex::Texts(Box::new(TextIndex::new(texts))))
    }
}

#[inline]
fn one_matches(patterns: &[Pattern], index: Option<&ListIndex>, value: &str) -> bool {
    let Some(ListIndex::Texts(index)) = index else { return patterns.iter().any(|pattern| pattern.matches(value)) };
    let mut found = false;
    index.find(value, &mut |id| {
        found = found || patterns.get(id as usize).is_some_and(|pattern| pattern.matches(value));
    });
    found
}

fn one_holds(patterns: &[Pattern], index: Option<&ListIndex>, bits: u128) -> bool {
    let holds = |pattern: &Pattern| match pattern {
        Pattern::Cidr(cidr) => cidr.matches(bits),
        Pattern::Any => true,
        _ => false,
    };
    let Some(ListIndex::Networks(index)) = index else { return patterns.iter().any(holds) };
    let mut found = false;
    index.find(bits, &mut |id| found = found || patterns.get(id as usize).is_some_and(holds));
    found
}

/// [`EndpointMatcher`] with its long lists indexed.
#[derive(Debug)]
pub(crate) struct IndexedEndpoint {
    pub(crate) matcher: EndpointMatcher,
    any: Option<Box<RouteIndex>>,
    none: Option<Box<RouteIndex>>,
}

impl IndexedEndpoint {
    pub(crate) fn new(matcher: EndpointMatcher) -> IndexedEndpoint {
        let index = |patterns: &[EndpointPattern]| {
            (patterns.len() > SHORT).then(|| {
                let paths = || patterns.iter().map(|pattern| &pattern.path);
                Box::new(RouteIndex::new(paths().map(Some).zip(0..), &LiteralCounts::of_paths(paths())))
            })
        };
        let (any, none) = (index(&matcher.any), index(&matcher.none));
        IndexedEndpoint { matcher, any, none }
    }

    /// As [`EndpointMatcher::matches`]. Never allocates.
    #[inline]
    pub(crate) fn matches(&self, method: Option<&str>, path: &str) -> bool {
        if self.any.is_none() && self.none.is_none() {
            return self.matcher.matches(method, path);
        }
        let wanted = self.matcher.any.is_empty() || self.pattern_of(method, path).is_some();
        let unwanted = |pattern: &EndpointPattern| pattern.is_unwanted(method, path);
        wanted && first(&self.matcher.none, self.none.as_deref(), path, unwanted).is_none()
    }

    /// As [`EndpointMatcher::pattern_of`].
    pub(crate) fn pattern_of(&self, method: Option<&str>, path: &str) -> Option<&EndpointPattern> {
        first(&self.matcher.any, self.any.as_deref(), path, |pattern| pattern.matches(method, path))
    }
}

/// The first pattern of the list that matches.
#[inline]
fn first<'a>(
    patterns: &'a [EndpointPattern],
    index: Option<&RouteIndex>,
    path: &str,
    matches: impl Fn(&EndpointPattern) -> bool,
) -> Option<&'a EndpointPattern> {
    let Some(index) = index else { return patterns.iter().find(|pattern| matches(pattern)) };
    let mut least: Option<u32> = None;
    index.find(path, &mut |id| {
        if least.is_none_or(|least| id < least) && patterns.get(id as usize).is_some_and(&matches) {
            least = Some(id);
        }
    });
    patterns.get(least? as usize)
}
