//! One bucket that this node decides by a copy, reporting its charges to the store later.
//!
//! Between two reports a node does not see the charges of other nodes. If each counted only its own, ten nodes would
//! admit ten times the rate. So a node multiplies its units by a factor: the units that the whole fleet used recently
//! for each of its own. A node that carries all the load has a factor of one. Without knowledge it assumes an even
//! distribution.

use tollgate_core::{Ask, Charge, Digest, Limit, Outcome, Owner, Source, Span, Tat, Time, Window};

use crate::fleet::mirror::Mirror;

/// Factors are kept as multiples of one part in this many: this value is a factor of one.
const FACTOR_ONE: u64 = 16;

/// After this many reports without an answer, the factor is that of an even distribution.
const MISSED_MAX: u32 = 3;

/// The copy of a bucket, and the charges not yet reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct AsyncBucket {
    limit: Limit,
    /// The same limit with room for debt: charges of other nodes may not fit.
    limit_with_debt: Limit,
    owner: Owner,
    identity: u32,
    /// The bucket as of the last answer, with this node's charges since, multiplied by the factor.
    state: Mirror,
    /// The bucket as of the last answer, and the store's time of that.
    confirmed: Option<(Mirror, Time)>,
    /// Units charged by this node and not reported yet.
    pending: u64,
    /// Units in a report under way, and when it was sent.
    sending: Option<(u64, Time)>,
    /// The units that the fleet uses for each unit of this node, in parts of [`FACTOR_ONE`].
    factor: u64,
    missed: u32,
    /// Used since the last report.
    active: bool,
}

/// The result of a report.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReportResult<'a> {
    /// The outcome, and the store's time of it.
    Answered(&'a Outcome, Time),
    /// The store has not charged it.
    Failed,
    /// The store may have charged it: it must not be sent again.
    Lost,
}

impl AsyncBucket {
    pub(super) fn new(charge: &Charge, nodes: u64) -> Option<AsyncBucket> {
        Some(AsyncBucket {
            limit: charge.limit,
            limit_with_debt: limit_with_debt(charge.limit, nodes),
            owner: charge.owner,
            identity: charge.identity,
            state: Mirror::unused(&charge.limit)?,
            confirmed: None,
            pending: 0,
            sending: None,
            factor: FACTOR_ONE.saturating_mul(nodes.max(1)),
            missed: 0,
            active: true,
        })
    }

    /// Decides one charge; records it if the request `passes` so far, or if it is forced.
    pub(super) fn take(&mut self, charge: &Charge, now: Time, passes: bool) -> Option<Outcome> {
        if self.limit != charge.limit {
            (self.limit, self.limit_with_debt) =
                (charge.limit, limit_with_debt(charge.limit, self.factor / FACTOR_ONE));
        }
        self.active = true;
        let allowed = self.state.admits(&self.limit_with_debt, now, &charge.ask);
        let forced = matches!(charge.ask, Ask::Force(_));
        let granted = match charge.ask.writes() && (forced || (passes && allowed)) {
            true => charge.ask.cost(),
            false => 0,
        };
        if granted > 0 {
            self.state.force(&self.limit_with_debt, now, self.weigh(granted));
            self.pending = self.pending.saturating_add(granted);
        }
        let outcome = self.state.view(&self.limit_with_debt, now, &charge.ask, allowed, granted)?;
        Some(Outcome { source: Source::Async, ..outcome })
    }

    /// `units` of this node, multiplied by the factor.
    fn weigh(&self, units: u64) -> u64 {
        units.saturating_mul(self.factor).div_ceil(FACTOR_ONE)
    }

    /// Undoes a charge. Returns how many of its units were already reported.
    pub(super) fn undo(&mut self, now: Time, units: u64, stamp: Option<Time>) -> u64 {
        self.state.refund(&self.limit_with_debt, now, self.weigh(units), stamp);
        let own = units.min(self.pending);
        self.pending -= own;
        units - own
    }

    /// Sends a report in the next round, even without charges, to refresh the copy.
    pub(super) fn invalidate(&mut self) {
        self.active = true;
    }

    /// The report to send, if the bucket was used since the last one and none is under way.
    pub(super) fn start_report(&mut self, now: Time, timeout: Span) -> Option<Charge> {
        if let Some((_, since)) = self.sending {
            if now.since(since) < timeout {
                return None;
            }
            self.complete_report(ReportResult::Lost, now, 1); // the task that sent it is gone
        }
        if self.pending == 0 && !self.active {
            return None;
        }
        self.sending = Some((self.pending, now));
        self.active = false;
        let ask = Ask::Force(std::mem::take(&mut self.pending));
        let AsyncBucket { limit, owner, identity, .. } = *self;
        // With debt: an excess is paid back instead of being forgotten and admitted again.
        Some(Charge { ask, owner, identity, ..Charge::new(Digest::default(), limit_with_debt(limit, 1), 0) })
    }

    /// Enters the result of a report. Returns the units that exceeded the limit.
    pub(super) fn complete_report(&mut self, result: ReportResult<'_>, now: Time, nodes: u64) -> u64 {
        let (sent, _) = self.sending.take().unwrap_or((0, now));
        let even = FACTOR_ONE.saturating_mul(nodes.max(1));
        match result {
            ReportResult::Answered(outcome, time) => {
                self.missed = 0;
                let Some(state) = Mirror::of(&self.limit, outcome) else { return 0 };
                let beyond = sent.saturating_sub(outcome.granted);
                let fleet = self.used_since(&state).saturating_add(beyond).max(sent);
                let seen = match sent {
                    0 => even,
                    _ => (fleet.saturating_mul(FACTOR_ONE) / sent).clamp(FACTOR_ONE, even),
                };
                self.factor = if self.confirmed.is_some() { self.factor.midpoint(seen) } else { self.factor.min(even) };
                self.confirmed = Some((state, time));
                self.state = state;
                self.state.force(&self.limit_with_debt, time, self.weigh(self.pending));
                beyond.saturating_add(outcome.used.saturating_sub(outcome.limit).min(sent))
            }
            ReportResult::Failed | ReportResult::Lost => {
                if matches!(result, ReportResult::Failed) {
                    self.pending = self.pending.saturating_add(sent);
                }
                self.missed = self.missed.saturating_add(1);
                if self.missed >= MISSED_MAX {
                    self.factor = even;
                }
                0
            }
        }
    }

    /// Units that the whole fleet has used since the previous answer.
    fn used_since(&self, state: &Mirror) -> u64 {
        match (&self.limit, self.confirmed, state) {
            (Limit::Gcra(gcra), Some((Mirror::Gcra(Tat(was)), time)), Mirror::Gcra(Tat(is))) => {
                is.since(was.max(time)).nanos() / gcra.interval().nanos().max(1)
            }
            (_, Some((Mirror::Window(was), _)), Mirror::Window(Window { end, count })) => {
                if was.end == *end {
                    count.saturating_sub(was.count)
                } else {
                    *count
                }
            }
            _ => 0,
        }
    }

    /// Units without a confirmed report.
    pub(super) fn pending(&self) -> u64 {
        self.pending + self.sending.map_or(0, |(units, _)| units)
    }

    /// True if it can be dropped without losing information.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.pending() == 0 && !self.active && self.state.is_fresh(now)
    }
}

fn limit_with_debt(limit: Limit, nodes: u64) -> Limit {
    limit.with_debt(limit.capacity().saturating_mul(nodes.max(1)))
}
