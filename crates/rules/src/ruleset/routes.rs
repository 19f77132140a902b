//! A trie over path segments: literal segments are looked up, `{id}` segments walked, stars collected on the way.

use super::index::{Candidates, add};
use super::rule::RuleId;
use crate::endpoint::EndpointPattern;
use crate::path::Case;
use crate::quick::QuickMap;
use crate::route::{Segment, Tail, first_segment};

/// Rules by the paths they are for.
#[derive(Debug, Default)]
pub(super) struct Routes {
    exact: Node,
    /// Patterns that do not mind case, in lower case.
    folded: Node,
    /// Rules that name no wanted path: any path will do.
    any: Vec<RuleId>,
}

#[derive(Debug, Default)]
struct Node {
    literal: QuickMap<String, Node>,
    param: Option<Box<Node>>,
    /// Patterns that end here.
    end: Vec<RuleId>,
    /// Patterns that go on with a star from here.
    rest: Vec<RuleId>,
}

impl Routes {
    pub(super) fn file(&mut self, patterns: &[EndpointPattern], rule: RuleId) {
        if patterns.is_empty() {
            self.any.push(rule);
        }
        for pattern in patterns {
            let folds = pattern.path.case == Case::Insensitive;
            let mut node = if folds { &mut self.folded } else { &mut self.exact };
            for segment in &pattern.path.segments {
                node = match segment {
                    Segment::Literal(text) if folds => node.literal.entry(text.to_ascii_lowercase()).or_default(),
                    Segment::Literal(text) => node.literal.entry(text.clone()).or_default(),
                    Segment::Param(_) => node.param.get_or_insert_default(),
                };
            }
            match pattern.path.tail {
                Tail::End => node.end.push(rule),
                Tail::Rest | Tail::Glob(_) => node.rest.push(rule),
            }
        }
    }

    #[inline]
    pub(super) fn find(&self, path: &str, found: &mut Candidates) {
        add(found, &self.any);
        let path = if path == "/" { "" } else { path };
        self.exact.find(path, found);
        if !self.folded.is_empty() {
            self.folded.find(&path.to_ascii_lowercase(), found);
        }
    }
}

impl Node {
    fn is_empty(&self) -> bool {
        self.literal.is_empty() && self.param.is_none() && self.end.is_empty() && self.rest.is_empty()
    }

    /// Walks on with what is left of the path: empty, or from a slash on. As deep as the longest pattern, no deeper.
    fn find(&self, rest: &str, found: &mut Candidates) {
        add(found, &self.rest);
        let Some(word) = rest.strip_prefix('/') else { return add(found, &self.end) };
        if self.literal.is_empty() && self.param.is_none() {
            return;
        }
        let (segment, after) = first_segment(word);
        if let Some(node) = self.literal.get(segment) {
            node.find(after, found);
        }
        if let Some(node) = self.param.as_ref().filter(|_| !segment.is_empty()) {
            node.find(after, found);
        }
    }
}
