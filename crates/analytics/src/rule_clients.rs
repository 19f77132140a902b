//! The clients of one rule as one node counted them, and their sum over the nodes of a fleet.

use std::collections::{BTreeMap, HashMap};

use tollgate_core::Time;

use crate::closest::CloseClient;
use crate::heavy_hitters::HeavyHitters;
use crate::limited_client::LimitedClient;

/// What counts are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCounts {
    /// Refusals.
    Refusals,
    /// Units that were charged.
    Units,
}

/// The clients of one rule: what rankings are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleClients {
    /// The namespace.
    pub namespace: String,
    /// The rule.
    pub rule: String,
    /// The start of what is covered.
    pub since: Time,
    /// The clients with most refusals or units.
    pub hitters: HeavyHitters,
    /// Those of them that were refused, by their digests.
    pub limited: HashMap<u64, LimitedClient>,
    /// Clients that use at least half of their limit.
    pub close: Vec<CloseClient>,
}

impl RuleClients {
    /// Adds what another node counted for the same rule. The bounds of both hold for the sum: errors and floors are added.
    pub fn add(&mut self, other: RuleClients) {
        self.since = self.since.min(other.since);
        self.hitters = self.hitters.plus(&other.hitters);
        for (key, limited) in other.limited {
            self.limited.entry(key).and_modify(|known| *known = known.joined(limited)).or_insert(limited);
        }
        for close in other.close {
            match self.close.iter_mut().find(|known| known.key == close.key) {
                // Nodes share the bucket: the later look at it is right, and not the sum.
                Some(known) if known.at < close.at => *known = close,
                Some(_) => {}
                None => self.close.push(close),
            }
        }
    }

    /// Leaves so many of the heaviest clients, and of those closest to the limit.
    pub fn cut(&mut self, most: usize) {
        self.hitters = std::mem::take(&mut self.hitters).cut(most);
        self.close.sort_by_key(|close| std::cmp::Reverse(close.share()));
        self.close.truncate(most);
        let (hitters, close) = (&self.hitters, &self.close);
        let is_listed = |key: u64| {
            hitters.hitters().iter().any(|hitter| hitter.key == key) || close.iter().any(|close| close.key == key)
        };
        self.limited.retain(|key, _| is_listed(*key));
    }
}

/// The sum over nodes, by rule.
pub fn sum_of_nodes(nodes: impl IntoIterator<Item = RuleClients>) -> Vec<RuleClients> {
    let mut rules: BTreeMap<(String, String), RuleClients> = BTreeMap::new();
    for own in nodes {
        match rules.get_mut(&(own.namespace.clone(), own.rule.clone())) {
            Some(known) => known.add(own),
            None => drop(rules.insert((own.namespace.clone(), own.rule.clone()), own)),
        }
    }
    rules.into_values().collect()
}
