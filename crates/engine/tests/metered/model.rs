//! A model that keeps every charge of every rule, by window.

use std::collections::BTreeMap;

use crate::rig::CarriedReceipt;

/// Requests, tokens in and tokens out.
pub type Amounts = [u64; 3];

/// Rules with a meter; the slots come after them.
pub const METERED: usize = 5;
/// The quota among them.
pub const PLAN: usize = 4;
pub const SLOTS: usize = 3;
pub const TTL: u64 = 60;
/// How long old receipts are void. The model does not use them later.
pub const REMEMBERED: u64 = 60;
/// The same of receipts that were settled above their estimate.
pub const REMEMBERED_ABOVE: u64 = 24 * 3600;

/// When a sequence begins: 2027-01-15T08:00:00Z.
pub const START: u64 = 1_800_000_000;
const DAY: u64 = 86_400;
/// The first period of the quota ends ten minutes after the beginning.
const PLAN_STARTS: u64 = START + 600 - DAY;
const PLAN_AMOUNT: u64 = 800;
const PLAN_ROLLOVER: u64 = 160;
const PLAN_OVERDRAFT: u64 = 40;

/// How the rule of the tokens in counts.
#[derive(Clone, Copy, Debug)]
pub enum ModelVariant {
    /// A token bucket that returns no unit within a sequence, which lasts less than seven hours.
    Hours,
    /// A window of a year: a sequence may last days.
    Days,
}

/// Windows of an hour, of a day and of a year, a quota with all it can have, and slots of a minute.
const RULES: &str = "rules:
  - { name: requests, key_by: user_id, limit: { requests: 12, window: 1h, algorithm: fixed_window } }
  - { name: input, key_by: user_id, meter: input_tokens, max_debt: 100000, limit: { amount: 1000, window: 366d } }
  - { name: output, key_by: user_id, meter: output_tokens, limit: { amount: 500, window: 1h, algorithm: fixed_window } }
  - name: credits
    key_by: user_id
    meter: { input_tokens: 1, output_tokens: 4 }
    limit: { amount: 2500, window: 1d, algorithm: fixed_window }
  - name: plan
    key_by: user_id
    meter: { input_tokens: 1, output_tokens: 2 }
    quota: { amount: 800, every: day, anchor: '08:10', rollover: 20%, overdraft: 5% }
  - { name: flight, key_by: user_id, limit: { algorithm: concurrency, slots: 3, slot_ttl: 60s } }
grants:
  - { client_key: 'user:1', rule: plan, amount: 150, valid_from: 2027-01-15T08:05:00Z }
  - { client_key: 'user:1', rule: plan, amount: 80, valid_from: 2027-01-15T08:12:00Z, valid_until: 2027-01-15T08:30:00Z }
";

impl ModelVariant {
    pub fn rules(self) -> String {
        match self {
            ModelVariant::Hours => RULES.to_owned(),
            ModelVariant::Days => RULES.replace(
                "max_debt: 100000, limit: { amount: 1000, window: 366d }",
                "limit: { amount: 1000, window: 366d, algorithm: fixed_window }",
            ),
        }
    }
}

/// Limit, window in seconds, and weights of a rule.
pub struct ModelRule {
    limit: u64,
    pub window: u64,
    weights: Amounts,
}

pub const MODEL_RULES: [ModelRule; METERED] = [
    ModelRule { limit: 12, window: 3600, weights: [1, 0, 0] },
    ModelRule { limit: 1000, window: 366 * DAY, weights: [0, 1, 0] },
    ModelRule { limit: 500, window: 3600, weights: [0, 0, 1] },
    ModelRule { limit: 2500, window: DAY, weights: [0, 1, 4] },
    ModelRule { limit: PLAN_AMOUNT, window: DAY, weights: [0, 1, 2] },
];

impl ModelRule {
    pub fn units(&self, amounts: Amounts) -> u64 {
        self.weights.iter().zip(amounts).map(|(weight, amount)| weight * amount).sum()
    }
}

#[derive(Default)]
pub struct ModelReservation {
    pub amounts: Amounts,
    /// Charges by rule: window and units, oldest first.
    pub charges: [Vec<(u64, u64)>; METERED],
    /// Until when its slot is held.
    pub held_until: u64,
    /// Its receipts, and until when those that were replaced are void.
    pub receipts: Vec<(CarriedReceipt, u64)>,
    pub settled: bool,
    /// The period of the quota in which it was made, and what was granted then: its steps are taken under that limit.
    pub period: u64,
    pub granted: u64,
}

/// What every rule has counted, by window.
#[derive(Default)]
pub struct Model {
    pub now: u64,
    pub used: [BTreeMap<u64, u64>; METERED],
    pub reservations: Vec<ModelReservation>,
}

impl Model {
    pub fn new() -> Model {
        Model { now: START, ..Model::default() }
    }

    fn window(&self, rule: usize) -> u64 {
        let start = if rule == PLAN { PLAN_STARTS } else { 0 };
        (self.now - start) / MODEL_RULES[rule].window
    }

    /// The period of the quota, from 0.
    pub fn period(&self) -> u64 {
        self.window(PLAN)
    }

    /// The moment at which it ends.
    pub fn period_end(&self) -> u64 {
        PLAN_STARTS + (self.period() + 1) * DAY
    }

    /// Whether all charges of a rule, refunds included, are in the window of now. A window that ended is not settled.
    pub fn is_all_in_one_window(&self, rule: usize) -> bool {
        let window = self.window(rule);
        let charges = self.reservations.iter().flat_map(|one| &one.charges[rule]);
        charges.map(|(charged_in, _)| charged_in).chain(self.used[rule].keys()).all(|other| *other == window)
    }

    pub fn count(&self, rule: usize) -> u64 {
        self.used[rule].get(&self.window(rule)).copied().unwrap_or(0)
    }

    fn slots(&self) -> usize {
        let held = |one: &&ModelReservation| !one.settled && one.held_until > self.now;
        self.reservations.iter().filter(held).count()
    }

    pub fn has_slot(&self) -> bool {
        self.slots() < SLOTS
    }

    pub fn usage(&self) -> Vec<u64> {
        (0..METERED).map(|rule| self.count(rule)).chain([self.slots() as u64]).collect()
    }

    /// Units that a period of the quota was given by the one before: what that left of its own amount, once, and nothing
    /// if it was never charged.
    fn carried(&self, period: u64) -> u64 {
        let Some(before) = period.checked_sub(1) else { return 0 };
        let Some(used) = self.used[PLAN].get(&before) else { return 0 };
        PLAN_AMOUNT.saturating_sub(used.saturating_sub(self.carried(before))).min(PLAN_ROLLOVER)
    }

    /// Units that are granted now.
    pub fn granted(&self) -> u64 {
        match self.now - START {
            300..600 => 150,
            720..1800 => 80,
            _ => 0,
        }
    }

    /// Quota, overdraft, what was carried over and what was granted; of other rules the limit.
    fn admitted(&self, rule: usize, granted: u64) -> u64 {
        let more = if rule == PLAN { self.carried(self.period()) + granted + PLAN_OVERDRAFT } else { 0 };
        MODEL_RULES[rule].limit + more
    }

    pub fn fits(&self, amounts: Amounts) -> bool {
        let admits = |rule: usize| self.admitted(rule, self.granted());
        (0..METERED).all(|rule| self.count(rule) + MODEL_RULES[rule].units(amounts) <= admits(rule))
    }

    /// The same for a step, which asks only rules that it charges: others may be over their limit.
    pub fn step_fits(&self, index: usize, more: Amounts) -> bool {
        let ModelReservation { period, granted, .. } = self.reservations[index];
        let granted = if period == self.period() { granted } else { 0 };
        (0..METERED).all(|rule| {
            let units = MODEL_RULES[rule].units(more);
            units == 0 || self.count(rule) + units <= self.admitted(rule, granted)
        })
    }

    /// Charges all rules; returns the charges.
    pub fn charge(&mut self, amounts: Amounts) -> [(u64, u64); METERED] {
        std::array::from_fn(|rule| {
            let (window, units) = (self.window(rule), MODEL_RULES[rule].units(amounts));
            self.add(rule, units);
            (window, units)
        })
    }

    /// A charge of nothing leaves no period behind.
    fn add(&mut self, rule: usize, units: u64) {
        let window = self.window(rule);
        if units > 0 {
            *self.used[rule].entry(window).or_default() += units;
        }
    }

    /// True if some rule was charged more.
    pub fn settle(&mut self, index: usize, actual: Amounts) -> bool {
        let mut is_above = false;
        for (rule, of) in MODEL_RULES.iter().enumerate() {
            let charges = self.reservations[index].charges[rule].clone();
            let charged: u64 = charges.iter().map(|(_, units)| units).sum();
            let used = of.units(actual);
            is_above |= used > charged;
            self.add(rule, used.saturating_sub(charged));
            let mut left = charged.saturating_sub(used);
            for (charged_in, units) in charges.iter().rev() {
                let back = left.min(*units);
                left -= back;
                self.refund(rule, *charged_in, back);
            }
        }
        let reservation = &mut self.reservations[index];
        (reservation.settled, reservation.amounts) = (true, actual);
        is_above
    }

    /// A period that is over hands on what it left: later refunds do not change it.
    fn refund(&mut self, rule: usize, charged_in: u64, units: u64) {
        if rule != PLAN || charged_in == self.period() {
            self.used[rule].entry(charged_in).and_modify(|used| *used -= units);
        }
    }
}
