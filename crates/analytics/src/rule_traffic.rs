//! The state of one rule: its series, and the summaries of its clients.

use tollgate_core::{Outcome, Span, Time, Wait};

use crate::closest::{CloseClient, ClosestClients};
use crate::heavy_hitters::HeavyHitters;
use crate::sample::{DecisionSample, RulingSample};
use crate::series::SeriesHandle;
use crate::{SeriesKey, SpaceSaving};

/// The period of a summary. Rankings cover the present one and the one before: five to ten minutes.
pub(crate) const PERIOD: Span = Span::from_secs(300);
/// Refusals of a client that are this close together are one time of being limited.
const STREAK_GAP: Span = Span::from_secs(60);
/// A client that was refused counts as limited for at least so long.
const LIMITED_MIN: Span = Span::SECOND;
/// Requests after which a client has a series of its own.
const SERIES_FROM: u64 = 8;

/// A client that a rule refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitedClient {
    /// Its first refusal of those that followed each other closely.
    pub since: Time,
    /// Its last refusal.
    pub last: Time,
    /// When the last request would have passed; `None` if never.
    pub until: Option<Time>,
    /// What it had used then.
    pub used: u64,
    /// The limit then.
    pub limit: u64,
    /// Whether the last refusal was that of a rule in shadow mode.
    pub is_shadow: bool,
}

impl LimitedClient {
    /// True if it is limited at this time.
    pub fn is_limited(&self, now: Time) -> bool {
        let held = self.last.after(LIMITED_MIN);
        now < self.until.map_or(held.after(STREAK_GAP), |until| until.max(held))
    }

    fn refused(&mut self, at: Time, ruling: &RulingSample, outcome: &Outcome) {
        if self.last == Time::ZERO || at.since(self.last) > STREAK_GAP {
            self.since = at;
        }
        (self.last, self.used, self.limit) = (at.max(self.last), outcome.used, outcome.limit);
        self.is_shadow = !ruling.is_enforced;
        self.until = match outcome.wait {
            Wait::None => Some(at),
            Wait::For(span) => Some(at.after(span)),
            Wait::Never => None,
        };
    }
}

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

    /// The start of what rankings cover.
    pub(crate) fn since(&self) -> Time {
        Time::from_nanos(self.period.saturating_sub(1) * PERIOD.nanos())
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

    /// The refused clients of both periods.
    pub(crate) fn refused_clients(&self) -> HeavyHitters {
        let [present, before] = &self.denied;
        present.heavy_hitters().plus(&before.heavy_hitters())
    }

    /// The consuming clients of both periods.
    pub(crate) fn consuming_clients(&self) -> HeavyHitters {
        let [present, before] = &self.consuming;
        present.heavy_hitters().plus(&before.heavy_hitters())
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
