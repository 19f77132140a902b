//! Nodes of one level whose key or value is a pattern; the first one of the file that matches is found.
//!
//! A few are scanned. Many are indexed under the rarest literal of their key or value (see [`crate::lookup`]), so that
//! an entry is compared only with those that contain it.

use tollgate_rules::literal::{IndexChoice, LiteralCounts};
use tollgate_rules::pattern::{Matcher, Pattern};
use tollgate_rules::spec::MatchSpec;

use crate::lookup::TextIndex;

/// Up to this number, a scan is faster than the index.
const SCANNED_MAX: usize = 8;

/// The number of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeId(pub(super) u32);

/// A node with a pattern.
#[derive(Debug)]
pub(super) struct WildcardNode {
    pub(super) key: Pattern,
    pub(super) value: Pattern,
    pub(super) node: NodeId,
}

/// The pattern nodes of one level, or of one of its keys, in file order.
#[derive(Debug, Default)]
pub(super) struct WildcardNodes {
    all: Vec<WildcardNode>,
    index: Option<Box<WildcardIndex>>,
}

#[derive(Debug)]
struct WildcardIndex {
    by_key: TextIndex,
    by_value: TextIndex,
}

impl WildcardNodes {
    pub(super) fn push(&mut self, wildcard: WildcardNode) {
        self.all.push(wildcard);
    }

    /// Builds the index. Call it after the last [`push`](Self::push).
    pub(super) fn finish(&mut self) {
        if self.all.len() > SCANNED_MAX {
            self.index = Some(Box::new(WildcardIndex::of(&self.all)));
        }
    }

    /// The first node whose patterns match.
    #[inline]
    pub(super) fn find(&self, key: &str, value: &str) -> Option<NodeId> {
        let Some(index) = &self.index else {
            return self.all.iter().find(|wildcard| wildcard.matches(key, value)).map(|wildcard| wildcard.node);
        };
        let mut first: Option<(u32, NodeId)> = None;
        index.candidates(key, value, &mut |number| {
            if first.is_some_and(|(before, _)| before <= number) {
                return;
            }
            if let Some(wildcard) = self.all.get(number as usize).filter(|wildcard| wildcard.matches(key, value)) {
                first = Some((number, wildcard.node));
            }
        });
        first.map(|(_, node)| node)
    }
}

impl WildcardNode {
    fn matches(&self, key: &str, value: &str) -> bool {
        self.key.matches(key) && self.value.matches(value)
    }
}

const KEY: &str = "key";
const VALUE: &str = "value";

impl WildcardIndex {
    fn of(all: &[WildcardNode]) -> WildcardIndex {
        let only = |pattern: &Pattern| Matcher { any: vec![pattern.clone()], none: Vec::new() };
        let conditions: Vec<MatchSpec> = all
            .iter()
            .map(|wildcard| vec![(VALUE.to_owned(), only(&wildcard.value)), (KEY.to_owned(), only(&wildcard.key))])
            .map(|attributes| MatchSpec { attributes, endpoint: None })
            .collect();
        let counts = LiteralCounts::of(&conditions);
        let (mut by_key, mut by_value) = (Vec::new(), Vec::new());
        for (condition, index) in conditions.iter().zip(0..) {
            let IndexChoice::Attribute(name, matcher) = counts.choose(condition) else { continue };
            let literal = matcher.any.first().and_then(|pattern| counts.literal(name, pattern));
            if name == KEY { &mut by_key } else { &mut by_value }.push((literal, index));
        }
        WildcardIndex { by_key: TextIndex::new(by_key), by_value: TextIndex::new(by_value) }
    }

    /// Calls `hit` with the index of each node that may match; may repeat.
    #[inline]
    fn candidates(&self, key: &str, value: &str, hit: &mut impl FnMut(u32)) {
        self.by_key.find(key, hit);
        self.by_value.find(value, hit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wildcards(patterns: impl Iterator<Item = (String, String)>) -> WildcardNodes {
        let mut wildcards = WildcardNodes::default();
        for ((key, value), node) in patterns.zip(0..) {
            let pattern = |text: &str| Pattern::parse(text).unwrap();
            wildcards.push(WildcardNode { key: pattern(&key), value: pattern(&value), node: NodeId(node) });
        }
        wildcards.finish();
        wildcards
    }

    /// The number of comparisons, the result of the index, and the result of a scan.
    fn look(wildcards: &WildcardNodes, key: &str, value: &str) -> (usize, Option<u32>, Option<u32>) {
        let mut compared = 0;
        wildcards.index.as_ref().unwrap().candidates(key, value, &mut |_| compared += 1);
        let scanned =
            wildcards.all.iter().find(|wildcard| wildcard.matches(key, value)).map(|wildcard| wildcard.node.0);
        (compared, wildcards.find(key, value).map(|node| node.0), scanned)
    }

    #[test]
    fn an_entry_is_compared_with_the_patterns_that_share_its_text() {
        const MANY: usize = 10_000;
        let kinds: [fn(usize) -> (String, String); 4] = [
            |n| ("org".into(), format!("*-{n:05}")),
            |n| ("org".into(), format!("{n:05}-*")),
            |n| ("org".into(), format!("a*-{n:05}-*z")),
            |n| (format!("*_{n:05}"), "*".into()),
        ];
        for kind in kinds {
            let wildcards = wildcards((0..MANY).map(kind));
            let (key, value) = kind(4_711);
            let (compared, found, scanned) = look(&wildcards, &key.replace('*', "x"), &value.replace('*', "x"));
            assert_eq!((found, scanned), (Some(4_711), Some(4_711)));
            assert!(compared <= 2, "{compared} of {MANY} for {key} {value}");
        }
    }

    #[test]
    fn the_first_of_the_file_is_found_as_by_a_scan() {
        let texts = ["*", "a*", "*a", "*b*", "a*b", "*ab*c", "ab*", "*bc", "c*a"];
        let patterns = texts.iter().flat_map(|key| texts.iter().rev().map(|value| ((*key).into(), (*value).into())));
        let all: Vec<(String, String)> = patterns.collect();
        // With and without patterns that match everything.
        for skip in [0, 9, 27] {
            let wildcards = wildcards(all.iter().skip(skip).rev().step_by(2).cloned());
            for key in ["", "a", "ab", "abc", "cba", "xbx", "xx"] {
                for value in ["a", "b", "abc", "cca", "x", ""] {
                    let (_, found, scanned) = look(&wildcards, key, value);
                    assert_eq!(found, scanned, "{key} {value}");
                }
            }
        }
    }
}
