//! A client that a rule refuses.

use tollgate_core::{Outcome, Span, Time, Wait};

use crate::sample::RulingSample;

/// Refusals of a client that are this close together are one time of being limited.
const STREAK_GAP: Span = Span::from_secs(60);
/// A client that was refused counts as limited for at least so long.
const LIMITED_MIN: Span = Span::SECOND;

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

    /// What two nodes know of it: the later refusal, since the earlier one if they belong together.
    #[must_use]
    pub fn joined(self, other: LimitedClient) -> LimitedClient {
        let (earlier, later) = if self.last <= other.last { (self, other) } else { (other, self) };
        let is_one_streak = later.since.since(earlier.last) <= STREAK_GAP;
        let since = if is_one_streak { later.since.min(earlier.since) } else { later.since };
        LimitedClient { since, ..later }
    }

    pub(crate) fn refused(&mut self, at: Time, ruling: &RulingSample, outcome: &Outcome) {
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
