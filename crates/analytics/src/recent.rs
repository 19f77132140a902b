//! Recent decisions, in two rings: refusals, and all others.

use std::collections::VecDeque;

use tollgate_core::{Outcome, Span, Time};

use crate::rule_index::RuleIndex;
use crate::sample::{DecisionSample, RulingSample};
use crate::space_saving::shortened;

/// Decisions of each kind that are kept of one second. In a flood, those of the rest of the second are only counted.
const PER_SECOND_MAX: usize = 200;
/// Rulings that are kept of one decision.
const RULINGS_MAX: usize = 4;

/// A decision that was kept.
#[derive(Clone, Debug)]
pub struct RecentDecision {
    /// Its id.
    pub id: u64,
    /// Its place in the order in which decisions were recorded.
    pub sequence: u64,
    /// When it was made.
    pub at: Time,
    /// The namespace of the request.
    pub namespace: RuleIndex,
    /// The client.
    pub client: Box<str>,
    /// The digest of the client.
    pub key: u64,
    /// Whether the request may pass.
    pub is_allowed: bool,
    /// Units that were asked for.
    pub cost: u64,
    /// What decided.
    pub mode: &'static str,
    /// The generation of rules.
    pub generation: u64,
    /// The deciding one first.
    pub rulings: Box<[RecentRuling]>,
}

/// A ruling that was kept.
#[derive(Clone, Copy, Debug)]
pub struct RecentRuling {
    /// The rule.
    pub rule: RuleIndex,
    /// Whether a refusal denies the request.
    pub is_enforced: bool,
    /// Whether it refused.
    pub is_refused: bool,
    /// Whether it decided.
    pub is_deciding: bool,
    /// What decided.
    pub mode: &'static str,
    /// The outcome of its bucket.
    pub outcome: Option<Outcome>,
    /// Units per window of the limit that applied.
    pub requests: u64,
    /// The window of that limit.
    pub window: Span,
    /// Since when the rule refuses the client.
    pub limited_since: Option<Time>,
}

impl RecentDecision {
    /// True if a rule refused, or would have.
    pub fn is_refused(&self) -> bool {
        !self.is_allowed || self.rulings.iter().any(|ruling| ruling.is_refused)
    }

    /// Its place in the order of decisions: by time, and by the order of recording where many have the same time.
    pub const fn place(&self) -> (Time, u64) {
        (self.at, self.sequence)
    }

    /// The ruling that is shown first: the deciding one.
    pub fn first(&self) -> Option<&RecentRuling> {
        self.rulings.first()
    }
}

/// Which decisions are wanted.
#[derive(Clone, Debug, Default)]
pub struct DecisionFilter {
    /// Of clients with one of these digests; `None` for all.
    pub keys: Option<Vec<u64>>,
    /// That one of these rules took part in; `None` for all.
    pub rules: Option<Vec<RuleIndex>>,
    /// Of these namespaces; `None` for all.
    pub namespaces: Option<Vec<RuleIndex>>,
    /// Only those that were allowed, or only the others.
    pub is_allowed: Option<bool>,
    /// Before this [place](RecentDecision::place).
    pub before: Option<(Time, u64)>,
}

impl DecisionFilter {
    /// True if it is wanted.
    pub fn admits(&self, decision: &RecentDecision) -> bool {
        let is_of = |rules: &Vec<RuleIndex>| decision.rulings.iter().any(|ruling| rules.contains(&ruling.rule));
        self.keys.as_ref().is_none_or(|keys| keys.contains(&decision.key))
            && self.rules.as_ref().is_none_or(is_of)
            && self.namespaces.as_ref().is_none_or(|names| names.contains(&decision.namespace))
            && self.is_allowed.is_none_or(|is_allowed| is_allowed == decision.is_allowed)
            && self.before.is_none_or(|before| decision.place() < before)
    }
}

/// The last decisions.
#[derive(Debug)]
pub struct RecentDecisions {
    refused: DecisionRing,
    others: DecisionRing,
    recorded: u64,
}

#[derive(Debug)]
struct DecisionRing {
    kept: VecDeque<RecentDecision>,
    most: usize,
    second: u64,
    in_second: usize,
}

impl RecentDecisions {
    /// Two rings of at most so many decisions.
    pub fn new(most: usize) -> RecentDecisions {
        let ring = || DecisionRing { kept: VecDeque::new(), most: most.max(1), second: 0, in_second: 0 };
        RecentDecisions { refused: ring(), others: ring(), recorded: 0 }
    }

    /// Keeps a decision, if there is room for it in its second. `limited_since` says since when a rule refuses the client.
    pub(crate) fn record(
        &mut self,
        sample: &DecisionSample<'_>,
        namespace: RuleIndex,
        limited_since: impl Fn(&RulingSample) -> Option<Time>,
    ) -> Option<&RecentDecision> {
        let is_refused = !sample.is_allowed || sample.rulings.iter().any(|ruling| ruling.is_refused);
        let ring = if is_refused { &mut self.refused } else { &mut self.others };
        if !ring.has_room(sample.at) {
            return None;
        }
        let deciding = sample.deciding;
        let mut order: Vec<usize> = (0..sample.rulings.len()).collect();
        order.sort_by_key(|place| {
            (Some(*place) != deciding, sample.rulings.get(*place).is_none_or(|own| !own.is_refused))
        });
        let ruling = |place: usize| {
            let own = sample.rulings.get(place)?;
            let RulingSample { rule, is_enforced, is_refused, mode, outcome, requests, window } = *own;
            Some(RecentRuling {
                rule,
                is_enforced,
                is_refused,
                is_deciding: Some(place) == deciding,
                mode,
                outcome,
                requests,
                window,
                limited_since: if is_refused { limited_since(own) } else { None },
            })
        };
        let DecisionSample { id, at, key, is_allowed, cost, mode, generation, .. } = *sample;
        self.recorded += 1;
        ring.push(RecentDecision {
            id,
            sequence: self.recorded,
            at,
            namespace,
            client: shortened(sample.client).into(),
            key,
            is_allowed,
            cost,
            mode,
            generation,
            rulings: order.into_iter().take(RULINGS_MAX).filter_map(ruling).collect(),
        })
    }

    /// The decisions that are wanted, the last first. Buffers are taken in turn, so the rings are not in the order of time.
    pub fn find(&self, filter: &DecisionFilter, most: usize) -> Vec<&RecentDecision> {
        let mut found: Vec<&RecentDecision> = self.all().filter(|kept| filter.admits(kept)).collect();
        found.sort_by_key(|decision| std::cmp::Reverse(decision.place()));
        found.truncate(most);
        found
    }

    /// How many decisions were recorded so far: the sequence of the last one.
    pub const fn recorded(&self) -> u64 {
        self.recorded
    }

    /// The refusals that were recorded after this sequence, at most so many of the last ones.
    pub fn refused_after(&self, sequence: u64, most: usize) -> Vec<&RecentDecision> {
        let newer = self.refused.kept.iter().rev().take_while(|kept| kept.sequence > sequence);
        let mut newer: Vec<&RecentDecision> = newer.take(most).collect();
        newer.reverse();
        newer
    }

    /// All decisions that are kept.
    pub fn all(&self) -> impl Iterator<Item = &RecentDecision> {
        self.refused.kept.iter().chain(&self.others.kept)
    }

    /// The decision with an id; the last step of a reservation.
    pub fn get(&self, id: u64) -> Option<&RecentDecision> {
        let all = self.refused.kept.iter().rev().chain(self.others.kept.iter().rev());
        all.into_iter().find(|decision| decision.id == id)
    }
}

impl DecisionRing {
    fn has_room(&mut self, at: Time) -> bool {
        let second = at.nanos() / Span::SECOND.nanos();
        if second != self.second {
            (self.second, self.in_second) = (second, 0);
        }
        self.in_second += 1;
        self.in_second <= PER_SECOND_MAX
    }

    fn push(&mut self, decision: RecentDecision) -> Option<&RecentDecision> {
        if self.kept.len() >= self.most {
            self.kept.pop_front();
        }
        self.kept.push_back(decision);
        self.kept.back()
    }
}
