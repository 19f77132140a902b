//! The published vectors, through the table.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../testkit/vectors/headers.json")).unwrap()
}

fn policy(vector: &Value) -> Policy<'_> {
    let number = |field: &str| vector.get(field).and_then(Value::as_u64);
    let text = |field: &str| vector.get(field).and_then(Value::as_str);
    let (quota, next) = (number("quota").unwrap(), number("t_ns").map(Span::from_nanos));
    Policy {
        name: text("name").unwrap(),
        resource: "",
        quota,
        window: number("window_s"),
        limit: quota,
        unit: text("unit").map(|unit| {
            assert_eq!(unit, "concurrent-requests");
            "concurrent-requests"
        }),
        remaining: number("remaining").unwrap(),
        used: number("used").unwrap_or(0),
        next,
        reset: Some(next.unwrap_or(Span::ZERO)), // the vectors are of windows, where both are the window's end
        partition: text("pk").map(str::as_bytes),
    }
}

fn render(style: &str, now: Time, policies: &[Policy<'_>]) -> BTreeMap<String, String> {
    let mut fields = HeaderFields::default();
    write_fields(style.parse().unwrap(), now, policies.first(), policies.iter().copied(), &mut fields);
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    fields.iter().map(|(name, value)| (name.to_owned(), text(value))).collect()
}

fn expected(vector: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(vector["expect"].clone()).unwrap()
}

#[test]
fn every_style_reads_as_published() {
    let vectors = vectors();
    let input = &vectors["styles"]["input"];
    let now = Time::from_secs(input["now_unix_s"].as_u64().unwrap());
    let names = [
        ("draft-08-to-11", "draft-11"),
        ("draft-07", "draft-07"),
        ("draft-04-to-06", "draft-06"),
        ("envoy-draft-polli-03", "envoy"),
        ("x-ratelimit-delta", "x-ratelimit-delta"),
        ("github-epoch", "github"),
        ("x-twitter-epoch", "twitter"),
    ];
    let published = vectors["styles"]["expect"].as_object().unwrap();
    assert_eq!(published.len(), names.len());
    for (theirs, ours) in names {
        let mut fields = render(ours, now, &[policy(input)]);
        fields.remove("X-RateLimit-Resource"); // the vectors know of no resources
        fields.remove("x-rate-limit-resource");
        let expect: BTreeMap<String, String> = serde_json::from_value(published[theirs].clone()).unwrap();
        assert_eq!(fields, expect, "{ours}");
    }
}

#[test]
fn every_case_reads_as_published() {
    let vectors = vectors();
    for case in vectors["cases"].as_array().unwrap() {
        let policies: Vec<Policy<'_>> = case["policies"].as_array().unwrap().iter().map(policy).collect();
        let mut fields = render("draft-11", Time::ZERO, &policies);
        if let Some(wait) = case["retry_after_ns"].as_u64().map(Span::from_nanos) {
            let next = policies[0].next;
            let retry = RetryHint::of(tollgate_core::Wait::For(wait), next, Default::default(), 0);
            let RetryHint::After { secs, .. } = retry else { panic!("{retry:?}") };
            fields.insert("Retry-After".to_owned(), secs.to_string());
        }
        assert_eq!(fields, expected(case), "{}", case["name"]);
    }
}

/// Rules refuse such names; were one to come by another way, it would not break the field.
#[test]
fn names_that_no_field_can_hold_are_encoded() {
    let vectors = vectors();
    let cases = vectors["invalid_policy_names"].as_array().unwrap();
    let written = ["caf%C3%A9", "tab%09", "new%0Aline", "%7F"];
    assert_eq!(cases.len(), written.len());
    let base = policy(&vectors["styles"]["input"]);
    for (case, written) in cases.iter().zip(written) {
        let name = case["name"].as_str().unwrap();
        let fields = render("draft-11,x-ratelimit", Time::ZERO, &[Policy { name, resource: name, ..base }]);
        assert_eq!(fields["RateLimit"], format!("\"{written}\";r=50;t=30"));
        assert_eq!(fields["X-RateLimit-Resource"], written);
        let rules = format!("rules: [{{ name: {name:?}, key_by: ip, limit: {{ requests: 1, window: 1s }} }}]");
        let report = tollgate_rules::read("rules.yaml", &rules.replace("\\u{7f}", "\\x7f")).unwrap_err().to_string();
        assert!(report.contains("bad-name"), "{report}");
    }
}

#[test]
fn what_has_no_window_has_no_field_named_after_one() {
    let vectors = vectors();
    let minute = policy(&vectors["styles"]["input"]);
    let odd = Policy { window: Some(7), ..minute };
    let fields = render("kong", Time::ZERO, &[odd, minute]);
    let names: Vec<&str> = fields.keys().map(String::as_str).collect();
    assert_eq!(names, ["X-RateLimit-Limit-Minute", "X-RateLimit-Remaining-Minute"]);
    assert!(render("kong", Time::ZERO, &[odd]).is_empty());
    assert!(render("none", Time::ZERO, &[minute]).is_empty());
}

#[test]
fn a_burst_of_its_own_is_said() {
    let vectors = vectors();
    let burst = Policy { limit: 20, remaining: 20, next: None, ..policy(&vectors["styles"]["input"]) };
    let said = |style| render(style, Time::ZERO, &[burst]).into_iter().collect::<Vec<_>>();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let item = "\"default\";q=100;w=60;tollgate-burst=20";
    assert_eq!(said("draft-11"), [pair("RateLimit", "\"default\";r=20"), pair("RateLimit-Policy", item)]);
    let both =
        [pair("RateLimit", "limit=20, remaining=20, reset=0"), pair("RateLimit-Policy", "100;w=60;tollgate-burst=20")];
    assert_eq!(said("draft-07"), both);
}
