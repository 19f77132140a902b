//! Quotas and `GET /v1/usage`.

use serde_json::json;

use crate::rig::Rig;

const RULES: &str = "
key_by: client_key
rules:
  - { name: monthly, meter: { input_tokens: 1, output_tokens: 4 }, quota: { amount: 1000, every: month, time_zone: Europe/Berlin } }
  - { name: rate, match: { endpoint: '/api/*' }, limit: { requests: 5, window: 1h, algorithm: fixed_window } }
  - { name: trial, match: { tier: trial }, mode: shadow, quota: { amount: 3, every: never } }
  - { name: streams, limit: { algorithm: concurrency, slots: 2 } }
clients: [{ client_key: 'user:9', tier: trial }]
";

#[tokio::test(flavor = "multi_thread")]
async fn usage_names_what_is_used_and_charges_nothing() {
    let rig = Rig::start(RULES);
    let body = r#"{"client_key":"user:1","endpoint":"/api/x","costs":{"input_tokens":100,"output_tokens":25}}"#;
    assert_eq!(rig.post("/v1/check", body).await.json()["allowed"], true);
    for _ in 0..2 {
        let answer = rig.call("GET", "/v1/usage?client_key=user%3A1", "", "").await;
        let json = answer.json();
        let [monthly, rate, trial, streams] = json["rules"].as_array().unwrap().as_slice() else { panic!("{json}") };
        assert_eq!((answer.status, &json["namespace"]), (200, &json!("default")));
        assert_eq!(
            (&monthly["rule"], &monthly["used"], &monthly["limit"], &monthly["remaining"]),
            (&json!("monthly"), &json!(200), &json!(1000), &json!(800))
        );
        assert_eq!(monthly["meter"], json!({ "input_tokens": 1, "output_tokens": 4 }));
        let [start, end] = ["start", "end"].map(|bound| monthly["period"][bound].as_str().unwrap().to_owned());
        assert!(start < end && [&start, &end].iter().all(|bound| bound.ends_with(":00:00Z")), "{start} to {end}");
        assert_eq!((&rate["used"], &rate["assumed"]), (&json!(1), &json!(["endpoint"])));
        assert_eq!(trial["assumed"], json!(["tier"]));
        assert_eq!((&streams["rule"], &streams["used"]), (&json!("streams"), &json!(0)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_quota_denies_until_the_next_month() {
    let rig = Rig::start(RULES);
    let body = r#"{"client_key":"user:2","costs":{"output_tokens":250}}"#;
    assert_eq!(rig.post("/v1/check", body).await.json()["remaining"], 0);
    let denied = rig.post("/v1/check?status=429", body).await;
    let usage = rig.call("GET", "/v1/usage?client_key=user:2", "", "").await.json();
    assert_eq!((denied.status, &denied.json()["rule"]), (429, &json!("monthly")));
    assert_eq!(denied.json()["reset_at"], usage["rules"][0]["reset_at"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn shadow_and_lifetime_are_marked() {
    let rig = Rig::start(RULES);
    let json = rig.call("GET", "/v1/usage?client_key=user:9", "", "").await.json();
    let trial = json["rules"].as_array().unwrap().iter().find(|rule| rule["rule"] == "trial").unwrap().clone();
    assert_eq!((&trial["shadow"], &trial["period"]["end"]), (&json!(true), &json!(null)));
    assert_eq!(trial["period"]["start"], json!(null));
    assert_eq!(trial.get("reset_at"), None, "it never starts anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_that_is_used_up_for_ever_is_a_spent_limit() {
    let rig = Rig::start("rules: [{ name: once, key_by: client_key, quota: { amount: 2, every: never } }]");
    let check = |cost: u64| format!(r#"{{"client_key":"a","cost":{cost}}}"#);
    let too_high = rig.post("/v1/check?status=429", &check(3)).await;
    assert_eq!(too_high.json()["error_code"], "cost_too_high");
    assert_eq!(rig.post("/v1/check", &check(2)).await.json()["allowed"], true);
    let used_up = rig.post("/v1/check?status=429", &check(1)).await;
    assert_eq!((used_up.status, &used_up.json()["error_code"]), (429, &json!("rate_limited")));
    assert_eq!((used_up.field("retry-after"), &used_up.json()["never"]), (None, &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_cannot_be_read_are_rejected() {
    let rig = Rig::start(RULES);
    for (path, status, code) in [
        ("/v1/usage", 400, "missing_field"),
        ("/v1/usage?client_key=a%00b", 400, "bad_text"),
        ("/v1/usage?client_key=a%ffb", 400, "bad_text"),
        ("/v1/usage?%c3(=a", 400, "bad_text"),
        ("/v1/usage?ip=nonsense", 400, "bad_address"),
        ("/v1/usage?Client=a", 400, "bad_attribute_name"),
        ("/v1/usage?api_key=a&api_key=b", 400, "duplicate_field"),
    ] {
        let answer = rig.call("GET", path, "", "").await;
        assert_eq!((answer.status, &answer.json()["code"]), (status, &json!(code)), "{path}: {}", answer.json());
    }
    assert_eq!(rig.call("POST", "/v1/usage", "Content-Type: application/json\r\n", "{}").await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_needs_the_token_of_a_check() {
    const TOKEN: &str = "a-token-of-some-length-0123456789";
    let rig = Rig::with(RULES, |config, dir| {
        std::fs::write(dir.join("tokens"), TOKEN).unwrap();
        config.token_file = Some(dir.join("tokens"));
    });
    let path = "/v1/usage?client_key=user:1";
    assert_eq!(rig.call("GET", path, "", "").await.status, 401);
    let known = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(rig.call("GET", path, &known, "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_for_ever_has_no_reset_and_no_window() {
    let rules = "rules: [{ name: trial, key_by: client_key, quota: { amount: 1, every: never } }]";
    let rig = Rig::start(rules);
    for allowed in [true, false] {
        let answer = rig.post("/v1/check", r#"{"client_key":"user:1"}"#).await;
        let json = answer.json();
        assert_eq!((&json["allowed"], &json["remaining"]), (&json!(allowed), &json!(0)));
        assert_eq!((&json["reset_at"], answer.field("X-RateLimit-Reset")), (&json!(null), None), "{json}");
        assert_eq!(answer.field("RateLimit-Policy"), Some(r#""trial";q=1"#));
        assert_eq!(answer.field("RateLimit"), Some(r#""trial";r=0"#));
    }
}
