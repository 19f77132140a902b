//! Random sequences of reservations, extensions, settlements and time, against a model that keeps every charge.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_core::Span;
use tollgate_engine::Extension;

use crate::rig::{CarriedReceipt, TwoNodes, carried, fleet, opened};

/// A token bucket that returns no unit within a sequence, windows of an hour and of a day, and slots of a minute.
const RULES: &str = "rules:
  - { name: requests, key_by: user_id, limit: { requests: 12, window: 1h, algorithm: fixed_window } }
  - { name: input, key_by: user_id, meter: input_tokens, max_debt: 100000, limit: { amount: 1000, window: 366d } }
  - { name: output, key_by: user_id, meter: output_tokens, limit: { amount: 500, window: 1h, algorithm: fixed_window } }
  - name: credits
    key_by: user_id
    meter: { input_tokens: 1, output_tokens: 4 }
    limit: { amount: 2500, window: 1d, algorithm: fixed_window }
  - { name: flight, key_by: user_id, limit: { algorithm: concurrency, slots: 3, slot_ttl: 60s } }
";

const SLOTS: usize = 3;
const TTL: u64 = 60;
/// How long old receipts are void. The model does not use them later.
const REMEMBERED: u64 = 60;
/// The same of receipts that were settled above their estimate.
const REMEMBERED_ABOVE: u64 = 24 * 3600;

/// Requests, tokens in and tokens out.
type Amounts = [u64; 3];

/// Limit, window in seconds, and weights of a rule.
struct ModelRule {
    limit: u64,
    window: u64,
    weights: Amounts,
}

const MODEL_RULES: [ModelRule; 4] = [
    ModelRule { limit: 12, window: 3600, weights: [1, 0, 0] },
    ModelRule { limit: 1000, window: u64::MAX, weights: [0, 1, 0] },
    ModelRule { limit: 500, window: 3600, weights: [0, 0, 1] },
    ModelRule { limit: 2500, window: 86_400, weights: [0, 1, 4] },
];

impl ModelRule {
    fn units(&self, amounts: Amounts) -> u64 {
        self.weights.iter().zip(amounts).map(|(weight, amount)| weight * amount).sum()
    }
}

#[derive(Default)]
struct ModelReservation {
    amounts: Amounts,
    /// Charges by rule: window and units, oldest first.
    charges: [Vec<(u64, u64)>; 4],
    /// Until when its slot is held.
    held_until: u64,
    /// Its receipts, and until when those that were replaced are void.
    receipts: Vec<(CarriedReceipt, u64)>,
    settled: bool,
}

/// The model: what every rule has counted, by window.
#[derive(Default)]
struct Model {
    now: u64,
    used: [BTreeMap<u64, u64>; 4],
    reservations: Vec<ModelReservation>,
}

impl Model {
    fn window(&self, rule: usize) -> u64 {
        self.now / MODEL_RULES[rule].window
    }

    fn count(&self, rule: usize) -> u64 {
        self.used[rule].get(&self.window(rule)).copied().unwrap_or(0)
    }

    fn slots(&self) -> usize {
        let held = |one: &&ModelReservation| !one.settled && one.held_until > self.now;
        self.reservations.iter().filter(held).count()
    }

    fn usage(&self) -> Vec<u64> {
        (0..4).map(|rule| self.count(rule)).chain([self.slots() as u64]).collect()
    }

    fn fits(&self, amounts: Amounts) -> bool {
        (0..4).all(|rule| self.count(rule) + MODEL_RULES[rule].units(amounts) <= MODEL_RULES[rule].limit)
    }

    /// The same for a step, which asks only rules that it charges: others may be over their limit.
    fn step_fits(&self, more: Amounts) -> bool {
        (0..4).all(|rule| {
            let units = MODEL_RULES[rule].units(more);
            units == 0 || self.count(rule) + units <= MODEL_RULES[rule].limit
        })
    }

    /// Charges all rules; returns the charges.
    fn charge(&mut self, amounts: Amounts) -> [(u64, u64); 4] {
        std::array::from_fn(|rule| {
            let (window, units) = (self.window(rule), MODEL_RULES[rule].units(amounts));
            *self.used[rule].entry(window).or_default() += units;
            (window, units)
        })
    }

    /// True if some rule was charged more.
    fn settle(&mut self, index: usize, actual: Amounts) -> bool {
        let mut is_above = false;
        for (rule, of) in MODEL_RULES.iter().enumerate() {
            let window = self.window(rule);
            let reservation = &mut self.reservations[index];
            let charged: u64 = reservation.charges[rule].iter().map(|(_, units)| units).sum();
            let used = of.units(actual);
            if used > charged {
                is_above = true;
                *self.used[rule].entry(window).or_default() += used - charged;
            }
            let mut left = charged.saturating_sub(used);
            for (charged_in, units) in reservation.charges[rule].iter().rev() {
                let back = left.min(*units);
                left -= back;
                *self.used[rule].entry(*charged_in).or_default() -= back;
            }
        }
        let reservation = &mut self.reservations[index];
        (reservation.settled, reservation.amounts) = (true, actual);
        is_above
    }
}

#[derive(Clone, Debug)]
enum Step {
    Reserve(Amounts),
    Extend { which: usize, old: bool, more: Amounts },
    Settle { which: usize, old: bool, actual: Amounts },
    Advance(u64),
}

fn amounts() -> impl Strategy<Value = Amounts> {
    let tokens = |most: u64| prop_oneof![Just(0), 0..most];
    (0..4_u64, tokens(400), tokens(200)).prop_map(|(requests, input, output)| [requests, input, output])
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let old = || prop::bool::weighted(0.2);
    let step = prop_oneof![
        4 => amounts().prop_map(Step::Reserve),
        5 => (any::<usize>(), old(), amounts()).prop_map(|(which, old, more)| Step::Extend { which, old, more }),
        4 => (any::<usize>(), old(), amounts()).prop_map(|(which, old, actual)| Step::Settle { which, old, actual }),
        2 => (0..50_u64).prop_map(Step::Advance),
        1 => (50..400_u64).prop_map(Step::Advance),
    ];
    vec(step, 1..60)
}

fn named([requests, input, output]: Amounts) -> [(&'static str, u64); 3] {
    [("requests", requests), ("input_tokens", input), ("output_tokens", output)]
}

async fn reserve(fleet: &TwoNodes, model: &mut Model, amounts: Amounts) {
    let [_, input, output] = named(amounts);
    let (decision, receipt) = fleet.reserve_at(amounts[0], &[input, output]).await;
    let expected = model.fits(amounts) && model.slots() < SLOTS;
    assert_eq!(decision.is_allowed(), expected, "reserve {amounts:?}");
    if let Some(receipt) = receipt {
        let charges = model.charge(amounts).map(|charge| vec![charge]);
        let (held_until, receipts) = (model.now + TTL, vec![(receipt, 0)]);
        model.reservations.push(ModelReservation { amounts, charges, held_until, receipts, settled: false });
    }
}

/// One of the receipts, and whether it is the latest. An old one is void only for a while.
fn pick(model: &Model, which: usize, old: bool) -> Option<(usize, CarriedReceipt, bool)> {
    let index = which.checked_rem(model.reservations.len())?;
    let receipts = &model.reservations[index].receipts;
    let place = if old { which / 7 % receipts.len() } else { receipts.len() - 1 };
    let (receipt, void_until) = &receipts[place];
    let latest = place == receipts.len() - 1;
    let usable = *void_until == 0 || model.now < *void_until;
    usable.then(|| (index, receipt.clone(), latest))
}

async fn extend(fleet: &TwoNodes, model: &mut Model, which: usize, old: bool, more: Amounts) {
    let Some((index, receipt, latest)) = pick(model, which, old) else { return };
    let engine = if which.is_multiple_of(2) { &fleet.here } else { &fleet.there };
    let extension = engine.extend(opened(&receipt), &named(more)).await.unwrap();
    let reservation = &model.reservations[index];
    let expired = reservation.held_until <= model.now;
    match extension {
        Extension::Replaced => assert!(!latest || reservation.settled, "replaced without a reason"),
        Extension::Denied { slot_lost, .. } => {
            assert!(latest && !reservation.settled, "an old receipt is replaced, not denied");
            assert_eq!(slot_lost, expired);
            assert!(expired || !model.step_fits(more), "denied with room for {more:?}");
        }
        Extension::Granted(_, extended) => {
            assert!(latest && !reservation.settled && !expired && model.step_fits(more), "granted {more:?}");
            let charges = model.charge(more);
            let void_until = model.now + REMEMBERED;
            let held_until = model.now + TTL;
            let reservation = &mut model.reservations[index];
            reservation.amounts.iter_mut().zip(more).for_each(|(amount, more)| *amount += more);
            reservation.charges.iter_mut().zip(charges).for_each(|(all, charge)| all.push(charge));
            reservation.held_until = held_until;
            reservation.receipts.last_mut().unwrap().1 = void_until;
            let amounts: Vec<u64> = extended.amounts().map(|(_, amount)| amount).collect();
            assert_eq!(amounts, reservation.amounts);
            reservation.receipts.push((carried(*extended), 0));
        }
    }
}

async fn settle(fleet: &TwoNodes, model: &mut Model, which: usize, old: bool, actual: Amounts) {
    let Some((index, receipt, latest)) = pick(model, which, old) else { return };
    let engine = if which.is_multiple_of(3) { &fleet.here } else { &fleet.there };
    let settled = engine.settle_costs(opened(&receipt), &named(actual)).await.unwrap();
    let expected = latest && !model.reservations[index].settled;
    assert_eq!(!settled.repeated, expected, "settle {actual:?}");
    if expected {
        let is_above = model.settle(index, actual);
        let void_until = model.now + if is_above { REMEMBERED_ABOVE } else { REMEMBERED };
        model.reservations[index].receipts.iter_mut().for_each(|(_, until)| *until = void_until);
    }
}

async fn play(steps: Vec<Step>) {
    let (fleet, mut model) = (fleet(RULES), Model { now: 1_800_000_000, ..Model::default() });
    for step in steps {
        match step.clone() {
            Step::Reserve(amounts) => reserve(&fleet, &mut model, amounts).await,
            Step::Extend { which, old, more } => extend(&fleet, &mut model, which, old, more).await,
            Step::Settle { which, old, actual } => settle(&fleet, &mut model, which, old, actual).await,
            Step::Advance(seconds) => {
                fleet.clock.advance(Span::from_secs(seconds));
                model.now += seconds;
            }
        }
        assert_eq!(fleet.usage().await, model.usage(), "after {step:?}");
    }
    // Settled sums: what is left of the charges of all windows is what the reservations used.
    for (rule, of) in MODEL_RULES.iter().enumerate().filter(|(_, of)| of.window > 3600) {
        let sum: u64 = model.reservations.iter().map(|one| of.units(one.amounts)).sum();
        assert_eq!(fleet.usage().await[rule], sum);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn usage_is_that_of_the_model(steps in steps()) {
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(play(steps));
    }
}
