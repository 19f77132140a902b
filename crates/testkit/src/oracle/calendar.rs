//! Quotas by a calendar: nodes whose clocks differ charge one bucket, and a ledger of every charge tells what must come
//! out.
//!
//! The calendar is a table of bounds. A node takes the period from it that its own clock is in; the ledger files every
//! charge under the period that the store's clock is in, and adds up. It knows nothing of states, ends or labels.
//!
//! Grants are spans with units: one counts in the period that contains its start, if the node is in that period too.

use tollgate_core::{Ask, Charge, Digest, Limit, Quota, Time};

use crate::Subject;

/// A random run: numbers of the quota, and one word per step.
#[derive(Clone, Debug)]
pub struct CalendarRun {
    /// Amount, overdraft and rollover.
    pub numbers: [u8; 3],
    /// Lengths of the periods, in turn.
    pub lengths: [u8; 5],
    /// What happens, in order.
    pub steps: Vec<[u8; 4]>,
}

/// The shortest period: clocks of nodes differ by less. The longest is a sixteenth longer, as those of a calendar are.
const SHORTEST: u64 = 64;
const START: u64 = 1_700_000_000_000_000_000;

/// A receipt: its charge, the units and the stamp.
type Kept = (Charge, u64, Time);

/// Runs on one subject; the first difference is the error.
pub fn play_calendar(run: &CalendarRun, subject: &mut dyn Subject) -> Result<(), String> {
    let mut world = World::of(run);
    for (place, step) in run.steps.iter().enumerate() {
        world.step(*step, subject).map_err(|problem| format!("step {place} at {}: {problem}\n{run:?}", world.now))?;
    }
    Ok(())
}

struct World {
    bounds: Vec<u64>,
    now: u64,
    amount: u64,
    overdraft: u64,
    rollover: u64,
    entries: Vec<Entry>,
    grants: Vec<Granted>,
    /// The last period with a charge: its end, and what was carried into it.
    carried: Option<(u64, u64)>,
    receipts: Vec<Kept>,
}

/// A charge in the ledger: the end of its period, and what is left of it.
struct Entry {
    period_end: u64,
    units: u64,
}

/// Units that were granted once.
struct Granted {
    from: u64,
    until: u64,
    units: u64,
}

impl World {
    fn of(run: &CalendarRun) -> World {
        let [amount, overdraft, rollover] = run.numbers.map(u64::from);
        let mut world = World {
            bounds: Vec::new(),
            now: START,
            amount: amount % 20,
            overdraft: overdraft % 4,
            rollover: rollover % 25,
            entries: Vec::new(),
            grants: Vec::new(),
            carried: None,
            receipts: Vec::new(),
        };
        world.bounds = table(run.lengths, 0);
        world
    }

    /// The number of the period that contains `at`.
    fn period(&self, at: u64) -> usize {
        self.bounds.partition_point(|bound| *bound <= at) - 1
    }

    fn end(&self) -> u64 {
        self.bounds[self.period(self.now) + 1]
    }

    fn used(&self, period_end: u64) -> u64 {
        self.entries.iter().filter(|entry| entry.period_end == period_end).map(|entry| entry.units).sum()
    }

    fn carried_into(&self, period_end: u64) -> Option<u64> {
        self.carried.filter(|(end, _)| *end == period_end).map(|(_, carried)| carried)
    }

    /// What the current period may use beyond its amount. A node that is in the next period already does not know when
    /// this one began, and carries nothing into it.
    fn carried(&self, is_ahead: bool) -> u64 {
        let before = self.bounds[self.period(self.now)];
        let from_before = || {
            let carried = self.carried_into(before)?; // a period without charges carries nothing
            let left = (self.amount + carried).saturating_sub(self.used(before)).min(self.amount);
            Some(left.min(self.rollover))
        };
        self.carried_into(self.end()).or_else(|| from_before().filter(|_| !is_ahead)).unwrap_or(0)
    }

    /// The time of a node whose clock differs.
    fn time_of_node(&self, skew: u8) -> u64 {
        self.now + SHORTEST - 1 - u64::from(skew) % (2 * SHORTEST - 1)
    }

    /// Its period.
    fn proposed(&self, skew: u8) -> usize {
        self.period(self.time_of_node(skew))
    }

    /// What that node takes for granted in its period.
    fn granted_by_node(&self, skew: u8) -> u64 {
        let at = self.time_of_node(skew);
        let start = self.bounds[self.period(at)];
        let holds = |grant: &&Granted| (start..=at).contains(&grant.from) && at < grant.until;
        self.grants.iter().filter(holds).map(|grant| grant.units).sum()
    }

    fn charge(&self, skew: u8, ask: Ask) -> Charge {
        let period = self.proposed(skew);
        let [start, end, next_end] = [0, 1, 2].map(|after| Time::from_nanos(self.bounds[period + after]));
        let quota = Quota::new(self.amount, start, end, next_end).expect("a table of periods");
        let quota = quota.with_overdraft(self.overdraft).with_rollover(self.rollover);
        let quota = quota.with_grant(self.granted_by_node(skew));
        Charge { ask, ..Charge::new(Digest([7, 7]), Limit::Quota(quota), 0) }
    }

    fn step(&mut self, [what, cost, time, skew]: [u8; 4], subject: &mut dyn Subject) -> Result<(), String> {
        self.now += match time % 8 {
            0..=3 => 0,
            4 | 5 => u64::from(time / 8),
            6 => self.end() - self.now - u64::from(time / 8 % 2),
            _ => 5 * u64::from(time), // past whole periods
        };
        subject.sweep(Time::from_nanos(self.now));
        let cost = u64::from(cost % 9);
        match what % 16 {
            0..=7 => self.ask(skew, Ask::Consume(cost), subject),
            8 => self.ask(skew, Ask::UpTo(cost), subject),
            9 => self.ask(skew, Ask::Force(cost), subject),
            10 => self.ask(skew, Ask::Peek(cost), subject),
            11 => {
                let from = self.now + u64::from(what / 16);
                self.grants.push(Granted { from, until: from + 3 * u64::from(time), units: cost });
                self.ask(skew, Ask::Peek(cost), subject)
            }
            12 | 13 => self.refund(what, cost, subject),
            14 => {
                self.amount = u64::from(what / 16) + 1; // lowered and raised; usage stays
                self.ask(skew, Ask::Peek(cost), subject)
            }
            _ => {
                self.change_calendar([what, skew, time, skew / 2, what / 2]);
                self.ask(SHORTEST as u8 - 1, Ask::Consume(1), subject) // by a node whose clock is right
            }
        }
    }

    fn ask(&mut self, skew: u8, ask: Ask, subject: &mut dyn Subject) -> Result<(), String> {
        let (end, carried) = (self.end(), self.carried(self.proposed(skew) > self.period(self.now)));
        let charge = self.charge(skew, ask);
        let told = subject.take(Time::from_nanos(self.now), &[charge])[0];
        let used = self.used(end);
        let is_agreed = self.proposed(skew) == self.period(self.now);
        let extra = carried + if is_agreed { self.granted_by_node(skew) } else { 0 };
        let most = if self.amount == 0 { 0 } else { self.amount + extra + self.overdraft };
        let allowed = used + ask.least() <= most;
        let granted = match ask {
            Ask::Force(n) => n,
            Ask::Consume(n) if allowed => n,
            Ask::UpTo(n) if allowed => n.min(most - used),
            _ => 0,
        };
        if granted > 0 {
            self.carried = Some((end, carried));
            self.receipts.push((charge, granted, told.stamp));
            self.entries.push(Entry { period_end: end, units: granted });
        }
        let limit = if self.amount == 0 { 0 } else { self.amount + extra };
        let left = limit.saturating_sub(used + granted);
        let expected = (allowed, granted, limit, left, used + granted, end - self.now);
        let got = (told.allowed, told.granted, told.limit, told.remaining, told.used, told.reset_after.nanos());
        match got == expected {
            true => Ok(()),
            false => {
                Err(format!("{charge:?}\n  (allowed, granted, limit, left, used, reset) {got:?}\n  not {expected:?}"))
            }
        }
    }

    /// A charge of the current period comes back; one of an earlier period does not. A receipt names its period by the
    /// end: after a change of the calendar, a new period may end where the old one would have, and gets the units.
    fn refund(&mut self, which: u8, units: u64, subject: &mut dyn Subject) -> Result<(), String> {
        if self.receipts.is_empty() {
            return Ok(());
        }
        let (charge, granted, stamp) = self.receipts.swap_remove(usize::from(which) % self.receipts.len());
        let units = units.min(granted);
        subject.refund(Time::from_nanos(self.now), &charge, units, Some(stamp));
        if stamp.nanos() == self.end() {
            self.give_back(units);
        }
        self.ask(0, Ask::Peek(1), subject)
    }

    /// Takes units off the charges of the current period.
    fn give_back(&mut self, units: u64) {
        let end = self.end();
        let current = self.entries.iter_mut().filter(|entry| entry.period_end == end);
        current.fold(units, |left, entry| {
            let back = left.min(entry.units);
            entry.units -= back;
            left - back
        });
    }

    /// Moves what the current period has used and carried into the period of another table.
    fn change_calendar(&mut self, lengths: [u8; 5]) {
        let (before, carried) = (self.end(), self.carried_into(self.end()));
        self.bounds = table(lengths, self.now - START);
        let Some(carried) = carried else { return };
        let after = self.end();
        self.entries.iter_mut().filter(|entry| entry.period_end != before).for_each(|entry| entry.units = 0);
        self.entries.iter_mut().for_each(|entry| entry.period_end = after);
        self.carried = Some((after, carried));
    }
}

/// Bounds from well before `START + from` until well after every step.
fn table(lengths: [u8; 5], from: u64) -> Vec<u64> {
    let mut lengths = lengths.map(|length| SHORTEST + u64::from(length % 5)).into_iter().cycle();
    let first = START + from - 600;
    let next = |at: &u64| Some(at + lengths.next().unwrap_or(SHORTEST));
    std::iter::successors(Some(first), next).take_while(|at| *at < START + from + 400_000).collect()
}
