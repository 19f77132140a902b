//! Rankings of clients.

use tollgate_core::Time;

use crate::limited_client::LimitedClient;
use crate::rule_clients::{ClientCounts, RuleClients};

/// By what clients are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// By refusals.
    Denied,
    /// By refusals of rules in shadow mode.
    ShadowDenied,
    /// By units that were charged.
    Consuming,
    /// Those that were refused, the last to begin first.
    NewlyDenied,
    /// By the share of the limit that is used.
    Closest,
}

impl Ranking {
    /// The counts that it is made of.
    pub const fn counts(self) -> ClientCounts {
        match self {
            Ranking::Consuming => ClientCounts::Units,
            Ranking::Denied | Ranking::ShadowDenied | Ranking::NewlyDenied | Ranking::Closest => ClientCounts::Refusals,
        }
    }
}

/// A client in a ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedClient {
    /// The namespace.
    pub namespace: String,
    /// The rule.
    pub rule: String,
    /// The client.
    pub client: String,
    /// The digest of the client.
    pub key: u64,
    /// Refusals or units, at most; of [`Ranking::Closest`] the units in use.
    pub count: u64,
    /// By how much the count can be too high.
    pub error: u64,
    /// Units in use when it was last seen, and the limit.
    pub usage: Option<(u64, u64)>,
    /// Since when and until when it is refused.
    pub limited: Option<LimitedClient>,
    /// When it was last seen.
    pub at: Option<Time>,
}

impl RankedClient {
    /// Per mille of the limit in use.
    pub fn share(&self) -> Option<u64> {
        let (used, limit) = self.usage.filter(|(_, limit)| *limit > 0)?;
        (u128::from(used) * 1000 / u128::from(limit)).try_into().ok()
    }
}

/// A ranking, the first ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopClients {
    /// The clients, the first of the ranking first.
    pub clients: Vec<RankedClient>,
    /// A client that is missing has at most so many at one rule.
    pub missing_at_most: u64,
    /// The start of the period that is covered, if a rule was asked anything.
    pub since: Option<Time>,
}

impl TopClients {
    /// The first clients of a ranking, over these rules.
    pub fn of(rules: &[RuleClients], by: Ranking, now: Time, most: usize) -> TopClients {
        let mut top = TopClients::default();
        rules.iter().for_each(|clients| top.add(clients, by, now));
        top.finish(by, most)
    }

    /// Adds the clients of one rule.
    fn add(&mut self, clients: &RuleClients, by: Ranking, now: Time) {
        let RuleClients { namespace, rule, since, .. } = clients;
        self.since = Some(self.since.map_or(*since, |known| known.min(*since)));
        match by {
            Ranking::Closest => self.clients.extend(clients.close.iter().map(|close| RankedClient {
                namespace: namespace.clone(),
                rule: rule.clone(),
                client: close.name.clone(),
                key: close.key,
                count: close.used,
                error: 0,
                usage: Some((close.used, close.limit)),
                limited: clients.limited.get(&close.key).copied().filter(|limited| limited.is_limited(now)),
                at: Some(close.at),
            })),
            Ranking::Denied | Ranking::ShadowDenied | Ranking::NewlyDenied | Ranking::Consuming => {
                self.add_hitters(clients, by);
            }
        }
    }

    fn add_hitters(&mut self, clients: &RuleClients, by: Ranking) {
        self.missing_at_most = self.missing_at_most.max(clients.hitters.floor());
        for hitter in clients.hitters.hitters() {
            let limited = clients.limited.get(&hitter.key).copied();
            let is_shadow = limited.is_some_and(|limited| limited.is_shadow);
            let is_wanted = match by {
                Ranking::Denied | Ranking::NewlyDenied => !is_shadow,
                Ranking::ShadowDenied => is_shadow,
                Ranking::Consuming | Ranking::Closest => hitter.count > hitter.error,
            };
            if is_wanted {
                self.clients.push(RankedClient {
                    namespace: clients.namespace.clone(),
                    rule: clients.rule.clone(),
                    client: hitter.name.clone(),
                    key: hitter.key,
                    count: hitter.count,
                    error: hitter.error,
                    usage: limited.map(|limited| (limited.used, limited.limit)),
                    limited,
                    at: limited.map(|limited| limited.last),
                });
            }
        }
    }

    /// Sorts, and leaves the first ones.
    fn finish(mut self, by: Ranking, most: usize) -> TopClients {
        let since = |client: &RankedClient| client.limited.map_or(Time::ZERO, |limited| limited.since);
        self.clients.sort_by(|a, b| {
            let order = match by {
                Ranking::Closest => b.share().cmp(&a.share()),
                Ranking::NewlyDenied => since(b).cmp(&since(a)),
                Ranking::Denied | Ranking::ShadowDenied | Ranking::Consuming => b.count.cmp(&a.count),
            };
            order
                .then_with(|| a.client.cmp(&b.client))
                .then_with(|| (&a.namespace, &a.rule).cmp(&(&b.namespace, &b.rule)))
        });
        self.clients.truncate(most);
        self
    }
}
