//! Traffic over time: series, refusals, and clocks that go back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use tollgate_analytics::{
    ClientEffect, DecisionFilter, DecisionSample, LimitChange, Ranking, RecentDecision, Resolution, RuleIndex,
    RulingSample, Traffic, TrafficBudget, TrafficCounts, TrafficSeries,
};
use tollgate_core::{Limit, Outcome, Span, Time, Wait};

const START: Time = Time::from_secs(1_800_000_000);

struct Bench {
    traffic: Traffic,
    namespace: RuleIndex,
    rule: RuleIndex,
    next: u64,
}

impl Bench {
    fn new() -> Bench {
        let mut traffic = Traffic::new(TrafficBudget::of(4 << 20));
        let (namespace, rule) = (traffic.rule("default", ""), traffic.rule("default", "orders"));
        Bench { traffic, namespace, rule, next: 1 }
    }

    /// A decision about `client` at a second, in a limit of ten.
    fn decide(&mut self, client: u64, second: u64, is_refused: bool, is_enforced: bool) {
        let unused = Limit::per_minute(10).unwrap().unused(Time::ZERO);
        let outcome = Outcome {
            allowed: !is_refused,
            used: if is_refused { 10 } else { 6 },
            granted: u64::from(!is_refused),
            wait: if is_refused { Wait::For(Span::from_secs(5)) } else { Wait::None },
            reset_after: Span::from_secs(60),
            ..unused
        };
        let ruling = RulingSample {
            rule: self.rule,
            is_enforced,
            is_refused,
            mode: "store",
            outcome: Some(outcome),
            requests: 10,
            window: Span::from_secs(60),
        };
        let sample = DecisionSample {
            id: self.next,
            at: START.after(Span::from_secs(second)),
            namespace: "default",
            client: &format!("user:{client}"),
            key: client,
            is_allowed: !(is_refused && is_enforced),
            cost: 1,
            mode: "store",
            generation: 1,
            deciding: Some(0),
            rulings: &[ruling],
        };
        self.next += 1;
        self.traffic.record(&sample, self.namespace);
    }

    fn at(second: u64) -> Time {
        START.after(Span::from_secs(second))
    }
}

fn sum(series: &TrafficSeries) -> TrafficCounts {
    series.steps.iter().copied().sum()
}

#[test]
fn counts_are_found_again_in_every_resolution() {
    let mut bench = Bench::new();
    (0..120).for_each(|second| bench.decide(7, second, second % 4 == 0, true));
    for (resolution, steps) in [(Resolution::Second, 200), (Resolution::Minute, 10), (Resolution::Hour, 2)] {
        let series = bench.traffic.series(bench.rule, resolution, Bench::at(119), steps);
        let expected = TrafficCounts { allowed: 90, denied: 30, shadow_denied: 0, cost: 90 };
        assert_eq!((series.steps.len(), sum(&series)), (steps, expected), "{resolution:?}");
    }
    let client = bench.traffic.client_series(7, Some(bench.rule), Resolution::Second, Bench::at(119), 120);
    assert!(sum(&client).requests() >= 110, "all but the first ones: {:?}", sum(&client));
    assert_eq!(
        sum(&bench.traffic.client_series(8, None, Resolution::Second, Bench::at(119), 120)),
        TrafficCounts::default()
    );
}

#[test]
fn a_client_is_limited_since_its_first_refusal_and_until_it_may_return() {
    let mut bench = Bench::new();
    [10, 12, 14].into_iter().for_each(|second| bench.decide(7, second, true, true));
    bench.decide(8, 14, false, true);
    assert_eq!(bench.traffic.limited_now(Bench::at(15), |_| true), (1, true));
    assert_eq!(bench.traffic.limited_now(Bench::at(15), |namespace| namespace == "other"), (0, true));
    assert_eq!(bench.traffic.limited_now(Bench::at(20), |_| true), (0, true), "it may return after five seconds");
    let [(rule, limited)] = bench.traffic.limits_of(7).try_into().unwrap();
    assert_eq!((rule, limited.since, limited.until), (bench.rule, Bench::at(10), Some(Bench::at(19))));
    bench.decide(7, 200, true, true);
    assert_eq!(bench.traffic.limits_of(7)[0].1.since, Bench::at(200), "another time of being limited");
}

#[test]
fn rankings_tell_refusals_from_those_in_shadow() {
    let mut bench = Bench::new();
    (0..5).for_each(|second| bench.decide(1, second, true, true));
    (0..3).for_each(|second| bench.decide(2, second + 2, true, true));
    (0..9).for_each(|second| bench.decide(3, second, true, false));
    (0..4).for_each(|second| bench.decide(4, second, false, true));
    let top = |by| {
        let top = bench.traffic.top(by, Bench::at(9), 10, |_, _| true);
        top.clients.iter().map(|own| (own.key, own.count)).collect::<Vec<_>>()
    };
    assert_eq!(top(Ranking::Denied), [(1, 5), (2, 3)]);
    assert_eq!(top(Ranking::NewlyDenied), [(2, 3), (1, 5)]);
    assert_eq!(top(Ranking::ShadowDenied), [(3, 9)]);
    assert_eq!(top(Ranking::Closest).last(), Some(&(4, 6)), "six of ten");
    assert!(bench.traffic.top(Ranking::Denied, Bench::at(9), 10, |_, rule| rule == "other").clients.is_empty());
}

#[test]
fn recent_decisions_are_found_by_client_rule_and_id() {
    let mut bench = Bench::new();
    (0..10).for_each(|second| bench.decide(second % 2, second, second % 3 == 0, true));
    let recent = bench.traffic.recent();
    let all = recent.find(&DecisionFilter::default(), 100);
    assert!(all.is_sorted_by(|a, b| a.at >= b.at) && all.len() == 10);
    let refused = DecisionFilter { keys: Some(vec![1]), is_allowed: Some(false), ..DecisionFilter::default() };
    let refused: Vec<u64> = recent.find(&refused, 100).iter().map(|own| own.id).collect();
    assert_eq!(refused, [10, 4]);
    assert_eq!(recent.get(4).unwrap().rulings[0].limited_since, Some(Bench::at(3)));
    assert!(recent.get(99).is_none());
    let before = recent.get(6).map(RecentDecision::place);
    let before = DecisionFilter { before, ..DecisionFilter::default() };
    assert_eq!(recent.find(&before, 2).iter().map(|own| own.id).collect::<Vec<_>>(), [5, 4]);
}

#[test]
fn time_that_goes_back_loses_nothing_and_breaks_nothing() {
    let mut bench = Bench::new();
    for second in [1_000, 0, 500, 1_001, 2_000_000, 3] {
        bench.decide(7, second, true, true);
    }
    let hour = bench.traffic.series(bench.rule, Resolution::Second, Bench::at(1_001), 1_100);
    assert_eq!(sum(&hour).denied, 5);
    assert!(bench.traffic.limited_now(Bench::at(0), |_| true).1);
    assert_eq!(bench.traffic.totals(Bench::at(0), 10, |_| true).iter().filter(|own| own.rule == "orders").count(), 1);
}

#[test]
fn rules_that_are_gone_are_forgotten_and_others_keep_their_series() {
    let mut bench = Bench::new();
    bench.decide(7, 1, false, true);
    let gone = bench.traffic.rule("default", "gone");
    assert_ne!(gone, bench.rule);
    bench.traffic.keep_rules(|_, rule| rule != "gone");
    assert!(bench.traffic.find("default", "gone").is_none());
    let rule = bench.traffic.find("default", "orders").unwrap();
    assert_eq!(sum(&bench.traffic.series(rule, Resolution::Second, Bench::at(1), 5)).allowed, 1);
}

#[test]
fn another_limit_is_tried_on_what_was_recorded() {
    let steps = |requests: &[u64]| TrafficSeries {
        start: START,
        resolution: Resolution::Second,
        steps: requests
            .iter()
            .map(|allowed| TrafficCounts { allowed: *allowed, cost: *allowed, ..TrafficCounts::default() })
            .collect(),
    };
    let bucket = |units, burst| LimitChange { units, window: Span::SECOND, burst: Some(burst) };
    let effect = |change: LimitChange, requests: &[u64]| {
        let ClientEffect { refused_min, refused_max, .. } = change.effect_on(&steps(requests));
        (refused_min, refused_max)
    };
    assert_eq!(effect(bucket(10, 10), &[5, 5, 5]), (0, 0), "half of the rate");
    let (least, most) = effect(bucket(10, 10), &[30, 0, 30]);
    assert!(least <= most && (20..=40).contains(&least) && most == 40, "{least} to {most}");
    assert_eq!(effect(bucket(0, 0), &[3, 4]), (7, 7), "a limit of zero refuses all");
    let window = LimitChange { units: 6, window: Span::from_secs(3), burst: None };
    assert_eq!(effect(window, &[6, 0, 0, 6, 0, 0]).0, 0, "a window of three seconds");
    assert_eq!(effect(window, &[6, 6, 6]), (12, 12));
}
