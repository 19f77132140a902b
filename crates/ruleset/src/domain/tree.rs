//! Finds the node of a domain's tree for the entries of a descriptor.
//!
//! Each entry selects the most specific node of its level: the exact key and value, else the first pattern of the file
//! that matches, else the key alone. There is no backtracking: a node without a matching child ends the search, as in
//! envoyproxy/ratelimit.

use tollgate_rules::envoy::EnvoyDescriptor;
use tollgate_rules::pattern::Pattern;

use super::wildcard::{NodeId, WildcardNode, WildcardNodes};
use crate::fast_hash::FastMap;
use crate::rule::RuleId;

/// All nodes of a domain.
#[derive(Debug, Default)]
pub(super) struct DescriptorTree {
    nodes: Vec<TreeNode>,
    root: Branch,
}

#[derive(Debug)]
struct TreeNode {
    rule: Option<RuleId>,
    /// All values that match share one counter.
    shared: bool,
    below: Branch,
}

/// One level below a node.
#[derive(Debug, Default)]
struct Branch {
    keys: FastMap<String, KeyNodes>,
    /// Nodes whose key is a pattern.
    patterns: WildcardNodes,
}

/// The nodes of one key.
#[derive(Debug, Default)]
struct KeyNodes {
    exact: FastMap<String, NodeId>,
    patterns: WildcardNodes,
    bare: Option<NodeId>,
}

/// The rule of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeMatch {
    pub(super) rule: RuleId,
    /// Entries whose values share a counter: one bit each, the first entry's the lowest.
    pub(super) shared: u64,
}

impl DescriptorTree {
    /// The tree of `descriptors`; `rule` returns the rule of a node, given its path.
    pub(super) fn of<'a>(
        descriptors: &'a [EnvoyDescriptor],
        rule: &mut impl FnMut(&[&'a EnvoyDescriptor]) -> Option<RuleId>,
    ) -> DescriptorTree {
        let mut tree = DescriptorTree::default();
        tree.root = tree.branch(descriptors, &mut Vec::new(), rule);
        tree
    }

    fn branch<'a>(
        &mut self,
        level: &'a [EnvoyDescriptor],
        path: &mut Vec<&'a EnvoyDescriptor>,
        rule: &mut impl FnMut(&[&'a EnvoyDescriptor]) -> Option<RuleId>,
    ) -> Branch {
        let mut branch = Branch::default();
        for descriptor in level {
            path.push(descriptor);
            let (rule_here, shared) = (rule(path), descriptor.share_threshold);
            // Numbered before its children: numbers of one level are in file order.
            let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
            self.nodes.push(TreeNode { rule: rule_here, shared, below: Branch::default() });
            branch.add(descriptor, id);
            let below = self.branch(&descriptor.descriptors, path, rule);
            if let Some(node) = self.nodes.get_mut(id.0 as usize) {
                node.below = below;
            }
            path.pop();
        }
        branch.finish();
        branch
    }

    /// The rule of the last entry's node, if it has one. `shared` has 64 bits; a tree is not as deep.
    pub(super) fn find(&self, entries: &[(&str, &str)]) -> Option<TreeMatch> {
        let (mut branch, mut shared, mut rule) = (&self.root, 0, None);
        for (number, (key, value)) in entries.iter().enumerate() {
            let node = self.nodes.get(branch.find(key, value)?.0 as usize)?;
            shared |= u64::from(node.shared) << (number & 63);
            (branch, rule) = (&node.below, node.rule);
        }
        rule.map(|rule| TreeMatch { rule, shared })
    }
}

impl Branch {
    fn add(&mut self, descriptor: &EnvoyDescriptor, node: NodeId) {
        let EnvoyDescriptor { key, value, .. } = descriptor;
        let pattern = |text: &str| Pattern::parse(text).unwrap_or_else(|_| Pattern::Exact(text.to_owned()));
        let wildcard =
            || WildcardNode { key: pattern(key), value: value.as_deref().map_or(Pattern::Any, pattern), node };
        let values = self.keys.entry(key.clone()).or_default();
        match value {
            Some(text) => {
                values.exact.insert(text.clone(), node);
            }
            None => values.bare = Some(node),
        }
        if key.contains('*') {
            self.patterns.push(wildcard());
        } else if descriptor.is_pattern() {
            values.patterns.push(wildcard());
        }
    }

    fn finish(&mut self) {
        self.patterns.finish();
        self.keys.values_mut().for_each(|values| values.patterns.finish());
    }

    #[inline]
    fn find(&self, key: &str, value: &str) -> Option<NodeId> {
        let values = self.keys.get(key);
        if let exact @ Some(_) = values.and_then(|values| values.exact.get(value)) {
            return exact.copied();
        }
        // Numbers of one level are in file order.
        let own = values.and_then(|values| values.patterns.find(key, value));
        let other = self.patterns.find(key, value);
        let first = own.into_iter().chain(other).min_by_key(|node| node.0);
        first.or_else(|| values.and_then(|values| values.bare))
    }
}
