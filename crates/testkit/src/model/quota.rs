//! A calendar quota: a ledger of the period, its label, and what the period before left.

use super::{Fate, Model, ModelAsk, Nanos, narrow};
use crate::{LimitConfig, SpecOutcome};

/// 2^63 − 1 ns: the end of a period that never ends.
const FOREVER: Nanos = i64::MAX as Nanos;

/// The period that was written last; none if nothing ever was.
#[derive(Default)]
pub(super) struct ModelQuota(Option<Ledger>);

#[derive(Clone)]
struct Ledger {
    /// The end of the period.
    label: Nanos,
    /// Every charge and refund; what goes beyond 64 bits is not recorded.
    entries: Vec<Nanos>,
    carried: Nanos,
    /// Hands units on before this; none if it was written without rollover.
    hands_on_until: Option<Nanos>,
}

struct Numbers {
    amount: Nanos,
    overdraft: Nanos,
    rollover: Nanos,
    grant: Nanos,
    start: Nanos,
    end: Nanos,
    next_end: Nanos,
}

fn numbers(config: &LimitConfig) -> Numbers {
    let &LimitConfig::Quota { amount, overdraft, rollover, grant, start, end, next_end } = config else {
        panic!("{config:?}")
    };
    Numbers {
        amount: amount.into(),
        overdraft: overdraft.into(),
        rollover: rollover.into(),
        grant: grant.into(),
        start: start.into(),
        end: end.into(),
        next_end: next_end.into(),
    }
}

impl Numbers {
    /// Where the calendar of the charge is certain: start and end of the period that holds now.
    fn proposed(&self, now: Nanos) -> Option<(Nanos, Nanos)> {
        let periods = [(self.start, self.end), (self.end, self.next_end)];
        periods.into_iter().find(|(start, end)| (*start..*end).contains(&now))
    }

    /// The latest end of a period elsewhere.
    fn guessed(&self, now: Nanos) -> Nanos {
        let usual = now + (self.end - self.start);
        if now < self.start { usual.min(self.start) } else { usual }
    }

    /// Units that a period offers into which so many were carried.
    fn offered(&self, period: Granting, carried: Nanos) -> Nanos {
        let granted = if period == Granting::Proposed { self.grant } else { 0 };
        if self.amount == 0 { 0 } else { (self.amount + carried + granted).min(u64::MAX.into()) }
    }

    fn admitted(&self, period: Granting, carried: Nanos) -> Nanos {
        let offered = self.offered(period, carried);
        if offered == 0 { 0 } else { (offered + self.overdraft).min(u64::MAX.into()) }
    }

    /// The period of now, and the one that follows a period with this label.
    fn granting(&self, now: Nanos, label: Nanos) -> (Granting, Granting) {
        let which = |is_proposed: bool| if is_proposed { Granting::Proposed } else { Granting::Other };
        let current = self.proposed(now) == Some((self.start, self.end));
        (which(current), which(!current && label == self.start))
    }

    /// The longer period and a sixteenth, rounded up to 25 significant bits.
    fn keep(&self) -> Option<Nanos> {
        let longer = (self.end - self.start).max(self.next_end - self.end);
        let exact = (longer + longer / 16).min(FOREVER);
        let unit = (0..).map(|bits| 1 << bits).find(|unit| exact / unit < 1 << 25)?;
        (self.rollover > 0).then(|| (exact + unit - 1) / unit * unit)
    }
}

/// A grant is for the period that the node proposes, and for no other.
#[derive(Clone, Copy, PartialEq)]
enum Granting {
    Proposed,
    Other,
}

impl Ledger {
    fn used(&self) -> Nanos {
        self.entries.iter().sum()
    }

    fn runs(&self, now: Nanos) -> bool {
        self.label > now && (self.used() > 0 || self.carried > 0 || self.hands_on_until.is_some())
    }

    fn hands_on(&self, n: &Numbers) -> Nanos {
        let spent_of_own = (self.used() - self.carried).max(0);
        (n.amount - spent_of_own).clamp(0, n.amount).min(n.rollover)
    }
}

impl ModelQuota {
    /// The ledger as of now.
    fn turned(&self, n: &Numbers, now: Nanos) -> Ledger {
        let proposed = n.proposed(now);
        let running = self.0.as_ref().filter(|ledger| ledger.runs(now));
        let label = match (proposed, running) {
            (Some((_, end)), _) => end,
            (None, Some(ledger)) => ledger.label.min(n.guessed(now)),
            (None, None) => n.guessed(now),
        };
        if let Some(ledger) = running {
            return Ledger { label, carried: ledger.carried.min(n.rollover), ..ledger.clone() };
        }
        let follows = |ledger: &&Ledger| {
            proposed.is_some_and(|(start, _)| start == ledger.label)
                && ledger.hands_on_until.is_some_and(|until| now < until)
        };
        let carried = self.0.as_ref().filter(follows).map_or(0, |ledger| ledger.hands_on(n));
        Ledger { label, entries: Vec::new(), carried, hands_on_until: n.keep().map(|keep| label + keep) }
    }
}

impl Model for ModelQuota {
    fn ask(&mut self, config: &LimitConfig, now: Nanos, wish: ModelAsk) -> (SpecOutcome, u64) {
        let n = numbers(config);
        let ran = self.0.as_ref().is_some_and(|ledger| ledger.runs(now));
        let relabelled = |ledger: &Ledger, label: Nanos| {
            let shift = self.0.as_ref().filter(|_| ran).map_or(0, |before| label - before.label);
            ledger.hands_on_until.map(|until| until + shift)
        };
        let mut ledger = self.turned(&n, now);
        ledger.hands_on_until = relabelled(&ledger, ledger.label);
        let before = ledger.used();
        let admitted = n.admitted(n.granting(now, ledger.label).0, ledger.carried);
        let allowed = before + Nanos::from(wish.least()) <= admitted;
        let fate = wish.fate(allowed, narrow((admitted - before).max(0)));
        let most = Nanos::from(u64::MAX) - before;
        let recorded = match fate {
            Fate::Charged(cost) | Fate::Forced(cost) => Nanos::from(cost).min(most),
            Fate::Refused | Fate::Read => 0,
        };
        if let Fate::Charged(cost) | Fate::Forced(cost) = fate
            && cost > 0
        {
            ledger.entries.push(recorded);
            ledger.hands_on_until = n.keep().map(|keep| ledger.label + keep);
        }
        let written = fate != Fate::Read && (ran || ledger.used() > 0);
        let answer = ledger.answer(&n, now, wish, allowed, ran || written);
        if written {
            self.0 = Some(ledger);
        }
        (answer, narrow(recorded))
    }

    fn refund(&mut self, _: &LimitConfig, now: Nanos, units: u64, stamp: Option<Nanos>) -> u64 {
        let running = self.0.as_mut().filter(|ledger| ledger.runs(now));
        let Some(ledger) = running.filter(|ledger| stamp.is_none_or(|stamp| stamp == ledger.label)) else { return 0 };
        let back = Nanos::from(units).min(ledger.used());
        ledger.entries.push(-back);
        narrow(back)
    }
}

impl Ledger {
    fn answer(&self, n: &Numbers, now: Nanos, wish: ModelAsk, allowed: bool, is_stored: bool) -> SpecOutcome {
        let follows = (self.label == n.start || self.label == n.end) && is_stored && self.hands_on_until.is_some();
        let next = if follows { self.hands_on(n) } else { 0 };
        let (current, following) = n.granting(now, self.label);
        let (limit, used) = (n.offered(current, self.carried), self.used());
        let renewed = n.end != FOREVER && (self.label != FOREVER || n.next_end != FOREVER);
        let remaining = (limit - used).max(0);
        let reset_after = narrow(self.label - now);
        let retry_after = match allowed {
            true => Some(0),
            false => (renewed && Nanos::from(wish.least()) <= n.admitted(following, next)).then_some(reset_after),
        };
        SpecOutcome {
            allowed,
            limit: narrow(limit),
            remaining: narrow(remaining),
            retry_after,
            reset_after,
            next_unit: (renewed && remaining < n.offered(following, next)).then_some(reset_after),
            delay: allowed.then_some(0),
            in_use: narrow(used),
        }
    }
}
