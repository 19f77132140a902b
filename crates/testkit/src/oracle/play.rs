//! Runs a scenario on a bucket and on its model, and checks every promise at every step.

use std::panic::{self, AssertUnwindSafe};

use tollgate_core::{Ask, Limit, Outcome, Time};

use super::freshness::is_as_unused;
use super::hints::HintCheck;
use super::{History, Operation, Scenario, TimeStep};
use crate::model::{self, Model, ModelAsk, Nanos};
use crate::{Bucket, LimitConfig, SpecOutcome};

/// Runs the scenario to its end, or to the first promise that does not hold.
pub fn play(scenario: &Scenario) -> Result<(), String> {
    let mut stage = Stage::of(scenario);
    for (place, (pass, act)) in scenario.steps.iter().enumerate() {
        let at = stage.now;
        stage.advance(*pass);
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| stage.act(*act)));
        outcome.unwrap_or_else(|_| Err("panicked".to_owned())).map_err(|problem| {
            let so_far = Scenario { steps: scenario.steps[..=place].to_vec(), ..scenario.clone() };
            format!("{act:?} at {:?}, before {at:?}, under {:?}: {problem}\n{so_far}", stage.now, stage.config())
        })?;
    }
    Ok(())
}

struct Stage<'a> {
    configs: &'a [LimitConfig],
    /// Those configurations that make a limit.
    limits: Vec<Option<Limit>>,
    /// Which one is in force.
    current: usize,
    now: Time,
    bucket: Bucket,
    model: Box<dyn Model>,
    receipts: Vec<Receipt>,
    history: History,
    /// The history began with this number: receipts of older ones are foreign to it.
    epoch: u32,
    /// The state was written since the clock last stepped back or the limit last changed, so hints are promises.
    settled: bool,
    /// So late that core saturated, as it may; the model does not, so the two differ from here on.
    beyond: bool,
    told: Option<Outcome>,
}

struct Receipt {
    units: u64,
    stamp: Time,
    config: usize,
    epoch: u32,
    /// Its place in the history; none for forced usage.
    place: Option<usize>,
}

impl<'a> Stage<'a> {
    fn of(scenario: &'a Scenario) -> Stage<'a> {
        let limits: Vec<Option<Limit>> = scenario.configs.iter().map(|config| config.limit().ok()).collect();
        let current = limits.iter().position(Option::is_some).unwrap_or(0);
        let kind = limits[current].expect("a scenario has at least one limit").kind();
        Stage {
            configs: &scenario.configs,
            limits,
            current,
            now: Time::from_nanos(scenario.start),
            bucket: Bucket::unused(kind),
            model: model::of(&scenario.configs[current]),
            receipts: Vec::new(),
            history: History::default(),
            epoch: 0,
            settled: true,
            beyond: false,
            told: None,
        }
    }

    fn config(&self) -> &'a LimitConfig {
        &self.configs[self.current]
    }

    fn limit(&self) -> Limit {
        self.limits[self.current].expect("only limits come into force")
    }

    fn wide_now(&self) -> Nanos {
        self.now.nanos().into()
    }

    fn advance(&mut self, pass: TimeStep) {
        let told = self.told.as_ref().map(SpecOutcome::from);
        let on = match pass {
            TimeStep::On(nanos) => nanos,
            TimeStep::Back(nanos) => {
                self.now = Time::from_nanos(self.now.nanos().saturating_sub(nanos));
                return self.forget(nanos == 0);
            }
            TimeStep::Retry => told.and_then(|told| told.retry_after).unwrap_or(0),
            TimeStep::AlmostRetry => told.and_then(|told| told.retry_after).unwrap_or(0).saturating_sub(1),
            TimeStep::NextUnit => told.and_then(|told| told.next_unit).unwrap_or(0),
            TimeStep::Reset => told.map_or(0, |told| told.reset_after),
        };
        self.now = Time::from_nanos(self.now.nanos().saturating_add(on));
    }

    /// Restarts the bounds, and ignores hints until the next write, unless nothing has changed.
    fn forget(&mut self, unchanged: bool) {
        if !unchanged {
            self.history = History::default();
            self.epoch += 1;
            self.settled = false;
        }
    }

    fn act(&mut self, act: Operation) -> Result<(), String> {
        self.look_at_the_end_of_time();
        match act {
            Operation::Ask(wish) => self.ask(wish),
            Operation::Refund { receipt, half } => self.refund(receipt, half),
            Operation::Release(id) => {
                let (config, limit) = (self.config(), self.limit());
                let released = self.bucket.release(&limit, self.now, id);
                let expected = self.model.release(config, self.wide_now(), id);
                self.settled = true;
                self.agree("released", released, expected)
            }
            Operation::Configure(place) => {
                let place = place % self.configs.len();
                if self.limits[place].is_some() {
                    self.forget(place == self.current);
                    self.current = place;
                }
                Ok(())
            }
        }
    }

    /// Time saturates near its end, and a shifted log does below one window; models never saturate.
    fn look_at_the_end_of_time(&mut self) {
        let config = self.config();
        let reach = config.reach(self.now.nanos());
        let is_late = u128::from(self.now.nanos()) + 2 * u128::from(reach) > u128::from(u64::MAX);
        let is_early = matches!(self.config(), LimitConfig::SlidingLog { window, .. } if self.now.nanos() < *window);
        self.beyond |= is_late || (is_early && self.epoch > 0);
    }

    fn ask(&mut self, wish: ModelAsk) -> Result<(), String> {
        let (config, limit) = (self.config(), self.limit());
        let told = self.bucket.take(&limit, self.now, &wish.ask, wish.count_denied);
        self.told = Some(told);
        self.settled |= match wish.ask {
            Ask::Hold(_) | Ask::Renew(_) => true,
            other => other.writes() && !matches!(self.bucket, Bucket::Concurrency(_)),
        };
        if told.remaining > told.limit {
            return Err(format!("remaining {} of {}", told.remaining, told.limit));
        }
        if self.beyond {
            return Ok(());
        }
        let (answer, granted) = self.model.ask(config, self.wide_now(), wish);
        self.agree("told", SpecOutcome::from(&told), answer)?;
        self.agree("recorded", told.granted, granted)?;
        self.note(wish, &told)?;
        if self.settled {
            HintCheck { bucket: &self.bucket, config, limit: &limit, now: self.now, ask: &wish.ask, told: &told }
                .hold()?;
        }
        is_as_unused(&self.bucket, &limit, self.now)
    }

    /// Keeps the receipt. If the request was admitted and not forced, counts the cost that it named.
    fn note(&mut self, wish: ModelAsk, told: &Outcome) -> Result<(), String> {
        let Outcome { granted, stamp, delay, .. } = *told;
        let admitted = match wish.ask {
            Ask::Consume(cost) if told.allowed => cost,
            Ask::UpTo(_) if told.allowed => granted,
            _ => 0,
        };
        if matches!(self.bucket, Bucket::Concurrency(_)) {
            return Ok(());
        }
        if granted > 0 {
            let place = (admitted > 0).then_some(self.history.len());
            let (config, epoch) = (self.current, self.epoch);
            self.receipts.push(Receipt { units: granted, stamp, config, epoch, place });
        }
        match admitted {
            0 => Ok(()),
            units => self.history.admit(self.config(), self.wide_now(), units, delay.nanos()),
        }
    }

    /// Refunds under the limit of the receipt, which may no longer be in force.
    fn refund(&mut self, receipt: usize, half: bool) -> Result<(), String> {
        if self.receipts.is_empty() {
            return Ok(());
        }
        let receipt = self.receipts.swap_remove(receipt % self.receipts.len());
        let config = &self.configs[receipt.config];
        let limit = self.limits[receipt.config].expect("a receipt is of a limit");
        let units = if half { receipt.units.div_ceil(2) } else { receipt.units };
        let before = self.bucket.clone();
        let back = self.bucket.refund(&limit, self.now, units, Some(receipt.stamp));
        if back > units {
            return Err(format!("{back} of {units} units came back"));
        }
        if self.beyond {
            return Ok(());
        }
        let expected = self.model.refund(config, self.wide_now(), units, Some(receipt.stamp.nanos().into()));
        self.agree("came back", back, expected)?;
        if receipt.epoch != self.epoch {
            // A window number or an arrival time from before the step may mean another charge by now.
            self.forget(false);
        } else {
            let shares = self.shares_back(&before, config, back);
            self.history.give_back(receipt.place, self.wide_now(), shares);
        }
        Ok(())
    }

    /// A token bucket and a queue refund in nanoseconds, so fractions of a unit too.
    fn shares_back(&self, before: &Bucket, config: &LimitConfig, back: u64) -> Nanos {
        let ahead = |time: Time| Nanos::from(time.since(self.now).nanos());
        match (before, &self.bucket) {
            (Bucket::Gcra(before), Bucket::Gcra(after)) => ahead(before.0) - ahead(after.0),
            (Bucket::Queue(before), Bucket::Queue(after)) => ahead(before.0) - ahead(after.0),
            _ => Nanos::from(back) * Nanos::from(config.interval()),
        }
    }

    fn agree<T: PartialEq + std::fmt::Debug>(&self, what: &str, got: T, expected: T) -> Result<(), String> {
        match got == expected || self.beyond {
            true => Ok(()),
            false => Err(format!("{what}\n  {got:?}, the model says\n  {expected:?}")),
        }
    }
}
