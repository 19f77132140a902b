//! Envoy's rate limit service over native rules, asked as JSON: what the gRPC method answers too.

use serde_json::{Value, json};

use crate::rig::Rig;

const RULES: &str = "
namespace: edge
rules:
  - { name: per-key, match: { api_key: '*' }, key_by: api_key, limit: { requests: 3, window: 1m, algorithm: fixed_window } }
  - { name: per-address, match: { remote_address: '*' }, key_by: ip, limit: { requests: 100, window: 1h } }
  - { name: odd, match: { odd: '*' }, key_by: odd, limit: { requests: 7, window: 90s } }
  - { name: watched, match: { watched: '*' }, key_by: watched, mode: shadow, limit: { requests: 1, window: 1m } }
  - { name: free, match: { free: '*' }, unlimited: true }
  - { name: planned, match: { planned: '*' }, key_by: planned, accept_limits: true, limit: { requests: 9, window: 1m, algorithm: fixed_window } }
  - { name: login, match: { endpoint: 'POST /login' }, key_by: global, limit: { requests: 1, window: 1h } }
";

/// What is told of each descriptor: its code, and what is left.
fn told(answer: &Value) -> Vec<(&str, u64)> {
    let statuses = answer["statuses"].as_array().into_iter().flatten();
    statuses
        .map(|own| (own["code"].as_str().unwrap_or("none"), own["limitRemaining"].as_u64().unwrap_or_default()))
        .collect()
}

fn with(mut descriptor: Value, name: &str, value: Value) -> Value {
    descriptor[name] = value;
    descriptor
}

async fn ask(rig: &Rig, body: Value) -> (u16, Value) {
    let answer = rig.post("/json", &body.to_string()).await;
    (answer.status, answer.json())
}

fn descriptor(entries: &[(&str, &str)]) -> Value {
    let entries: Vec<Value> = entries.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
    json!({ "entries": entries })
}

fn request(descriptors: &[Value]) -> Value {
    json!({ "domain": "edge", "descriptors": descriptors })
}

fn header<'a>(answer: &'a Value, name: &str) -> Option<&'a str> {
    let headers = answer["responseHeadersToAdd"].as_array()?;
    headers.iter().find(|header| header["key"] == name)?["value"].as_str()
}

#[tokio::test]
async fn a_descriptor_is_a_request_and_a_refusal_tells_everything() {
    let rig = Rig::start(RULES);
    for left in [2, 1, 0] {
        let (status, answer) = ask(&rig, request(&[descriptor(&[("api_key", "k1")])])).await;
        assert_eq!((status, &answer["overallCode"]), (200, &json!("OK")));
        let own = &answer["statuses"][0];
        assert_eq!(own["currentLimit"], json!({ "name": "per-key", "requestsPerUnit": 3, "unit": "MINUTE" }));
        assert_eq!(own.get("limitRemaining").and_then(Value::as_u64).unwrap_or_default(), left);
        assert_eq!(answer.get("rawBody"), None);
        assert_eq!(header(&answer, "x-ratelimit-remaining"), Some(left.to_string().as_str()));
        assert_eq!(header(&answer, "content-type"), None, "Envoy would append it to the upstream's");
    }
    let (status, answer) = ask(&rig, request(&[descriptor(&[("api_key", "k1")])])).await;
    assert_eq!(
        (status, &answer["overallCode"], &answer["statuses"][0]["code"]),
        (429, &json!("OVER_LIMIT"), &json!("OVER_LIMIT"))
    );
    let until =
        answer["statuses"][0]["durationUntilReset"].as_str().unwrap().trim_end_matches('s').parse::<u64>().unwrap();
    assert!((1..=60).contains(&until), "whole seconds: {until}");
    assert_eq!(header(&answer, "content-type"), Some("application/problem+json"));
    let retry_after: u64 = header(&answer, "retry-after").unwrap().parse().unwrap();
    assert!((until..=until + until / 10 + 1).contains(&retry_after), "jitter only adds: {retry_after} for {until}");
    assert!(answer["rawBody"].as_str().unwrap().len() > 40);
    rig.end().await;
}

#[tokio::test]
async fn all_descriptors_pass_or_none_is_charged() {
    let rig = Rig::start(RULES);
    let [key, address] = [descriptor(&[("api_key", "k")]), descriptor(&[("remote_address", "192.0.2.1")])];
    for _ in 0..3 {
        assert_eq!(ask(&rig, request(std::slice::from_ref(&key))).await.0, 200);
    }
    let (status, answer) = ask(&rig, request(&[address.clone(), key.clone()])).await;
    assert_eq!(status, 429);
    let codes: Vec<&Value> = answer["statuses"].as_array().unwrap().iter().map(|status| &status["code"]).collect();
    assert_eq!(codes, ["OK", "OVER_LIMIT"], "each descriptor tells of itself");
    let (_, answer) = ask(&rig, request(&[address])).await;
    assert_eq!(answer["statuses"][0]["limitRemaining"], 99, "what was refused charged nobody");
    rig.end().await;
}

#[tokio::test]
async fn hits_are_costs_none_only_looks_and_negative_ones_come_back() {
    let rig = Rig::start(RULES);
    let with = |hits: Value| {
        let mut one = descriptor(&[("api_key", "h")]);
        one["hitsAddend"] = hits;
        one
    };
    let left = |answer: &Value| answer["statuses"][0].get("limitRemaining").and_then(Value::as_u64).unwrap_or_default();
    let (_, answer) =
        ask(&rig, json!({ "domain": "edge", "descriptors": [descriptor(&[("api_key", "h")])], "hits_addend": 2 }))
            .await;
    assert_eq!(left(&answer), 1, "the request's hits hold where a descriptor has none of its own");
    let (_, answer) = ask(&rig, request(&[with(json!(0))])).await;
    assert_eq!((&answer["overallCode"], left(&answer)), (&json!("OK"), 1), "0 looks");
    let (_, answer) = ask(&rig, request(&[with(json!("1"))])).await;
    assert_eq!(left(&answer), 0, "64-bit numbers are texts too");
    let (status, _) = ask(&rig, request(&[with(json!(0))])).await;
    assert_eq!(status, 429, "a native rule with nothing left says so");
    let mut back = with(json!(2));
    back["isNegativeHits"] = json!(true);
    let (status, answer) = ask(&rig, request(&[back])).await;
    assert_eq!((status, left(&answer)), (200, 2));
    let (status, answer) = ask(&rig, request(&[with(json!(u64::MAX))])).await;
    assert_eq!((status, &answer["overallCode"]), (429, &json!("OVER_LIMIT")), "too much is refused, not wrapped");
    let (_, answer) = ask(&rig, request(&[with(json!(1))])).await;
    assert_eq!(left(&answer), 1);
    rig.end().await;
}

#[tokio::test]
async fn what_no_rule_knows_passes_and_what_is_no_unit_has_none() {
    let rig = Rig::start(RULES);
    for domain in ["edge", "nowhere"] {
        let (status, answer) = ask(&rig, json!({ "domain": domain, "descriptors": [descriptor(&[("a", "b")])] })).await;
        assert_eq!((status, &answer["statuses"]), (200, &json!([{ "code": "OK" }])), "{domain}");
    }
    let (_, answer) = ask(&rig, request(&[descriptor(&[("odd", "x")])])).await;
    assert_eq!(answer["statuses"][0]["currentLimit"], json!({ "name": "odd", "requestsPerUnit": 7 }));
    for _ in 0..3 {
        let (status, answer) = ask(&rig, request(&[descriptor(&[("watched", "x")])])).await;
        assert_eq!((status, &answer["statuses"][0]["code"]), (200, &json!("OK")), "a shadow rule refuses nobody");
        assert_eq!(answer["statuses"][0]["currentLimit"]["name"], "watched");
    }
    let (_, answer) = ask(&rig, request(&[descriptor(&[("free", "x")])])).await;
    assert_eq!(answer["statuses"], json!([{ "code": "OK", "limitRemaining": u32::MAX }]));
    rig.end().await;
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_charges_nothing() {
    let rig = Rig::start(RULES);
    let long = "x".repeat(1025);
    let many: Vec<Value> = (0..33).map(|_| descriptor(&[("api_key", "n")])).collect();
    let entries: Vec<(&str, &str)> = (0..17).map(|_| ("api_key", "n")).collect();
    let mut odd_unit = descriptor(&[("api_key", "n")]);
    odd_unit["limit"] = json!({ "requestsPerUnit": 1, "unit": "UNKNOWN" });
    let mut no_unit = odd_unit.clone();
    no_unit["limit"]["unit"] = json!(99);
    let cases = [
        (json!({ "descriptors": [descriptor(&[("a", "b")])] }), "domain must not be empty"),
        (request(&[]), "descriptor list must not be empty"),
        (request(&[descriptor(&[("api_key", "n")]), json!({})]), "descriptors[1]: a descriptor needs an entry"),
        (request(&[descriptor(&[("", "b")])]), "a key must not be empty"),
        (request(&many), "use at most 32"),
        (request(&[descriptor(&entries)]), "use at most 16"),
        (request(&[descriptor(&[(&long[..513], "b")])]), "a key may have 512 bytes"),
        (request(&[descriptor(&[("api_key", &long)])]), "a value may have 1024 bytes"),
        (request(&[odd_unit]), "name a unit of time"),
        (request(&[no_unit]), "name a unit of time"),
        (json!({ "domain": "edge", "descriptors": {} }), "should be a list"),
        (json!({ "domain": "edge", "hits": 1 }), "there is no such field"),
        (json!({ "domain": "edge", "hitsAddend": -1 }), "should be a whole number"),
        (json!({ "domain": "edge", "hitsAddend": 4294967296_u64 }), "should be a whole number"),
        (json!([]), "should be an object"),
    ];
    for (body, why) in cases {
        let (status, answer) = ask(&rig, body.clone()).await;
        assert_eq!(status, 400, "{body}");
        assert!(answer["detail"].as_str().unwrap().contains(why), "{answer}");
    }
    assert_eq!(rig.post("/json", "{").await.status, 400);
    let (_, answer) = ask(&rig, request(&[descriptor(&[("api_key", "n")])])).await;
    assert_eq!(answer["statuses"][0]["limitRemaining"], 2);
    assert_eq!(rig.call("GET", "/healthcheck", "", "").await.body, b"OK");
    rig.end().await;
}

/// Two descriptors that find the same rule and share its count: the first one came in time, the second did not.
#[tokio::test]
async fn descriptors_of_a_domain_are_counted_one_after_the_other() {
    let rig = Rig::with(RULES, |config, dir| {
        let files = dir.join("domains");
        std::fs::create_dir(&files).unwrap();
        let shared = "\
domain: files
descriptors:
- key: plan
  value: a*
  share_threshold: true
  rate_limit: { unit: hour, requests_per_unit: 4 }
";
        std::fs::write(files.join("files.yaml"), shared).unwrap();
        config.envoy.config = Some(files);
    });
    let mut descriptors = [descriptor(&[("plan", "a1")]), descriptor(&[("plan", "a2")])];
    descriptors[1]["hitsAddend"] = json!(2);
    let body = json!({ "domain": "files", "descriptors": descriptors });
    let (status, answer) = ask(&rig, body.clone()).await;
    assert_eq!((status, told(&answer)), (200, vec![("OK", 3), ("OK", 1)]));
    let (status, answer) = ask(&rig, body.clone()).await;
    assert_eq!((status, told(&answer)), (429, vec![("OK", 0), ("OVER_LIMIT", 0)]));
    let (status, answer) = ask(&rig, body).await;
    assert_eq!((status, told(&answer)), (429, vec![("OVER_LIMIT", 0), ("OVER_LIMIT", 0)]));
    rig.end().await;
}

/// One that looks and one that charges, of one bucket: Envoy would let everything pass if that were an error.
#[tokio::test]
async fn who_looks_is_told_how_it_stood_before() {
    let rig = Rig::start(RULES);
    let key = || descriptor(&[("api_key", "k")]);
    let looks = || with(key(), "hitsAddend", json!(0));
    for (status, expected) in [
        (200, [("OK", 2), ("OK", 3)]),
        (200, [("OK", 1), ("OK", 2)]),
        (200, [("OK", 0), ("OK", 1)]),
        (429, [("OVER_LIMIT", 0), ("OVER_LIMIT", 0)]),
    ] {
        let (found, answer) = ask(&rig, request(&[key(), looks()])).await;
        assert_eq!((found, told(&answer)), (status, expected.to_vec()));
    }
    let address = || descriptor(&[("remote_address", "192.0.2.7")]);
    let (status, answer) = ask(&rig, request(&[address(), key(), looks()])).await;
    assert_eq!((status, told(&answer)[0]), (429, ("OK", 100)), "after a refusal nobody is charged");
    rig.end().await;
}

#[tokio::test]
async fn one_bucket_may_be_asked_with_two_limits() {
    let rig = Rig::with(RULES, |config, dir| {
        let files = dir.join("domains");
        std::fs::create_dir(&files).unwrap();
        std::fs::write(files.join("files.yaml"), "domain: files\ndescriptors: [{ key: a }]\n").unwrap();
        config.envoy.config = Some(files);
    });
    let limited = |key: &str, requests: u64| {
        with(descriptor(&[(key, "x")]), "limit", json!({ "requestsPerUnit": requests, "unit": "MINUTE" }))
    };
    for (domain, key) in [("edge", "planned"), ("files", "any")] {
        let descriptors = [limited(key, 5), limited(key, 2)];
        let body = json!({ "domain": domain, "descriptors": descriptors });
        let (status, answer) = ask(&rig, body.clone()).await;
        assert_eq!((status, told(&answer)), (200, vec![("OK", 4), ("OK", 0)]), "{domain}");
        let (status, answer) = ask(&rig, body).await;
        assert_eq!((status, told(&answer)[1]), (429, ("OVER_LIMIT", 0)), "{domain}");
    }
    rig.end().await;
}

#[tokio::test]
async fn whoever_gives_back_is_not_refused_and_replaces_as_others_do() {
    let rig = Rig::with(RULES, |config, dir| {
        let files = dir.join("domains");
        std::fs::create_dir(&files).unwrap();
        let text = "\
domain: files
descriptors:
- { key: base, rate_limit: { unit: hour, requests_per_unit: 1, name: base } }
- key: other
  metadata: { plan: { names: [a, 1, true, null] } }
  rate_limit: { unit: hour, requests_per_unit: 9, replaces: [{ name: base }] }
";
        std::fs::write(files.join("files.yaml"), text).unwrap();
        config.envoy.config = Some(files);
        config.envoy.dynamic_metadata = true;
    });
    let key = |hits: u64| with(descriptor(&[("api_key", "g")]), "hitsAddend", json!(hits));
    for _ in 0..2 {
        let _ = ask(&rig, request(&[key(2)])).await;
    }
    let (status, answer) = ask(&rig, request(&[with(key(0), "isNegativeHits", json!(true))])).await;
    assert_eq!((status, told(&answer)), (200, vec![("OK", 1)]));
    let _ = ask(&rig, request(&[key(1)])).await;
    let (status, answer) = ask(&rig, request(&[with(key(0), "isNegativeHits", json!(true))])).await;
    assert_eq!((status, told(&answer)), (200, vec![("OK", 0)]), "nothing is left, and nobody was refused");

    let base = || descriptor(&[("base", "x")]);
    let other = || descriptor(&[("other", "x")]);
    for _ in 0..3 {
        let back = with(other(), "isNegativeHits", json!(true));
        let (status, answer) = ask(&rig, json!({ "domain": "files", "descriptors": [base(), back] })).await;
        assert_eq!((status, &answer["statuses"][0]), (200, &json!({ "code": "OK" })), "it is replaced");
    }
    let body = json!({ "domain": "files", "descriptors": [with(other(), "hitsAddend", json!(1.0))] });
    let (_, answer) = ask(&rig, body).await;
    assert_eq!(answer["dynamicMetadata"]["metadata"], json!({ "plan": { "names": ["a", 1.0, true, null] } }));
    rig.end().await;
}

/// Two that give back to one bucket by two limits cannot be told apart: nothing is charged for that message.
#[tokio::test]
async fn what_cannot_be_given_back_charges_nothing() {
    let rig = Rig::start(RULES);
    let back = |requests: u64| {
        let limited = json!({ "requestsPerUnit": requests, "unit": "MINUTE" });
        with(with(descriptor(&[("planned", "x")]), "limit", limited), "isNegativeHits", json!(true))
    };
    let key = descriptor(&[("api_key", "k")]);
    assert_eq!(ask(&rig, request(&[key.clone(), back(5), back(2)])).await.0, 400);
    assert_eq!(told(&ask(&rig, request(&[key])).await.1), [("OK", 2)]);
    rig.end().await;
}

/// Method and path are entries of their own in many a configuration of Envoy.
#[tokio::test]
async fn entries_may_name_method_and_path_apart() {
    let rig = Rig::start(RULES);
    let login = |path: &str| request(&[descriptor(&[("method", "POST"), ("path", path)])]);
    assert_eq!(ask(&rig, login("/login?next=/")).await.0, 200);
    assert_eq!(ask(&rig, login("//login")).await.0, 429);
    assert_eq!(ask(&rig, login("/logout")).await.0, 200);
    rig.end().await;
}
