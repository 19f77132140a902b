//! Several limits for one request: all or nothing (RELIABILITY P8), the same on every store.
//!
//! Each charge of a request comes from a scenario of its own; the first one moves the clock. Every subject must answer as
//! the [`Reference`] does, while it drops what it may. In the reference itself, a refusal must leave no trace, and the
//! longest wait must be enough and not a nanosecond too long.

use tollgate_core::{Ask, Charge, Digest, Enforcement, Limit, Outcome, Time, Wait};

use super::{Operation, Scenario, TimeStep};
use crate::{Reference, SpecOutcome, Subject};

/// Runs one scenario per charge, side by side. Charges whose bit is set in `shadow` are shadow charges.
pub fn play_together(scenarios: &[Scenario], shadow: u8, subjects: &mut [Box<dyn Subject>]) -> Result<(), String> {
    let steps = scenarios.iter().map(|scenario| scenario.steps.len()).min().unwrap_or(0);
    let mut table = Table::of(scenarios, shadow, subjects);
    for place in 0..steps {
        let acts: Vec<Operation> = scenarios.iter().map(|scenario| scenario.steps[place].1).collect();
        table.advance(scenarios[0].steps[place].0);
        if table.is_at_the_end_of_time() {
            break;
        }
        table.act(&acts).map_err(|problem| {
            let scenarios: String = scenarios.iter().map(ToString::to_string).collect();
            format!("step {place} {acts:?} at {:?}, shadow {shadow:#b}: {problem}\n{scenarios}", table.now)
        })?;
    }
    Ok(())
}

struct Table<'a> {
    now: Time,
    scenarios: &'a [Scenario],
    /// Which limit of each scenario is in force.
    current: Vec<usize>,
    shadow: u8,
    reference: Reference,
    subjects: &'a mut [Box<dyn Subject>],
    receipts: Vec<(Charge, u64, Time)>,
    told: Option<Outcome>,
    /// The clock stepped back or a limit changed: hints are no promises before the next write.
    unsteady: bool,
}

impl<'a> Table<'a> {
    fn of(scenarios: &'a [Scenario], shadow: u8, subjects: &'a mut [Box<dyn Subject>]) -> Table<'a> {
        Table {
            now: Time::from_nanos(scenarios[0].start),
            scenarios,
            current: vec![0; scenarios.len()],
            shadow,
            reference: Reference::default(),
            subjects,
            receipts: Vec::new(),
            told: None,
            unsteady: false,
        }
    }

    fn advance(&mut self, pass: TimeStep) {
        let told = self.told.as_ref().map(SpecOutcome::from);
        let on = match pass {
            TimeStep::On(nanos) => nanos,
            TimeStep::Back(nanos) => {
                self.unsteady = true;
                self.now = Time::from_nanos(self.now.nanos().saturating_sub(nanos));
                return;
            }
            TimeStep::Retry => told.and_then(|told| told.retry_after).unwrap_or(0),
            TimeStep::AlmostRetry => told.and_then(|told| told.retry_after).unwrap_or(0).saturating_sub(1),
            TimeStep::NextUnit => told.and_then(|told| told.next_unit).unwrap_or(0),
            TimeStep::Reset => told.map_or(0, |told| told.reset_after),
        };
        self.now = Time::from_nanos(self.now.nanos().saturating_add(on));
        // A clock that steps back may tell a fresh bucket from an unused one: sweep only if it never does.
        if !self.scenarios[0].steps.iter().any(|(pass, _)| matches!(pass, TimeStep::Back(_))) {
            self.subjects.iter_mut().for_each(|subject| subject.sweep(self.now));
        }
    }

    /// Where sums of times saturate, an entry may be kept or dropped: no promise covers it.
    fn is_at_the_end_of_time(&self) -> bool {
        let configs = self.scenarios.iter().flat_map(|scenario| &scenario.configs);
        let reach = configs.map(|config| config.reach(self.now.nanos())).max().unwrap_or(0);
        u128::from(self.now.nanos()) + 2 * u128::from(reach) > u128::from(u64::MAX)
    }

    fn act(&mut self, acts: &[Operation]) -> Result<(), String> {
        let mut charges = Vec::new();
        for (place, act) in acts.iter().enumerate() {
            match *act {
                Operation::Ask(wish) => {
                    let charge = self.charge(place, wish.ask);
                    charges.push(Charge { count_denied: wish.count_denied, ..charge });
                }
                Operation::Refund { receipt, half } => self.refund(receipt, half),
                Operation::Release(id) => self.release(place, id)?,
                Operation::Configure(config) => {
                    self.unsteady = true;
                    self.current[place] = config % self.scenarios[place].configs.len();
                }
            }
        }
        if charges.is_empty() { Ok(()) } else { self.take(&charges) }
    }

    fn charge(&self, place: usize, ask: Ask) -> Charge {
        let limit: Limit = self.scenarios[place].configs[self.current[place]].limit().expect("scenarios hold limits");
        let is_shadow = self.shadow >> place & 1 == 1;
        let enforcement = if is_shadow { Enforcement::Shadow } else { Enforcement::Enforce };
        let bucket = Digest([(place as u64) << 62 | 7, place as u64]);
        Charge { ask, enforcement, ..Charge::new(bucket, limit, 0) }
    }

    fn take(&mut self, charges: &[Charge]) -> Result<(), String> {
        let before = self.reference.clone();
        let told = self.reference.take(self.now, charges);
        for subject in self.subjects.iter_mut() {
            let theirs = subject.take(self.now, charges);
            if theirs.iter().map(essence).ne(told.iter().map(essence)) {
                return Err(format!("told\n  {theirs:?}, the reference says\n  {told:?}"));
            }
        }
        let passes = told.iter().zip(charges).all(|(told, charge)| told.allowed || !charge.is_enforced());
        if !passes {
            self.leaves_no_trace(before, charges)?;
            self.waits(charges, &told)?;
        }
        let granted = charges.iter().zip(&told).filter(|(_, told)| told.granted > 0);
        self.receipts.extend(granted.map(|(charge, told)| (*charge, told.granted, told.stamp)));
        self.told = told.first().copied();
        Ok(())
    }

    /// A refused request charges only limits that count refusals.
    fn leaves_no_trace(&self, mut before: Reference, charges: &[Charge]) -> Result<(), String> {
        let mut after = self.reference.clone();
        for charge in charges.iter().filter(|charge| !is_charged_anyway(charge)) {
            for cost in [0, 1, charge.limit.capacity()] {
                let peek = [Charge { ask: Ask::Peek(cost), ..*charge }];
                let (was, is) = (essence(&before.take(self.now, &peek)[0]), essence(&after.take(self.now, &peek)[0]));
                if was != is {
                    return Err(format!("refused, yet {charge:?} now tells\n  {is:?}, before it told\n  {was:?}"));
                }
            }
        }
        Ok(())
    }

    /// The longest wait of the refusing limits is the wait for all, if nothing was forced and the clock is steady.
    fn waits(&self, charges: &[Charge], told: &[Outcome]) -> Result<(), String> {
        let renews = charges.iter().any(|charge| matches!(charge.ask, Ask::Renew(_))); // and may lose the slot while it waits
        let refusing = told.iter().zip(charges).filter(|(told, charge)| !told.allowed && charge.is_enforced());
        let Some(Wait::For(wait)) = refusing.map(|(told, _)| told.wait).max() else { return Ok(()) };
        let expires = told.iter().zip(charges).any(|(told, charge)| spends_carried(charge) && wait >= told.reset_after);
        let steady = !self.unsteady && !renews && !expires && !charges.iter().any(is_charged_anyway);
        let passes = |nanos: u64| {
            let at = self.now.nanos().checked_add(nanos)?;
            let told = self.reference.clone().take(Time::from_nanos(at), charges);
            Some(told.iter().zip(charges).all(|(told, charge)| told.allowed || !charge.is_enforced()))
        };
        match (passes(wait.nanos()), passes(wait.nanos().saturating_sub(1))) {
            _ if !steady => Ok(()),
            (Some(false), _) => Err(format!("all together waited {wait} as told, refused again")),
            (Some(true), Some(true)) => Err(format!("all together told to wait {wait}, pass 1 ns earlier")),
            _ => Ok(()),
        }
    }

    fn refund(&mut self, receipt: usize, half: bool) {
        if self.receipts.is_empty() {
            return;
        }
        let (charge, granted, stamp) = self.receipts.swap_remove(receipt % self.receipts.len());
        let units = if half { granted.div_ceil(2) } else { granted };
        self.reference.refund(self.now, &charge, units, Some(stamp));
        self.subjects.iter_mut().for_each(|subject| subject.refund(self.now, &charge, units, Some(stamp)));
    }

    fn release(&mut self, place: usize, id: tollgate_core::SlotId) -> Result<(), String> {
        let charge = self.charge(place, Ask::Peek(0));
        let released = self.reference.release(self.now, &charge, id);
        let agrees = |subject: &mut Box<dyn Subject>| subject.release(self.now, &charge, id) == released;
        match self.subjects.iter_mut().all(agrees) {
            true => Ok(()),
            false => Err(format!("{id} released {released} on the reference only")),
        }
    }
}

/// Charged although the request is refused.
fn is_charged_anyway(charge: &Charge) -> bool {
    charge.count_denied || matches!(charge.ask, Ask::Force(_))
}

/// More than a period admits without units of the one before: may pass now, and no longer when this period is over.
fn spends_carried(charge: &Charge) -> bool {
    let Limit::Quota(quota) = charge.limit else { return false };
    charge.ask.least() > quota.amount().saturating_add(quota.overdraft())
}

/// What a caller can observe; the stamp only where there is a receipt.
fn essence(outcome: &Outcome) -> (SpecOutcome, u64, Option<Time>) {
    (SpecOutcome::from(outcome), outcome.granted, (outcome.granted > 0).then_some(outcome.stamp))
}
