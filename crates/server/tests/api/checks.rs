//! Checks and batches.

use serde_json::json;

use crate::rig::Rig;

const RULES: &str = "
key_by: client_key
rules:
  - { name: orders, match: { endpoint: '/api/*' }, limit: { requests: 2, window: 1h, burst: 3 }, doc_url: 'https://docs.example/limits' }
  - { name: slow, match: { endpoint: '/queue' }, limit: { requests: 1, window: 1s, algorithm: leaky_bucket, max_delay: 5s } }
";

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_of_the_issue_are_answered_as_it_says() {
    let rig = Rig::start(RULES);
    for body in [
        r#"{"client_key":"user:abc-123","endpoint":"/api/orders","tier":"free"}"#,
        r#"{"client_key":"user:42","endpoint":"/api/v1/search","cost":1}"#,
    ] {
        let answer = rig.post("/v1/check", body).await;
        let json = answer.json();
        assert_eq!(answer.status, 200);
        assert_eq!((&json["allowed"], &json["limit"], &json["remaining"]), (&json!(true), &json!(3), &json!(2)));
        assert_eq!(
            (&json["rule"], &json["mode"], &json["retry_after"]),
            (&json!("orders"), &json!("store"), &json!(null))
        );
        assert!(json["reset_at"].as_u64().unwrap() > 1_700_000_000, "epoch seconds");
        assert_eq!(answer.field("cache-control"), Some("no-store"));
        assert_eq!(answer.field("x-ratelimit-limit"), Some("3"));
        assert_eq!(answer.field("x-ratelimit-remaining"), Some("2"));
        assert_eq!(answer.field("x-ratelimit-reset"), Some(json["reset_at"].to_string().as_str()));
        assert_eq!(answer.field("x-ratelimit-resource"), Some("orders"));
        assert_eq!(answer.field("ratelimit-policy"), Some("\"orders\";q=2;w=3600;tollgate-burst=3"));
        assert_eq!(answer.field("ratelimit"), Some("\"orders\";r=2;t=1800"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_to_wait_for_is_zero_or_null_by_the_path() {
    let rig = Rig::start(RULES);
    for (path, nothing) in [("/check", json!(0)), ("/rate-limit/check", json!(null)), ("/v1/check", json!(null))] {
        let json = rig.post(path, r#"{"client_key":"a","endpoint":"/api/x"}"#).await.json();
        assert_eq!((&json["allowed"], &json["retry_after"]), (&json!(true), &nothing), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_is_200_or_429_as_the_call_wants_it() {
    let rig = Rig::start(RULES);
    let body = r#"{"client_key":"b","endpoint":"/api/x"}"#;
    for _ in 0..3 {
        assert_eq!(rig.post("/v1/check", body).await.json()["allowed"], true);
    }
    let denied = rig.post("/v1/check", body).await;
    let json = denied.json();
    assert_eq!((denied.status, &json["allowed"], &json["remaining"]), (200, &json!(false), &json!(0)));
    assert_eq!(
        json["violated_rule"],
        json!({ "name": "orders", "scope": "client_key", "limit": 3, "window_seconds": 3600 })
    );
    let exact = json["retry_after_ms"].as_u64().unwrap();
    let header: u64 = denied.field("retry-after").unwrap().parse().unwrap();
    assert_eq!(json["retry_after"], json!(exact.div_ceil(1000)), "without jitter");
    assert!((exact.div_ceil(1000)..=exact.div_ceil(1000) * 11 / 10 + 1).contains(&header), "{header} for {exact} ms");
    assert!(exact <= 1_800_000 && exact > 1_790_000, "{exact}");

    let refused = rig.post("/v1/check?status=429", body).await;
    let json = refused.json();
    assert_eq!((refused.status, refused.field("content-type")), (429, Some("application/problem+json")));
    assert_eq!((&json["error"], &json["error_code"]), (&json!("rate_limited"), &json!("rate_limited")));
    assert_eq!(json["message"], json!(format!("Too many requests. Retry after {}s.", json["retry_after"])));
    assert_eq!(json["doc_url"], "https://docs.example/limits");
    let fields = "Content-Type: application/json\r\nAccept: application/json\r\n";
    let plain = rig.call("POST", "/v1/check?status=429", fields, body).await;
    assert_eq!((plain.status, plain.field("content-type")), (429, Some("application/json")));

    let never = rig.post("/v1/check", r#"{"client_key":"c","endpoint":"/api/x","cost":4}"#).await;
    let json = never.json();
    assert_eq!((&json["never"], &json["retry_after"]), (&json!(true), &json!(null)));
    assert_eq!(never.field("retry-after"), None, "waiting does not help");
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_say_how_long_to_wait_and_nothing_says_why() {
    let rig = Rig::start(RULES);
    let body = r#"{"client_key":"q","endpoint":"/queue"}"#;
    assert_eq!(rig.post("/v1/check", body).await.json()["delay_ms"], json!(null));
    let delay = rig.post("/v1/check", body).await.json()["delay_ms"].as_u64().unwrap();
    assert!((900..=1000).contains(&delay), "{delay}");
    let json = rig.post("/v1/check", r#"{"client_key":"q","endpoint":"/other"}"#).await.json();
    assert_eq!((&json["allowed"], &json["rule"]), (&json!(true), &json!(null)));
    assert_eq!(json["reason"], "no rule applies to this request");
}

#[tokio::test(flavor = "multi_thread")]
async fn cost_0_and_peek_change_nothing() {
    let rig = Rig::start(RULES);
    for body in [
        r#"{"client_key":"p","endpoint":"/api/x","cost":0}"#,
        r#"{"client_key":"p","endpoint":"/api/x","cost":3,"peek":true}"#,
    ] {
        let json = rig.post("/v1/check", body).await.json();
        assert_eq!((&json["allowed"], &json["remaining"]), (&json!(true), &json!(3)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_decides_each_in_order_or_is_refused_whole() {
    let rig = Rig::start(RULES);
    let one = r#"{"client_key":"d","endpoint":"/api/x"}"#;
    let bad = format!(r#"{{"requests":[{one},{{"client_key":"d","cost":-1}}]}}"#);
    let refused = rig.post("/v1/check/batch", &bad).await;
    assert_eq!((refused.status, &refused.json()["field"]), (400, &json!("requests[1].cost")));

    let batch = format!(r#"{{"requests":[{}]}}"#, [one; 5].join(","));
    let json = rig.post("/v1/check/batch", &batch).await.json();
    let allowed: Vec<_> = json["results"].as_array().unwrap().iter().map(|one| one["allowed"] == true).collect();
    assert_eq!(allowed, [true, true, true, false, false], "the refused batch charged nothing");
    let json =
        rig.post("/v1/check/batch", r#"{"requests":[{"ip":"nonsense"},{"client_key":"e","endpoint":"/api"}]}"#).await;
    let json = json.json();
    assert_eq!((&json["results"][0]["code"], &json["results"][1]["allowed"]), (&json!("bad_address"), &json!(true)));
    let large = format!(r#"{{"requests":[{}]}}"#, vec![one; 1000].join(","));
    assert_eq!(rig.post("/v1/check/batch", &large).await.json()["results"].as_array().unwrap().len(), 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_tells_and_charges_nothing() {
    let rig = Rig::start(RULES);
    for _ in 0..5 {
        let json = rig.post("/v1/explain", r#"{"client_key":"f","endpoint":"/api/x"}"#).await.json();
        assert_eq!((&json["decision"]["allowed"], &json["decision"]["remaining"]), (&json!(true), &json!(3)));
        assert_eq!((&json["rules"][0]["applies"], &json["rules"][1]["applies"]), (&json!(true), &json!(false)));
        assert!(json["rules"][1]["because"].as_str().unwrap().contains("/queue"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_does_not_exist_is_refused_with_the_nearest_and_charges_nothing() {
    let rig = Rig::start(RULES);
    let check = r#"{"client_key":"t","endpoint":"/api/x","KEY":1}"#;
    let paths = ["/v1/check", "/check", "/rate-limit/check", "/v1/reserve", "/v1/slots/acquire", "/v1/explain"];
    for (key, meant) in
        [("clientkey", "client_key"), ("userid", "user_id"), ("kost", "cost"), ("attribute", "attributes")]
    {
        for path in paths {
            let refused = rig.post(path, &check.replace("KEY", key)).await;
            let json = refused.json();
            assert_eq!((refused.status, &json["code"]), (400, &json!("unknown_field")), "{path} {json}");
            assert!(json.to_string().contains(&format!("did you mean `{meant}`?")), "{path} {json}");
        }
        let batch =
            format!(r#"{{"requests":[{{"client_key":"t","endpoint":"/api/x"}},{}]}}"#, check.replace("KEY", key));
        let refused = rig.post("/v1/check/batch", &batch).await;
        let text = refused.json().to_string();
        assert!(refused.status == 400 && text.contains(&format!("did you mean `{meant}`?")), "{text}");
        assert!(text.contains(&format!("requests[1].{key}")), "{text}");
    }
    for (path, body, meant) in [
        ("/v1/check/batch", r#"{"request":[{"client_key":"t"}]}"#, "requests"),
        ("/v1/settle", r#"{"reservatoin":"x","cost":1}"#, "reservation"),
        ("/v1/slots/release", r#"{"slots":"x"}"#, "slot"),
    ] {
        let refused = rig.post(path, body).await;
        let text = refused.json().to_string();
        assert!(refused.status == 400 && text.contains(&format!("did you mean `{meant}`?")), "{path} {text}");
    }
    let left = rig.post("/v1/check", r#"{"client_key":"t","endpoint":"/api/x","peek":true}"#).await.json();
    assert_eq!(left["remaining"], json!(3), "none of them was charged");
}

/// RELIABILITY I18.
#[tokio::test(flavor = "multi_thread")]
async fn i18_two_spellings_of_a_client_share_a_bucket_where_the_file_says_so() {
    for (normalize, one, other, left) in [
        ("none", "caf\u{e9}", "cafe\u{301}", 2),
        ("nfc", "caf\u{e9}", "cafe\u{301}", 1),
        ("nfc", "file", "\u{fb01}le", 2),
        ("nfkc", "file", "\u{fb01}le", 1),
    ] {
        let rig = Rig::start(&format!("normalize: {normalize}\n{RULES}"));
        let check = |client: &str| json!({ "client_key": client, "endpoint": "/api/x" }).to_string();
        assert_eq!(rig.post("/v1/check", &check(one)).await.json()["remaining"], json!(2));
        let again = rig.post("/v1/check", &check(other)).await.json();
        assert_eq!(again["remaining"], json!(left), "{normalize} {other}");
        let batch = format!(r#"{{"requests":[{}]}}"#, check(other));
        let again = rig.post("/v1/check/batch", &batch).await.json();
        assert_eq!(again["results"][0]["remaining"], json!(left - 1), "{normalize} {other}");
    }
}
