//! An index of path patterns: a trie over segments. Patterns with a star before other text are stored under literals.

use std::collections::HashMap;

use smallvec::SmallVec;
use tollgate_rules::literal::{Literal, LiteralCounts};
use tollgate_rules::path::PathCase;
use tollgate_rules::route::{PathPattern, Segment, Tail, first_segment};

use super::Ids;
use super::texts::TextIndex;
use crate::fast_hash::FastMap;

/// Finds the patterns that may match a path.
#[derive(Debug, Default)]
pub(crate) struct RouteIndex {
    exact: Routes,
    /// Patterns that ignore case, in lower case.
    folded: Routes,
    /// Entries that any path matches.
    any: Vec<u32>,
}

#[derive(Debug, Default)]
struct Routes {
    root: RouteNode,
    globs: TextIndex,
}

#[derive(Debug, Default)]
struct RouteNode {
    literal: FastMap<Box<str>, RouteNode>,
    param: Option<Box<RouteNode>>,
    /// Patterns that end here.
    end: Ids,
    /// Patterns with a star from here on.
    rest: Ids,
}

impl RouteIndex {
    /// Each pattern with its entry; `None` is any path.
    pub(crate) fn new<'a>(
        patterns: impl IntoIterator<Item = (Option<&'a PathPattern>, u32)>,
        counts: &LiteralCounts<'a>,
    ) -> RouteIndex {
        let mut index = RouteIndex::default();
        let mut globs: HashMap<PathCase, Vec<(Option<Literal<'a>>, u32)>> = HashMap::new();
        for (pattern, id) in patterns {
            let Some(pattern) = pattern else {
                index.any.push(id);
                continue;
            };
            if matches!(pattern.tail, Tail::Glob(_)) {
                globs.entry(pattern.case).or_default().push((counts.path_literal(pattern), id));
                continue;
            }
            match pattern.case {
                PathCase::Sensitive => index.exact.root.insert(pattern, id),
                PathCase::Insensitive => index.folded.root.insert(pattern, id),
            }
        }
        let mut globs = |case| TextIndex::new(globs.remove(&case).unwrap_or_default());
        (index.exact.globs, index.folded.globs) = (globs(PathCase::Sensitive), globs(PathCase::Insensitive));
        index
    }

    /// Calls `hit` for every pattern that may match, perhaps more than once.
    #[inline]
    pub(crate) fn find(&self, path: &str, hit: &mut impl FnMut(u32)) {
        self.any.iter().for_each(|id| hit(*id));
        let path = if path == "/" { "" } else { path };
        self.exact.find(path, hit);
        if !self.folded.is_empty() {
            self.folded.find(LowercasePath::of(path).as_str(), hit);
        }
    }
}

impl Routes {
    fn is_empty(&self) -> bool {
        self.root.is_empty() && self.globs.is_empty()
    }

    #[inline]
    fn find(&self, path: &str, hit: &mut impl FnMut(u32)) {
        self.root.find(path, hit);
        self.globs.find(path, hit);
    }
}

impl RouteNode {
    fn insert(&mut self, pattern: &PathPattern, id: u32) {
        let mut node = self;
        for segment in &pattern.segments {
            node = match (segment, pattern.case) {
                (Segment::Literal(text), PathCase::Insensitive) => {
                    node.literal.entry(text.to_ascii_lowercase().into()).or_default()
                }
                (Segment::Literal(text), PathCase::Sensitive) => node.literal.entry(text.as_str().into()).or_default(),
                (Segment::Param(_), _) => node.param.get_or_insert_default(),
            };
        }
        match pattern.tail {
            Tail::End => node.end.push(id),
            Tail::Rest | Tail::Glob(_) => node.rest.push(id),
        }
    }

    fn is_empty(&self) -> bool {
        self.literal.is_empty() && self.param.is_none() && self.end.is_empty() && self.rest.is_empty()
    }

    /// Descends with the rest of the path: empty, or from a slash on. The longest pattern bounds the recursion.
    fn find(&self, rest: &str, hit: &mut impl FnMut(u32)) {
        self.rest.iter().for_each(|id| hit(*id));
        let Some(word) = rest.strip_prefix('/') else { return self.end.iter().for_each(|id| hit(*id)) };
        if self.literal.is_empty() && self.param.is_none() {
            return;
        }
        let (segment, after) = first_segment(word);
        if let Some(node) = self.literal.get(segment) {
            node.find(after, hit);
        }
        if let Some(node) = self.param.as_ref().filter(|_| !segment.is_empty()) {
            node.find(after, hit);
        }
    }
}

/// A path in lower case; up to 256 bytes do not allocate.
pub(crate) struct LowercasePath(SmallVec<[u8; 256]>);

impl LowercasePath {
    pub(crate) fn of(path: &str) -> LowercasePath {
        let mut bytes = SmallVec::from_slice(path.as_bytes());
        bytes.make_ascii_lowercase();
        LowercasePath(bytes)
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default() // only ASCII letters were replaced
    }
}
