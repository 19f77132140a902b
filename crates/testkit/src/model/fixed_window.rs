//! SPEC 5.4.

use super::{Fate, Model, ModelAsk, Nanos, narrow};
use crate::{LimitConfig, SpecOutcome};

/// The number of a window and the units in it; a window without units is as good as none.
#[derive(Default)]
pub(super) struct ModelWindow(Option<(Nanos, u64)>);

struct Numbers {
    limit: u64,
    window: Nanos,
    offset: Nanos,
}

fn numbers(config: &LimitConfig) -> Numbers {
    let &LimitConfig::FixedWindow { limit, window, offset } = config else { panic!("{config:?}") };
    Numbers { limit, window: window.into(), offset: offset.into() }
}

impl ModelWindow {
    fn turned(&self, n: &Numbers, now: Nanos) -> (Nanos, u64) {
        let here = (now - n.offset).div_euclid(n.window);
        match self.0 {
            Some((number, count)) if count > 0 && here == number - 1 => (number, count),
            Some((number, count)) if here <= number => (here, count),
            _ => (here, 0),
        }
    }

    fn end(number: Nanos, n: &Numbers) -> Nanos {
        n.offset + (number + 1) * n.window
    }
}

impl Model for ModelWindow {
    fn ask(&mut self, config: &LimitConfig, now: Nanos, wish: ModelAsk) -> (SpecOutcome, u64) {
        let n = numbers(config);
        let (number, before) = self.turned(&n, now);
        let allowed = u128::from(before) + u128::from(wish.least()) <= u128::from(n.limit);
        let fate = wish.fate(allowed, n.limit.saturating_sub(before));
        let count = match fate {
            Fate::Charged(cost) | Fate::Forced(cost) => before.saturating_add(cost),
            Fate::Refused | Fate::Read => before,
        };
        if fate != Fate::Read && count > 0 {
            self.0 = Some((number, count));
        }
        let reset_after = narrow(ModelWindow::end(number, &n) - now);
        let remaining = n.limit.saturating_sub(count);
        let retry_after = match allowed {
            true => Some(0),
            false if wish.least() > n.limit => None,
            false => Some(reset_after),
        };
        let answer = SpecOutcome {
            allowed,
            limit: n.limit,
            remaining,
            retry_after,
            reset_after,
            next_unit: (remaining < n.limit).then_some(reset_after),
            delay: allowed.then_some(0),
            in_use: count,
        };
        (answer, count - before)
    }

    fn refund(&mut self, config: &LimitConfig, now: Nanos, units: u64, stamp: Option<Nanos>) -> u64 {
        let n = numbers(config);
        let (number, count) = self.turned(&n, now);
        if stamp.is_some_and(|stamp| stamp != ModelWindow::end(number, &n)) {
            return 0;
        }
        let back = units.min(count);
        if count > 0 {
            self.0 = Some((number, count - back));
        }
        back
    }
}
