//! `meter`, `unmetered` and `limit.amount`.

use super::*;
use crate::spec::{MeterSpec, Unmetered};

fn metered(fields: &str) -> Result<RuleSpec, Report> {
    only_rule(&format!("limit: {{ amount: 10, window: 1s }}\n    {fields}"))
}

#[test]
fn a_rule_counts_requests_unless_it_names_a_meter() {
    let plain = only_rule("limit: { requests: 10, window: 1s }").unwrap();
    assert_eq!((&plain.meter, plain.unmetered), (&MeterSpec::Requests, Unmetered::Skip));
    for same in ["meter: requests", "meter: { requests: 1 }", "unmetered: skip"] {
        let rule = metered(same).unwrap();
        assert_eq!(RuleSpec { at: plain.at, ..rule }, plain, "{same}: `amount` says the same as `requests`");
    }
}

#[test]
fn meters_have_names_and_weights() {
    let weighted = |weights: &[(&str, u64)]| {
        MeterSpec::Weighted(weights.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect())
    };
    let one = metered("meter: output_tokens\n    unmetered: reject").unwrap();
    assert_eq!((one.meter, one.unmetered), (weighted(&[("output_tokens", 1)]), Unmetered::Reject));
    let credits = metered("meter: { input_tokens: 1, output_tokens: 4 }").unwrap().meter;
    assert_eq!(credits, weighted(&[("input_tokens", 1), ("output_tokens", 4)]));
    assert_eq!(credits.weights().collect::<Vec<_>>(), [("input_tokens", 1), ("output_tokens", 4)]);
    assert_eq!(metered("meter: { requests: 5 }").unwrap().meter, weighted(&[("requests", 5)]));
}

#[test]
fn mistakes_in_meters_are_named() {
    let many: Vec<String> = (0..17).map(|number| format!("m{number}: 1")).collect();
    let many = format!("meter: {{ {} }}", many.join(", "));
    let cases = [
        ("meter: Output", "bad-meter", "rules[0].meter"),
        ("meter: \"\"", "blank", "rules[0].meter"),
        ("meter: \"two words\"", "bad-meter", "rules[0].meter"),
        ("meter: {}", "bad-meter", "rules[0].meter"),
        (&many, "bad-meter", "rules[0].meter"),
        ("meter: { Tokens: 1 }", "bad-meter", "rules[0].meter.Tokens"),
        ("meter: { tokens: 0 }", "out-of-range", "rules[0].meter.tokens"),
        ("meter: { tokens: -1 }", "out-of-range", "rules[0].meter.tokens"),
        ("meter: { tokens: 1.5 }", "wrong-type", "rules[0].meter.tokens"),
        ("meter: { tokens: 1000001 }", "out-of-range", "rules[0].meter.tokens"),
        ("meter: { tokens: many }", "wrong-type", "rules[0].meter.tokens"),
        ("meter: { tokens: 1, tokens: 2 }", "duplicate-key", ""),
        ("meter: tokens\n    unmetered: maybe", "unknown-value", "rules[0].unmetered"),
        ("unmetered: reject", "misplaced-field", "rules[0].unmetered"),
    ];
    for (fields, code, field) in cases {
        let report = metered(fields).expect_err(fields);
        let found: Vec<_> = report.problems.iter().map(|problem| (problem.code, problem.field.as_str())).collect();
        assert_eq!(found, [(code, field)], "{fields}\n{report}");
    }
}

#[test]
fn slots_and_exemptions_have_no_meter() {
    for limit in ["limit: { algorithm: concurrency, slots: 3 }", "unlimited: true"] {
        let report = only_rule(&format!("{limit}\n    meter: output_tokens")).expect_err(limit);
        assert_eq!((report.problems[0].code, report.problems[0].field.as_str()), ("misplaced-field", "rules[0].meter"));
    }
}

#[test]
fn an_amount_is_given_once() {
    let problem = |limit: &str| only_rule(&format!("limit: {{ {limit} }}")).expect_err(limit).problems.remove(0);
    let twice = problem("requests: 10, amount: 10, window: 1s");
    assert_eq!((twice.code, twice.field.as_str()), ("duplicate-field", "rules[0].limit.amount"));
    let slots = problem("algorithm: concurrency, slots: 3, amount: 10");
    assert_eq!((slots.code, slots.field.as_str()), ("misplaced-field", "rules[0].limit.amount"));
    let help = slots.help.unwrap_or_default();
    assert!(help.contains("`amount` is for token_bucket, gcra, leaky_bucket, fixed_window"), "{help}");
}
