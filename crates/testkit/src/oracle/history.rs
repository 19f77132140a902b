//! Everything that was admitted, and the bounds over every interval (RELIABILITY P1 to P4).

use crate::LimitConfig;
use crate::model::Nanos;

/// Admissions and refunds under one limit and a clock that only ran forward; oldest first.
#[derive(Clone, Debug, Default)]
pub struct History(Vec<Event>);

/// An admission, or a refund. Amounts are shares of a unit, `interval` of which are one.
#[derive(Clone, Copy, Debug)]
struct Event {
    at: Nanos,
    /// What is left of an admission after refunds.
    stands: Nanos,
    /// Units at that moment: negative for a refund.
    flow: Nanos,
    /// How long an admitted caller waits before it proceeds.
    delay: Nanos,
}

impl History {
    /// Records an admission, and checks every interval that ends with it.
    pub fn admit(&mut self, config: &LimitConfig, at: Nanos, units: u64, delay: u64) -> Result<(), String> {
        let shares = Nanos::from(units) * Nanos::from(config.interval());
        self.0.push(Event { at, stands: shares, flow: shares, delay: delay.into() });
        let exact = self.refunds_are_exact(config);
        let (mut standing, mut flow) = (0, 0);
        for first in self.0.iter().rev() {
            standing += first.stands;
            flow += first.flow;
            bound(config, first.at, at, if exact { standing } else { flow })?;
        }
        self.exits(config)
    }

    /// Takes shares off the `place`-th admission; off none if it was forced.
    pub fn give_back(&mut self, place: Option<usize>, at: Nanos, shares: Nanos) {
        if let Some(admitted) = place.and_then(|place| self.0.get_mut(place)) {
            admitted.stands -= shares;
        }
        if shares > 0 {
            self.0.push(Event { at, stands: 0, flow: -shares, delay: 0 });
        }
    }

    /// The number of events: the place of the next one.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if nothing was admitted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A refund is as if the charge had never been, so only what still stands counts. With one exception: a token
    /// bucket that has given back an earlier charge no longer knows when a later one would have been paid back, and by
    /// SPEC 0.3 may return it in full. Then a refund counts when it was made, which no algorithm may exceed.
    fn refunds_are_exact(&self, config: &LimitConfig) -> bool {
        let refunds = self.0.iter().filter(|event| event.flow < 0).count();
        !matches!(config, LimitConfig::Gcra { .. }) || refunds < 2
    }

    /// A caller leaves a queue after those before it, one interval each, and never waits too long.
    fn exits(&self, config: &LimitConfig) -> Result<(), String> {
        let &LimitConfig::Queue { max_delay, .. } = config else { return Ok(()) };
        let Some((last, earlier)) = self.0.split_last() else { return Ok(()) };
        if last.delay > max_delay.into() {
            return Err(format!("waits {} ns, allowed are {max_delay}", last.delay));
        }
        let before = earlier.iter().rfind(|event| event.stands > 0);
        let free = before.map_or(last.at, |before| before.at + before.delay + before.stands);
        match last.at + last.delay < free {
            true => Err(format!("leaves at {}, the exit is free at {free}", last.at + last.delay)),
            false => Ok(()),
        }
    }
}

/// The most that may be admitted from `first` to `last`, both included.
fn bound(config: &LimitConfig, first: Nanos, last: Nanos, sum: Nanos) -> Result<(), String> {
    let span = last - first;
    let broken = |promise: &str, most: String| {
        Err(format!("{promise}: {sum} admitted from {first} to {last}, which is {span} ns; at most {most}"))
    };
    match *config {
        LimitConfig::Gcra { burst, .. } => {
            let most = Nanos::from(config.interval()) * Nanos::from(burst) + span;
            if sum > most { broken("P3 (in shares)", most.to_string()) } else { Ok(()) }
        }
        LimitConfig::FixedWindow { limit, window, offset } => {
            let (limit, window) = (Nanos::from(limit), Nanos::from(window));
            let number = |at: Nanos| (at - Nanos::from(offset)).div_euclid(window);
            match () {
                () if number(first) == number(last) && sum > limit => broken("P1 (window)", limit.to_string()),
                () if span < window && sum > 2 * limit => broken("P1 (interval)", (2 * limit).to_string()),
                () => Ok(()),
            }
        }
        LimitConfig::SlidingLog { limit, window } => match span < window.into() && sum > limit.into() {
            true => broken("P2", limit.to_string()),
            false => Ok(()),
        },
        LimitConfig::SlidingCounter { limit, window, .. } => {
            let (limit, window) = (u128::from(limit), u128::from(window));
            let (sum_of, span_of) = (sum.unsigned_abs(), span.unsigned_abs());
            match span_of <= window && sum_of * window > limit * (window + span_of) {
                true => broken("P4", format!("{limit} · (1 + {span}/{window})")),
                false => Ok(()),
            }
        }
        LimitConfig::Quota { amount, overdraft, rollover, grant, start, end, next_end } => {
            let [amount, overdraft, rollover, grant] = [amount, overdraft, rollover, grant].map(Nanos::from);
            let [start, end, next_end] = [start, end, next_end].map(Nanos::from);
            let most = match () {
                () if amount == 0 => 0,
                () if start <= first && last < end => amount + overdraft + rollover + grant,
                () if end <= first && last < next_end => amount + overdraft + rollover,
                () => return Ok(()), // of two periods, or of one that the bounds do not tell
            };
            if sum > most { broken("quota", most.to_string()) } else { Ok(()) }
        }
        LimitConfig::Queue { .. } | LimitConfig::Concurrency { .. } => Ok(()),
    }
}
