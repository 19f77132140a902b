//! P25, in simulated time: what the default protection makes of an upstream that collapses without it.

#[path = "../examples/simulation/events.rs"]
mod events;
#[path = "../examples/simulation/gateway.rs"]
mod gateway;
#[path = "../examples/simulation/simulation.rs"]
mod simulation;
#[path = "../examples/simulation/upstream.rs"]
mod upstream;

use simulation::{CAPACITY, Load, Outcome, Simulation};
use tollgate_overload::{AdaptiveConfig, AdaptiveLimit, QueueConfig};

/// The load that suits the upstream best, in requests per second; `examples/simulation` searches for it.
const PEAK: f64 = CAPACITY * 0.85;

fn run(limit: Option<AdaptiveConfig>, load: Load) -> Outcome {
    Simulation::new(limit.map(AdaptiveLimit::new), QueueConfig::default(), load).run()
}

#[track_caller]
fn holds(outcome: &Outcome, peak: &Outcome) {
    let (goodput, p99) = (outcome.goodput() / peak.goodput(), outcome.p99_ms() / peak.p99_ms());
    assert!(goodput >= 0.9, "goodput is {goodput:.2} of that at the peak");
    assert!(p99 <= 2.0, "p99 is {p99:.2} of that at the peak");
    let critical = outcome.critical_percent();
    assert!(critical >= 99.9, "{critical:.2} % of critical requests were served");
}

#[test]
fn the_default_holds_goodput_and_latency_at_ten_times_the_peak() {
    let peak = run(None, Load::steady(PEAK));
    let alone = run(None, Load::steady(PEAK * 2.0));
    assert!(alone.goodput() < 0.1 * peak.goodput(), "without protection the upstream collapses");
    holds(&run(Some(AdaptiveConfig::default()), Load::steady(PEAK * 10.0)), &peak);
}

#[test]
fn the_default_holds_from_the_first_second_of_a_surge() {
    let peak = run(None, Load::steady(PEAK));
    holds(&run(Some(AdaptiveConfig::default()), Load::surge(PEAK / 2.0, PEAK * 10.0)), &peak);
}

#[test]
fn the_default_does_not_drift_in_minutes_of_overload() {
    let peak = run(None, Load::steady(PEAK));
    holds(&run(Some(AdaptiveConfig::default()), Load::long(PEAK * 2.0)), &peak);
}

#[test]
fn the_default_follows_an_upstream_that_became_slower() {
    let peak = run(None, Load::steady(PEAK));
    let slowed = run(Some(AdaptiveConfig::default()), Load::slowed(PEAK * 2.0));
    assert!(slowed.goodput() >= 0.9 * peak.goodput() / 2.0 && slowed.p99_ms() <= 2.0 * 2.0 * peak.p99_ms());
    assert!(slowed.limit >= 10 && slowed.critical_percent() >= 99.9);
}

#[test]
fn a_load_below_the_peak_is_not_limited() {
    let outcome = run(Some(AdaptiveConfig::default()), Load::steady(PEAK * 0.8));
    assert!(outcome.goodput() >= 0.99 * PEAK * 0.8, "{}", outcome.goodput());
}

#[test]
fn the_default_suits_an_upstream_of_many_slow_workers() {
    let peak = run(None, Load::wide(PEAK));
    let calm = run(Some(AdaptiveConfig::default()), Load::wide(PEAK * 0.8));
    assert!(calm.goodput() >= 0.99 * PEAK * 0.8, "measuring the best time sheds nothing: {}", calm.goodput());
    holds(&run(Some(AdaptiveConfig::default()), Load::wide(PEAK * 4.0)), &peak);
}
