//! The state of one rule: its series, and the summaries of its clients.

use tollgate_core::{Outcome, Span, Time};

use crate::closest::{CloseClient, ClosestClients};
use crate::heavy_hitters::HeavyHitters;
use crate::limited_client::LimitedClient;
use crate::rule_clients::{ClientCounts, RuleClients};
use crate::sample::{DecisionSample, RulingSample};
use crate::series::SeriesHandle;
use crate::{SeriesKey, SpaceSaving};

/// The period of a summary. Rankings cover the present one and the one before: five to ten minutes.
pub(crate) const PERIOD: Span = Span::from_secs(300);
/// Requests after which a client has a series of its own.
const SERIES_FROM: u64 = 8;

/// The state of one rule.
#[derive(Debug)]
pub(crate) struct RuleTraffic {
    pub(crate) namespace: Box<str>,
    /// Empty for a namespace as a whole.
    pub(crate) rule: Box<str>,
    pub(crate) key: SeriesKey,
    pub(crate) handle: SeriesHandle,
    pub(crate) last: Time,
    pub(crate) summaries: Option<Box<RuleSummaries>>,
}

/// The summaries of the clients of one rule.
#[derive(Debug)]
pub(crate) struct RuleSummaries {
    period: u64,
    /// By units that were charged: the present period, and the one before.
    pub(crate) consuming: [SpaceSaving<ConsumerHandles>; 2],
    /// By refusals.
    pub(crate) denied: [SpaceSaving<LimitedClient>; 2],
    pub(crate) closest: ClosestClients,
}

/// Where the series of a client continue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConsumerHandles {
    pub(crate) at_rule: SeriesHandle,
    pub(crate) in_all: SeriesHandle,
}

/// The series of a client that go on, if it is heavy enough to have some.
pub(crate) struct TrackedSeries<'a> {
    pub(crate) handles: Option<&'a mut ConsumerHandles>,
}

impl RuleSummaries {
    pub(crate) fn new(clients: usize, at: Time) -> RuleSummaries {
        RuleSummaries {
            period: at.nanos() / PERIOD.nanos(),
            consuming: [SpaceSaving::new(clients), SpaceSaving::new(clients)],
            denied: [SpaceSaving::new(clients), SpaceSaving::new(clients)],
            closest: ClosestClients::default(),
        }
    }

    /// Begins another period, if its time has come. Time that goes backwards stays in the present one.
    pub(crate) fn turn(&mut self, at: Time) {
        let period = at.nanos() / PERIOD.nanos();
        if period <= self.period {
            return;
        }
        let is_next = period == self.period + 1;
        self.period = period;
        turn(&mut self.consuming, is_next);
        turn(&mut self.denied, is_next);
    }

    /// Counts what the rule made of a client's request. Returns the series of the client, if it has some.
    pub(crate) fn record(&mut self, sample: &DecisionSample<'_>, ruling: &RulingSample) -> TrackedSeries<'_> {
        self.turn(sample.at);
        let Some(outcome) = &ruling.outcome else { return TrackedSeries { handles: None } };
        let DecisionSample { key, client, at, .. } = *sample;
        let mut refusals = 0;
        if ruling.is_refused {
            refusals = self.refused(sample, ruling, outcome);
        }
        self.closest.note(
            client,
            CloseClient {
                key,
                name: String::new(),
                used: outcome.used,
                limit: outcome.limit,
                at,
                empty_at: at.after(outcome.reset_after),
            },
        );
        let [consuming, _] = &mut self.consuming;
        // A refusal charges nothing; it counts one, so that a client that is refused only has a counter.
        let counter = consuming.add(key, client, outcome.granted.max(u64::from(ruling.is_refused)));
        let is_tracked = |count: u64| count >= SERIES_FROM || refusals >= SERIES_FROM;
        let handles =
            counter.filter(|counter| is_tracked(counter.count - counter.error)).map(|counter| &mut counter.state);
        TrackedSeries { handles }
    }

    /// Counts a refusal; returns how many the client had at least.
    fn refused(&mut self, sample: &DecisionSample<'_>, ruling: &RulingSample, outcome: &Outcome) -> u64 {
        let [denied, before] = &mut self.denied;
        let Some(counter) = denied.add(sample.key, sample.client, 1) else { return 0 };
        if counter.state.last == Time::ZERO
            && let Some(known) = before.get(sample.key)
        {
            counter.state = known.state;
        }
        counter.state.refused(sample.at, ruling, outcome);
        counter.count - counter.error
    }

    /// The state of a client that was refused in this period or the one before.
    pub(crate) fn limited(&self, key: u64) -> Option<&LimitedClient> {
        self.denied.iter().find_map(|denied| denied.get(key)).map(|counter| &counter.state)
    }

    /// The clients of both periods that a ranking of this time covers.
    pub(crate) fn clients(&self, counts: ClientCounts, now: Time) -> RuleClients {
        let period = (now.nanos() / PERIOD.nanos()).max(self.period);
        let hitters = match counts {
            ClientCounts::Refusals => heaviest(&self.denied, period - self.period),
            ClientCounts::Units => heaviest(&self.consuming, period - self.period),
        };
        let close: Vec<CloseClient> = match counts {
            ClientCounts::Refusals => self.closest.at(now).cloned().collect(),
            ClientCounts::Units => Vec::new(),
        };
        let keys = hitters.hitters().iter().map(|hitter| hitter.key).chain(close.iter().map(|close| close.key));
        let limited = keys.filter_map(|key| Some((key, *self.limited(key)?))).collect();
        let since = Time::from_nanos(period.saturating_sub(1) * PERIOD.nanos());
        RuleClients { namespace: String::new(), rule: String::new(), since, hitters, limited, close }
    }

    /// The consuming clients of both periods.
    pub(crate) fn consuming_clients(&self) -> HeavyHitters {
        heaviest(&self.consuming, 0)
    }
}

/// The sum of what two periods counted, the later of which ended so many periods ago.
fn heaviest<T: Default>(summaries: &[SpaceSaving<T>; 2], ended: u64) -> HeavyHitters {
    let [present, before] = summaries;
    match ended {
        0 => present.heavy_hitters().plus(&before.heavy_hitters()),
        1 => present.heavy_hitters(),
        _ => HeavyHitters::default(), // nothing was counted since
    }
}

fn turn<T: Default>(summaries: &mut [SpaceSaving<T>; 2], is_next: bool) {
    let [present, before] = summaries;
    std::mem::swap(present, before);
    present.clear();
    if !is_next {
        before.clear();
    }
}
