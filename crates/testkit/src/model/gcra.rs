//! SPEC 5.1.

use super::{Fate, Model, ModelAsk, Nanos, narrow};
use crate::{LimitConfig, SpecOutcome};

#[derive(Default)]
pub(super) struct ModelGcra(Option<Nanos>);

struct Numbers {
    interval: Nanos,
    burst: Nanos,
    /// `T · (B + D)`
    bound: Nanos,
    clamp: bool,
    blocks: bool,
}

fn numbers(config: &LimitConfig) -> Numbers {
    let &LimitConfig::Gcra { count, period, burst, max_debt, clamp } = config else { panic!("{config:?}") };
    let blocks = count == 0 || burst == 0;
    let interval = if blocks { 1 } else { Nanos::from(period / count) };
    let bound = interval * (Nanos::from(burst) + Nanos::from(max_debt));
    Numbers { interval, burst: if blocks { 0 } else { burst.into() }, bound, clamp, blocks }
}

impl ModelGcra {
    fn base(&self, n: &Numbers, now: Nanos) -> Nanos {
        let base = self.0.unwrap_or(now).max(now);
        if n.clamp { base.min(now + n.bound) } else { base }
    }
}

impl Model for ModelGcra {
    fn ask(&mut self, config: &LimitConfig, now: Nanos, wish: ModelAsk) -> (SpecOutcome, u64) {
        let n = numbers(config);
        let (tolerance, least) = (n.interval * n.burst, Nanos::from(wish.least()));
        let base = if n.blocks { now } else { self.base(&n, now) };
        let room = ((tolerance - (base - now)) / n.interval).max(0);
        let allowed = base - now + n.interval * least <= tolerance;
        let fate = if n.blocks { Fate::Read } else { wish.fate(allowed, narrow(room)) };
        let tat = match fate {
            Fate::Charged(cost) => base + n.interval * Nanos::from(cost),
            Fate::Forced(cost) => (base + n.interval * Nanos::from(cost)).min(base.max(now + n.bound)),
            Fate::Refused | Fate::Read => base,
        };
        if fate != Fate::Read && (tat > base || self.0.is_some_and(|stored| stored > base)) {
            self.0 = Some(tat);
        }
        let used = tat - now;
        let remaining = ((tolerance - used) / n.interval).max(0);
        let retry_after = match allowed {
            true => Some(0),
            false if least > n.burst => None,
            false => Some(narrow(used + n.interval * least - tolerance)),
        };
        let answer = SpecOutcome {
            allowed,
            limit: narrow(n.burst),
            remaining: narrow(remaining),
            retry_after,
            reset_after: narrow(used),
            next_unit: (used > 0).then(|| narrow((remaining + 1) * n.interval - (tolerance - used))),
            delay: allowed.then_some(0),
            in_use: narrow((used + n.interval - 1) / n.interval),
        };
        (answer, narrow((tat - base) / n.interval))
    }

    /// With a stamp the bound stays out of it: the receipt may be of an older, smaller limit.
    fn refund(&mut self, config: &LimitConfig, now: Nanos, units: u64, stamp: Option<Nanos>) -> u64 {
        let n = numbers(config);
        let Some(tat) = self.0.filter(|tat| *tat > now && !n.blocks) else { return 0 };
        let base = if stamp.is_some() { tat.max(now) } else { self.base(&n, now) };
        let owed = stamp.map_or(base - now, |stamp| (stamp - now).max(0));
        let back = (n.interval * Nanos::from(units)).min(base - now).min(owed);
        self.0 = Some(base - back);
        narrow(back / n.interval)
    }
}
