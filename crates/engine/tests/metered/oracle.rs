//! Random sequences of reservations, extensions, settlements and time, against a model that keeps every charge.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{FailurePersistence, FileFailurePersistence};
use tollgate_core::Time;
use tollgate_engine::Extension;

use crate::model::{
    Amounts, METERED, MODEL_RULES, Model, ModelReservation, ModelVariant, PLAN, REMEMBERED, REMEMBERED_ABOVE, START,
    TTL,
};
use crate::rig::{CarriedReceipt, TwoNodes, carried, fleet, opened};

#[derive(Clone, Debug)]
enum Step {
    Reserve(Amounts),
    Extend {
        which: usize,
        old: bool,
        more: Amounts,
    },
    Settle {
        which: usize,
        old: bool,
        actual: Amounts,
    },
    Advance(u64),
    /// To this many seconds after the end of the quota's period; a period may pass without a charge.
    NextPeriod {
        whole: u64,
        seconds: u64,
    },
}

fn amounts() -> impl Strategy<Value = Amounts> {
    let tokens = |most: u64| prop_oneof![Just(0), 0..most];
    (0..4_u64, tokens(400), tokens(200)).prop_map(|(requests, input, output)| [requests, input, output])
}

fn steps(variant: ModelVariant) -> impl Strategy<Value = Vec<Step>> {
    let turn = move |(whole, seconds)| match variant {
        ModelVariant::Hours => Step::Advance(seconds),
        ModelVariant::Days => Step::NextPeriod { whole, seconds },
    };
    let old = || prop::bool::weighted(0.2);
    let step = prop_oneof![
        4 => amounts().prop_map(Step::Reserve),
        5 => (any::<usize>(), old(), amounts()).prop_map(|(which, old, more)| Step::Extend { which, old, more }),
        4 => (any::<usize>(), old(), amounts()).prop_map(|(which, old, actual)| Step::Settle { which, old, actual }),
        2 => (0..50_u64).prop_map(Step::Advance),
        1 => (50..400_u64).prop_map(Step::Advance),
        2 => (0..2_u64, 0..50_u64).prop_map(turn),
    ];
    vec(step, 1..60)
}

fn named([requests, input, output]: Amounts) -> [(&'static str, u64); 3] {
    [("requests", requests), ("input_tokens", input), ("output_tokens", output)]
}

async fn reserve(fleet: &TwoNodes, model: &mut Model, amounts: Amounts) {
    let [_, input, output] = named(amounts);
    let (decision, receipt) = fleet.reserve_at(amounts[0], &[input, output]).await;
    let expected = model.fits(amounts) && model.has_slot();
    assert_eq!(decision.is_allowed(), expected, "reserve {amounts:?}");
    if let Some(receipt) = receipt {
        let charges = model.charge(amounts).map(|charge| vec![charge]);
        let (held_until, receipts) = (model.now + TTL, vec![(receipt, 0)]);
        let (period, granted) = (model.period(), model.granted());
        let one = ModelReservation { amounts, charges, held_until, receipts, settled: false, period, granted };
        model.reservations.push(one);
    }
}

/// One of the receipts, and whether it is the latest. An old one is void only for a while, and the limits of a receipt
/// name the period of the quota in which it was made and the next one.
fn pick(model: &Model, which: usize, old: bool) -> Option<(usize, CarriedReceipt, bool)> {
    let index = which.checked_rem(model.reservations.len())?;
    let receipts = &model.reservations[index].receipts;
    let place = if old { which / 7 % receipts.len() } else { receipts.len() - 1 };
    let (receipt, void_until) = &receipts[place];
    let latest = place == receipts.len() - 1;
    let is_near = model.period() <= model.reservations[index].period + 1;
    let usable = is_near && (*void_until == 0 || model.now < *void_until);
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
            assert!(expired || !model.step_fits(index, more), "denied with room for {more:?}");
        }
        Extension::Granted(_, extended) => {
            assert!(latest && !reservation.settled && !expired && model.step_fits(index, more), "granted {more:?}");
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

fn advance(fleet: &TwoNodes, model: &mut Model, seconds: u64) {
    model.now += seconds;
    fleet.clock.set(Time::from_secs(model.now));
}

async fn play(variant: ModelVariant, steps: Vec<Step>) {
    let (fleet, mut model) = (fleet(&variant.rules()), Model::new());
    for step in steps {
        match step.clone() {
            Step::Reserve(amounts) => reserve(&fleet, &mut model, amounts).await,
            Step::Extend { which, old, more } => extend(&fleet, &mut model, which, old, more).await,
            Step::Settle { which, old, actual } => settle(&fleet, &mut model, which, old, actual).await,
            Step::Advance(seconds) => advance(&fleet, &mut model, seconds),
            Step::NextPeriod { whole, seconds } => {
                let end = model.period_end() + whole * 86_400;
                let seconds = end + seconds - model.now;
                advance(&fleet, &mut model, seconds);
            }
        }
        assert_eq!(fleet.usage().await, model.usage(), "after {step:?}");
    }
    settled_sums(&fleet, &model).await;
}

/// What is left of the charges is what the reservations used, where no refund came too late.
async fn settled_sums(fleet: &TwoNodes, model: &Model) {
    let usage = fleet.usage().await;
    for rule in (0..METERED).filter(|rule| MODEL_RULES[*rule].window > 3600 && model.is_all_in_one_window(*rule)) {
        let sum: u64 = model.reservations.iter().map(|one| MODEL_RULES[rule].units(one.amounts)).sum();
        assert_eq!(usage[rule], sum, "rule {rule}");
    }
}

fn holds(variant: ModelVariant, steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(play(variant, steps));
}

/// Seeds that once failed; they run first.
const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/metered.txt");

fn config() -> ProptestConfig {
    let failure_persistence: Option<Box<dyn FailurePersistence>> =
        Some(Box::new(FileFailurePersistence::Direct(SEEDS)));
    ProptestConfig { cases: 2000, failure_persistence, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn usage_is_that_of_the_model(steps in steps(ModelVariant::Hours)) {
        holds(ModelVariant::Hours, steps);
    }

    #[test]
    fn usage_of_many_periods_is_that_of_the_model(steps in steps(ModelVariant::Days)) {
        holds(ModelVariant::Days, steps);
    }
}

/// The quota binds in the sequences: overdraft, a grant, the end of a period with a rollover, and a grant in the next one.
#[tokio::test]
async fn the_model_knows_the_quota() {
    let (fleet, mut model) = (fleet(&ModelVariant::Days.rules()), Model::new());
    for (at, amounts, fits) in [
        (0, [0, 841, 0], false),
        (300, [0, 991, 0], false),
        (300, [0, 0, 100], true),
        (600, [0, 961, 20], false),
        (720, [0, 961, 59], true),
        (720, [0, 0, 1], false),
        (1800, [0, 0, 1], false),
    ] {
        let seconds = START + at - model.now;
        advance(&fleet, &mut model, seconds);
        let before = model.reservations.len();
        reserve(&fleet, &mut model, amounts).await;
        assert_eq!((model.reservations.len() > before, fleet.usage().await), (fits, model.usage()), "at {at}");
    }
    assert_eq!(model.count(PLAN), 1079, "of 800, 160 carried, 40 overdraft and 80 granted");
}
