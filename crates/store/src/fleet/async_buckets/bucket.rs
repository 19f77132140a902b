//! One bucket that this node decides by what it knows, and tells the store of behind.
//!
//! Between two tellings nobody hears of the others. A node that took what it sees for its own would admit what all of
//! them together may: ten nodes, ten times the rate. So it counts each of its units several times, as many as the whole
//! fleet used for each of its own lately; a node that carries all the load counts once. What it knows nothing about it
//! takes for evenly spread.

use tollgate_core::{Ask, Charge, Digest, Limit, Outcome, Owner, Source, Span, Tat, Time, Window};

use crate::fleet::mirror::Mirror;

/// A factor is kept in this many parts.
const FACTOR_ONE: u64 = 16;

/// After that many tellings without an answer, this node keeps to an even share.
const MISSED_MAX: u32 = 3;

/// What this node knows of a bucket, and has not told yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct AsyncBucket {
    limit: Limit,
    /// The same limit with room for debt: what others use meanwhile may well not fit.
    limit_with_debt: Limit,
    owner: Owner,
    identity: u32,
    /// The bucket as of the last answer, and all that happened here since, for others as well.
    state: Mirror,
    /// The bucket as of the last answer alone, and the store's time of that.
    confirmed: Option<(Mirror, Time)>,
    /// Units charged here that the store does not know of.
    pending: u64,
    /// Units on their way, and since when.
    sending: Option<(u64, Time)>,
    /// What the fleet uses for each unit of this node, in parts.
    factor: u64,
    missed: u32,
    /// Asked for since the last telling.
    active: bool,
}

/// What became of a telling.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReportResult<'a> {
    /// The store's answer, at its time.
    Answered(&'a Outcome, Time),
    /// The store has not charged it.
    Failed,
    /// It may have: it must not be sent again.
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

    /// Decides one charge; records it if `passes` says that nobody else has refused, or if it is forced.
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

    /// What `units` of this node mean for the bucket.
    fn weigh(&self, units: u64) -> u64 {
        units.saturating_mul(self.factor).div_ceil(FACTOR_ONE)
    }

    /// Undoes a charge that was not to be. Answers how many units the store has been told of already.
    pub(super) fn undo(&mut self, now: Time, units: u64, stamp: Option<Time>) -> u64 {
        self.state.refund(&self.limit_with_debt, now, self.weigh(units), stamp);
        let own = units.min(self.pending);
        self.pending -= own;
        units - own
    }

    /// Asks the store with the next telling, although there may be nothing to tell.
    pub(super) fn invalidate(&mut self) {
        self.active = true;
    }

    /// What to tell the store, if anything happened since the last time and nothing is on its way.
    pub(super) fn start_report(&mut self, now: Time, timeout: Span) -> Option<Charge> {
        if let Some((_, since)) = self.sending {
            if now.since(since) < timeout {
                return None;
            }
            self.complete_report(ReportResult::Lost, now, 1); // whoever told it is gone
        }
        if self.pending == 0 && !self.active {
            return None;
        }
        self.sending = Some((self.pending, now));
        self.active = false;
        let ask = Ask::Force(std::mem::take(&mut self.pending));
        let AsyncBucket { limit, owner, identity, .. } = *self;
        // With debt: what was admitted too much is paid back, instead of being forgiven and admitted again.
        Some(Charge { ask, owner, identity, ..Charge::new(Digest::default(), limit_with_debt(limit, 1), 0) })
    }

    /// Learns what became of a telling. Answers by how many units the bucket was found beyond its limit.
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

    /// Units that the whole fleet has used since the answer before.
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

    /// Units not told yet.
    pub(super) fn pending(&self) -> u64 {
        self.pending + self.sending.map_or(0, |(units, _)| units)
    }

    /// True if nothing would be lost by forgetting it.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.pending() == 0 && !self.active && self.state.is_fresh(now)
    }
}

fn limit_with_debt(limit: Limit, nodes: u64) -> Limit {
    limit.with_debt(limit.capacity().saturating_mul(nodes.max(1)))
}
