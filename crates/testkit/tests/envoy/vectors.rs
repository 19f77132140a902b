//! The published cases, run on an engine with a manual clock and answered by the table of the specification.

use std::path::Path;

use serde_json::{Map, Value, json};
use tollgate_core::{ManualClock, Request, Span, Time};
use tollgate_engine::{Decision, Engine, Ruling};
use tollgate_rules::envoy::Unit;
use tollgate_ruleset::EnvoyRule;
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::Memory;

pub(super) fn file() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/envoy_rls.json");
    let text = std::fs::read_to_string(path).expect("the vectors are part of the repository");
    serde_json::from_str(&text).expect("JSON")
}

pub(super) fn engine(files: &str, clock: &ManualClock) -> Engine<Memory> {
    let domain = tollgate_rules::envoy::read("d.yaml", files).unwrap_or_else(|report| panic!("{report}"));
    let rules = RuleSet::assemble_with(&[], &[domain], &CompileOptions::reproducible()).expect("it compiles");
    Engine::on_clock(rules, clock.clone())
}

type Entries<'a> = Vec<(&'a str, &'a str)>;

fn entries(descriptor: &Value) -> Entries<'_> {
    let text = |value: &'_ Value| value.as_str().map(|text| text.to_owned().leak() as &str).unwrap_or_default();
    let list = descriptor["entries"].as_array().expect("entries");
    list.iter().map(|entry| (text(&entry["key"]), text(&entry["value"]))).collect()
}

/// Evaluates the descriptors of one request, and returns `statuses` and the overall code in the form of the vectors.
fn ask(engine: &Engine<Memory>, request: &Value) -> (Vec<Value>, &'static str) {
    let domain = request["domain"].as_str().expect("a domain");
    let descriptors = request["descriptors"].as_array().expect("descriptors");
    let all: Vec<Entries<'_>> = descriptors.iter().map(entries).collect();
    let hits = |descriptor: &Value| {
        descriptor["hits_addend"].as_u64().unwrap_or_else(|| request["hits_addend"].as_u64().unwrap_or(0).max(1))
    };
    let costs: Vec<u64> = descriptors.iter().map(hits).collect();
    let requests: Vec<Request<'_>> = all
        .iter()
        .zip(&costs)
        .map(|(entries, cost)| Request::new().in_namespace(domain).with_custom(entries).cost(*cost))
        .collect();
    let decision = engine.decide_all_now(&requests);
    let ruling = |number: usize| decision.rulings().iter().find(|ruling| usize::from(ruling.request) == number);
    let statuses: Vec<(Value, bool)> =
        (0..requests.len()).map(|number| status(&decision, ruling(number), &costs)).collect();
    let over = |quota: bool| statuses.iter().filter(move |(_, own)| *own == quota).map(|(status, _)| &status["code"]);
    let quotas_over = over(true).next().is_some() && over(true).all(|code| code == "OVER_LIMIT");
    let overall = over(false).any(|code| code == "OVER_LIMIT") || quotas_over;
    assert_eq!(over(false).any(|code| code == "OVER_LIMIT"), !decision.is_allowed(), "quotas never deny by themselves");
    (statuses.into_iter().map(|(status, _)| status).collect(), if overall { "OVER_LIMIT" } else { "OK" })
}

/// The status of one descriptor, and whether it is a quota.
fn status(decision: &Decision, ruling: Option<&Ruling>, costs: &[u64]) -> (Value, bool) {
    let Some(ruling) = ruling else { return (json!({ "code": "OK", "limit_remaining": 0 }), false) };
    let rule = decision.rule(ruling).and_then(|rule| rule.envoy.as_deref()).expect("a rule of the domain");
    let Some(outcome) = ruling.outcome else {
        return (json!({ "code": "OK", "limit_remaining": u32::MAX }), false);
    };
    let EnvoyRule { limit, name, shadow_mode, quota_mode, .. } = rule;
    let (requests_per_unit, unit) = limit.expect("what is counted has a limit");
    let used = decision.used_after(ruling, |request| costs[usize::from(request)]).expect("it was counted");
    let over = used > u64::from(requests_per_unit);
    let mut current = Map::new();
    current.insert("requests_per_unit".to_owned(), requests_per_unit.into());
    current.insert("unit".to_owned(), unit.name().to_uppercase().into());
    if let Some(name) = name {
        current.insert("name".to_owned(), name.clone().into());
    }
    let status = json!({
        "code": if over && !shadow_mode { "OVER_LIMIT" } else { "OK" },
        "current_limit": current,
        "limit_remaining": u64::from(requests_per_unit).saturating_sub(used),
        "duration_until_reset_s": outcome.reset_after.secs_ceil(),
    });
    (status, *quota_mode)
}

#[test]
fn agrees_with_the_published_cases() {
    let mut steps = 0;
    for case in file()["cases"].as_array().expect("a list") {
        let name = case["name"].as_str().expect("a name");
        let clock = ManualClock::at(Time::ZERO);
        let engine = engine(&case["config"].to_string(), &clock);
        for (number, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
            let now = Time::from_secs(step["now_s"].as_u64().expect("seconds"));
            clock.set(now);
            let (statuses, overall) = ask(&engine, &step["request"]);
            // Key and value are never joined here: the rule for `a_b` is not for the entry (a, b).
            if name == "underscore_collision" && number == 0 {
                assert_eq!(statuses, [json!({ "code": "OK", "limit_remaining": 0 })]);
                continue;
            }
            assert_eq!(Value::from(statuses), step["expect"]["statuses"], "{name}, step {number}");
            if case["options"]["global_shadow"] != true {
                assert_eq!(overall, step["expect"]["overall_code"], "{name}, step {number}");
            }
            steps += 1;
        }
    }
    assert!(steps > 40, "only {steps} steps");
}

fn descriptor(key: &str, value: &str) -> Value {
    json!({ "entries": [{ "key": key, "value": value }] })
}

fn codes(engine: &Engine<Memory>, descriptors: &[Value]) -> Vec<String> {
    let (statuses, _) = ask(engine, &json!({ "domain": "d", "descriptors": descriptors }));
    statuses
        .iter()
        .map(|status| format!("{} {}", status["code"].as_str().unwrap_or(""), status["limit_remaining"]))
        .collect()
}

#[test]
fn descriptors_of_one_request_that_share_a_counter_are_counted_one_after_the_other() {
    let clock = ManualClock::at(Time::from_secs(1_700_000_000));
    let engine =
        engine("domain: d\ndescriptors: [{ key: a, rate_limit: { unit: hour, requests_per_unit: 3 } }]", &clock);
    let twice = [descriptor("a", "x"), descriptor("a", "x")];
    assert_eq!(codes(&engine, &twice), ["OK 2", "OK 1"]);
    assert_eq!(codes(&engine, &twice), ["OK 0", "OVER_LIMIT 0"]);
}

#[test]
fn an_unlimited_rule_replaces_and_two_that_replace_each_other_are_both_gone() {
    let clock = ManualClock::at(Time::from_secs(1_700_000_000));
    let engine = engine(
        "domain: d
descriptors:
- { key: vip, rate_limit: { unlimited: true, replaces: [{ name: base }] } }
- { key: ip, rate_limit: { unit: hour, requests_per_unit: 1, name: base } }
- { key: one, rate_limit: { unit: hour, requests_per_unit: 1, name: one, replaces: [{ name: two }] } }
- { key: two, rate_limit: { unit: hour, requests_per_unit: 1, name: two, replaces: [{ name: one }, { name: nobody }] } }
",
        &clock,
    );
    let vip = [descriptor("vip", "x"), descriptor("ip", "1")];
    for _ in 0..3 {
        assert_eq!(codes(&engine, &vip), [&format!("OK {}", u32::MAX), "OK 0"]);
    }
    assert_eq!(codes(&engine, &vip[1..]), ["OK 0"], "nothing was counted before");
    assert_eq!(codes(&engine, &vip[1..]), ["OVER_LIMIT 0"]);
    let both = [descriptor("one", "x"), descriptor("two", "x")];
    for _ in 0..2 {
        assert_eq!(codes(&engine, &both), ["OK 0", "OK 0"]);
    }
    assert_eq!(codes(&engine, &both[..1]), ["OK 0"], "alone it counts");
    assert_eq!(codes(&engine, &both[..1]), ["OVER_LIMIT 0"]);
}

#[test]
fn a_limit_that_comes_along_replaces_what_the_tree_says() {
    use tollgate_core::AskedLimit;
    let clock = ManualClock::at(Time::from_secs(1_700_000_000));
    let engine = engine(
        "domain: d\ndescriptors: [{ key: a, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 1, name: n } }]",
        &clock,
    );
    let asked = |requests, unit: Unit| AskedLimit { requests, window: unit.window() };
    let allowed = |entries: &[(&str, &str)], limit: Option<AskedLimit>| {
        let mut request = Request::new().in_namespace("d").with_custom(entries);
        request.limit = limit;
        let decision = engine.decide_now(&request);
        let ruling = decision.rulings()[0];
        (decision.is_allowed(), ruling.outcome.expect("counted").remaining)
    };
    let known = [("a", "x")];
    for remaining in [0, 0, 0] {
        assert_eq!(allowed(&known, None), (true, remaining), "the shadow of the file");
    }
    assert_eq!(
        allowed(&known, Some(asked(2, Unit::Hour))),
        (true, 1),
        "a counter of its own, although the unit is the same"
    );
    assert_eq!(allowed(&known, Some(asked(2, Unit::Hour))), (true, 0));
    assert_eq!(allowed(&known, Some(asked(2, Unit::Hour))), (false, 0), "no shadow");
    assert_eq!(
        allowed(&known, Some(asked(9, Unit::Hour))),
        (true, 5),
        "what was counted stays when only the number changes"
    );
    assert_eq!(allowed(&known, Some(asked(2, Unit::Minute))), (true, 1), "another window is another counter");
    assert_eq!(allowed(&[("unknown", "x"), ("a", "b")], Some(asked(1, Unit::Day))), (true, 0));
    let nowhere = Request::new().in_namespace("elsewhere").with_custom(&known).asking(asked(0, Unit::Day));
    assert!(engine.decide_now(&nowhere).rulings().is_empty(), "an unknown domain has no rule at all");
    let empty = AskedLimit { requests: 1, window: Span::ZERO };
    let decision = engine.decide_now(&Request::new().in_namespace("d").with_custom(&known).asking(empty));
    assert!(matches!(decision.verdict, tollgate_engine::Verdict::Invalid(error) if error.code == "bad_limit"));
}

#[test]
fn explain_tells_the_one_rule_that_a_descriptor_is_for() {
    let clock = ManualClock::at(Time::from_secs(1_700_000_000));
    let engine = engine(
        "domain: d\ndescriptors: [{ key: a, rate_limit: { unit: hour, requests_per_unit: 1 } }, { key: a, value: x, rate_limit: { unlimited: true } }]",
        &clock,
    );
    let rules = engine.rules();
    let entries = [("a", "y")];
    let told =
        rules.rules.explain(&Request::new().in_namespace("d").with_custom(&entries), Time::ZERO).expect("readable");
    let told: Vec<String> = told.iter().map(|told| format!("{}: {:?}", told.rule.name, told.applicability)).collect();
    assert!(told[0].starts_with("override: NoMatch"), "{told:?}");
    assert!(told[1].starts_with("a: Applies"), "{told:?}");
    assert!(told[2].starts_with("a=x: NoMatch") && told[2].contains("a=y"), "{told:?}");
}
