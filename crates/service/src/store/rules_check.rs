//! Compares the rules of this node with those of the other nodes that share the store.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tollgate_core::{Clock, Time};
use tollgate_ruleset::RuleSet;
use tollgate_store_redis::{NodeRules, RedisStore};

/// A fingerprint of everything that decides.
pub fn fingerprint(rules: &RuleSet) -> String {
    let [low, high] = rules.fingerprint().0;
    format!("{low:016x}{high:016x}")
}

/// Compares rules with those of the other nodes.
#[derive(Debug, Default)]
pub struct RulesCheck(Mutex<RulesComparison>);

#[derive(Debug, Default)]
struct RulesComparison {
    /// Generation and fingerprint that were published last.
    published: Option<(u64, String)>,
    next: Time,
    /// Nodes that differed at the last comparison (`seen`) and at the one before too (`differ`): a change takes time to
    /// reach all nodes.
    seen: BTreeSet<String>,
    differ: BTreeSet<String>,
    /// Most nodes have other rules than this one.
    is_minority: bool,
}

/// Nodes that decide by other rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DifferingNodes {
    /// Their names.
    pub nodes: Vec<String>,
    /// True if this node is the one that differs: more nodes have one other set of rules than have its own.
    pub is_minority: bool,
}

impl RulesCheck {
    /// Publishes the fingerprint of this generation and compares; call it every second. While the store is away, the
    /// last result holds.
    pub async fn compare(
        &self,
        store: &RedisStore,
        clock: &dyn Clock,
        generation: u64,
        fingerprint: impl FnOnce() -> String,
    ) -> DifferingNodes {
        let now = clock.now();
        let (published, next) = {
            let comparison = self.0.lock();
            (comparison.published.clone(), comparison.next)
        };
        if now < next {
            return self.differing();
        }
        let before = published.as_ref().map(|(_, fingerprint)| fingerprint.clone());
        let own = match published {
            Some((same, known)) if same == generation => known,
            _ => fingerprint(),
        };
        if let Ok(all) = store.publish_rules(&own, before.as_deref()).await {
            let mut comparison = self.0.lock();
            comparison.update(&own, &all);
            comparison.published = Some((generation, own));
            comparison.next = now.after(RedisStore::RULES_EVERY);
        }
        self.differing()
    }

    /// The result of the last comparison.
    pub fn differing(&self) -> DifferingNodes {
        let comparison = self.0.lock();
        DifferingNodes { nodes: comparison.differ.iter().cloned().collect(), is_minority: comparison.is_minority }
    }
}

impl RulesComparison {
    fn update(&mut self, own: &str, all: &[NodeRules]) {
        let others = all.iter().filter(|node| node.fingerprint != own);
        let seen: BTreeSet<String> = others.clone().map(|node| node.node.clone()).collect();
        self.differ = seen.intersection(&self.seen).cloned().collect();
        self.seen = seen;
        let like_own = all.iter().filter(|node| node.fingerprint == own).count();
        let alike = |other: &NodeRules| all.iter().filter(|node| node.fingerprint == other.fingerprint).count();
        self.is_minority = others.map(alike).max().is_some_and(|most| most > like_own);
    }
}

#[cfg(test)]
mod tests {
    use tollgate_ruleset::CompileOptions;

    use super::*;

    fn rules(yaml: &str) -> RuleSet {
        let file = tollgate_rules::read("rules.yaml", yaml).unwrap();
        RuleSet::compile(&[file], &CompileOptions::reproducible()).unwrap()
    }

    #[test]
    fn a_fingerprint_covers_what_decides_and_not_its_spelling() {
        let one = "rules:\n  - { name: a, limit: { requests: 1, window: 1s } }\n  - { name: b, limit: { requests: 2, window: 1m } }\n";
        let same = "# words\nrules:\n\n  - name: b\n    description: more words\n    limit: { requests: 2, window: 60s }\n  - { name: a, limit: { requests: 1, window: 1s } }\n";
        let other = one.replace("requests: 2", "requests: 3");
        assert_eq!(fingerprint(&rules(one)), fingerprint(&rules(same)));
        assert_ne!(fingerprint(&rules(one)), fingerprint(&rules(&other)));
        for setting in ["normalize: nfc", "ipv6_prefix: 48", "escaped_slash: keep"] {
            let read_otherwise = format!("{setting}\n{one}");
            assert_ne!(fingerprint(&rules(one)), fingerprint(&rules(&read_otherwise)), "{setting}");
        }
    }

    #[test]
    fn a_node_that_differs_twice_in_a_row_is_named() {
        let node = |node: &str, fingerprint: &str| NodeRules { node: node.into(), fingerprint: fingerprint.into() };
        let all = [node("a", "1"), node("b", "2"), node("c", "2")];
        let mut comparison = RulesComparison::default();
        comparison.update("2", &all);
        assert!(comparison.differ.is_empty(), "it may be about to follow");
        comparison.update("2", &all);
        assert_eq!(comparison.differ.iter().collect::<Vec<_>>(), ["a"]);
        assert!(!comparison.is_minority);
        comparison.update("1", &all);
        assert!(comparison.is_minority);
        comparison.update("2", &all[1..]);
        assert!(comparison.differ.is_empty());
    }
}
