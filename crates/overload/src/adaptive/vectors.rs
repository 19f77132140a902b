//! The published vectors (`vectors/adaptive.json`), field by field. A field that no test reads is an error.

use serde_json::{Map, Value};
use tollgate_core::{Span, Time};

use super::*;
use crate::client_throttle::reject_probability;
use crate::fleet_shedder::fleet_admits;
use crate::utilisation::{UtilisationConfig, UtilisationShedder};

const TOLERANCE: f64 = 1e-6;

/// An object whose fields are taken out one by one.
struct Fields(Map<String, Value>);

impl Fields {
    fn of(value: &Value) -> Fields {
        Fields(value.as_object().expect("an object").clone())
    }

    fn take(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or_else(|| panic!("{name} is missing: {:?}", self.0))
    }

    fn number(&mut self, name: &str) -> f64 {
        self.take(name).as_f64().expect("a number")
    }

    fn integer(&mut self, name: &str) -> u64 {
        self.take(name).as_u64().expect("an integer")
    }

    fn small(&mut self, name: &str) -> u32 {
        self.integer(name).try_into().expect("32 bits")
    }

    fn boolean(&mut self, name: &str) -> bool {
        self.take(name).as_bool().expect("true or false")
    }

    fn sample(&mut self) -> RttSample {
        let dropped = self.0.contains_key("dropped") && self.boolean("dropped");
        RttSample { rtt: Span::from_nanos(self.integer("rtt_ns")), in_flight: self.small("inflight"), dropped }
    }

    #[track_caller]
    fn expect(&mut self, name: &str, found: f64, tolerance: f64) {
        let wanted = self.number(name);
        assert!((wanted - found).abs() <= tolerance, "{name}: {wanted} wanted, {found} found");
    }

    #[track_caller]
    fn done(self) {
        assert!(self.0.is_empty(), "fields that no test reads: {:?}", self.0);
    }
}

/// The configuration and the steps of a case; the cases are checked off in `every_case_has_a_test`.
fn case(name: &str) -> (Fields, Vec<Fields>) {
    let all = cases();
    let case = all.iter().find(|case| case["name"] == name).expect("the case");
    let steps: Vec<Fields> = case["steps"].as_array().expect("steps").iter().map(Fields::of).collect();
    assert!(!steps.is_empty());
    (Fields::of(&case["config"]), steps)
}

fn cases() -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("../../vectors/adaptive.json")).expect("JSON");
    let mut file = Fields::of(&file);
    file.take("note");
    let cases = file.take("cases").as_array().expect("cases").clone();
    file.done();
    cases
}

#[test]
fn every_case_has_a_test() {
    let mut names = Vec::new();
    for case in cases() {
        let mut fields = Fields::of(&case);
        names.push(fields.take("name").as_str().expect("a name").to_owned());
        fields.take("config");
        fields.take("steps");
        fields.done();
    }
    let tested = [
        "aimd",
        "vegas",
        "gradient2",
        "envoy_gradient",
        "sre_client_throttling",
        "worker_utilisation_shedder",
        "fleet_usage_shedder",
    ];
    assert_eq!(names, tested);
}

#[test]
fn aimd() {
    let (mut config, steps) = case("aimd");
    let mut aimd = Aimd::new(config.small("initial"), config.small("min"), config.small("max"));
    aimd.backoff = config.number("backoff");
    aimd.timeout = Span::from_nanos(config.integer("timeout_ns"));
    config.done();
    for mut step in steps {
        aimd.record(step.sample());
        step.expect("limit", f64::from(aimd.limit()), 0.0);
        step.done();
    }
}

#[test]
fn vegas() {
    let (mut config, steps) = case("vegas");
    let mut vegas = Vegas::new(config.small("initial"), 1, config.small("max"));
    vegas.smoothing = config.number("smoothing");
    vegas.probe = config.take("probe") != "disabled";
    config.done();
    for mut step in steps {
        vegas.record(step.sample(), 0);
        step.expect("limit", f64::from(vegas.limit()), 0.0);
        step.expect("estimate", vegas.estimate(), TOLERANCE);
        step.expect("rtt_noload_ns", vegas.rtt_noload().nanos() as f64, 0.0);
        step.done();
    }
}

#[test]
fn gradient2() {
    let (mut config, steps) = case("gradient2");
    let mut gradient = Gradient2::new(config.small("initial"), config.small("min"), config.small("max"));
    gradient.smoothing = config.number("smoothing");
    gradient.queue = config.small("queue_size");
    gradient.long_window = config.small("long_window");
    gradient.tolerance = config.number("tolerance");
    assert_eq!(config.small("warmup"), super::gradient2::WARMUP);
    config.done();
    for mut step in steps {
        gradient.record(step.sample());
        step.expect("limit", f64::from(gradient.limit()), 0.0);
        step.expect("estimate", gradient.estimate(), TOLERANCE);
        step.expect("long_rtt_ns", gradient.long_rtt_nanos(), 1e-3);
        step.done();
    }
}

#[test]
fn envoy_gradient() {
    let (mut config, steps) = case("envoy_gradient");
    let mut envoy =
        EnvoyGradient::new(GradientMode::Published, 3, config.small("min_concurrency"), config.small("max_limit"));
    envoy.buffer = config.number("buffer");
    config.done();
    for mut step in steps {
        let micros = |step: &mut Fields, name| Span::from_nanos(step.integer(name) * 1_000);
        let (limit, best) = (step.small("limit"), micros(&mut step, "min_rtt_us"));
        let (gradient, next) = envoy.step(limit, best, micros(&mut step, "sample_rtt_us"));
        step.expect("gradient", gradient, TOLERANCE);
        step.expect("new_limit", f64::from(next), 0.0);
        step.done();
    }
}

#[test]
fn sre_client_throttling() {
    let (mut config, steps) = case("sre_client_throttling");
    assert_eq!(config.take("window"), "2 minutes");
    assert_eq!(crate::ThrottleConfig::default().window, Span::from_secs(120));
    config.done();
    for mut step in steps {
        let (requests, accepts, k) = (step.integer("requests"), step.integer("accepts"), step.number("k"));
        step.expect("reject_probability", reject_probability(requests, accepts, k), TOLERANCE);
        let counted = throttle_after(requests, accepts, k);
        assert!((counted - reject_probability(requests, accepts, k).min(0.95)).abs() <= TOLERANCE);
        step.done();
    }
}

/// The probability of a throttle that counted this.
fn throttle_after(requests: u64, accepts: u64, k: f64) -> f64 {
    let mut throttle = crate::ClientThrottle::new(crate::ThrottleConfig { k, ..crate::ThrottleConfig::default() });
    let now = Time::from_secs(1_000);
    for _ in 0..requests {
        throttle.admits(now, u64::MAX);
    }
    for _ in 0..accepts {
        throttle.accepted(now);
    }
    throttle.probability(now)
}

#[test]
fn worker_utilisation_shedder() {
    let (mut config, steps) = case("worker_utilisation_shedder");
    let mut shedder = UtilisationShedder::new(UtilisationConfig {
        good: config.number("good"),
        bad: config.number("bad"),
        wait: Span::from_secs(config.integer("wait_s")),
        ramp: Span::from_secs(config.integer("ramp_s")),
    });
    config.done();
    for mut step in steps {
        shedder.record(Time::from_secs(1_000 + step.integer("now_s")), step.number("utilisation"));
        step.expect("drop_probability", shedder.drop_probability(), TOLERANCE);
        step.expect("amount", shedder.amount(), TOLERANCE);
        step.done();
    }
}

#[test]
fn fleet_usage_shedder() {
    let (config, steps) = case("fleet_usage_shedder");
    config.done();
    for mut step in steps {
        let (in_use, capacity) = (step.integer("in_use"), step.integer("capacity"));
        let allowed = fleet_admits(in_use, capacity, step.small("reserved_percent"), step.boolean("critical"));
        assert_eq!(allowed, step.boolean("allowed"));
        step.done();
    }
}
