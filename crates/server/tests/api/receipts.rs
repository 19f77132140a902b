//! Reservations and slots: receipts that leave, come back, and are good once.

use serde_json::json;

use crate::rig::{Rig, call};

const RULES: &str = "
key_by: client_key
rules:
  - { name: units, match: { endpoint: '/units' }, limit: { requests: 100, window: 1h, algorithm: fixed_window }, max_debt: 1000 }
  - { name: flight, match: { endpoint: '/flight' }, limit: { algorithm: concurrency, slots: 2, slot_ttl: 30s } }
";

async fn left(rig: &Rig) -> u64 {
    let json = rig.post("/v1/check", r#"{"client_key":"a","endpoint":"/units","cost":0}"#).await.json();
    json.get("remaining").and_then(serde_json::Value::as_u64).expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_settles_once_below_and_above_its_estimate() {
    let rig = Rig::start(RULES);
    for (real, expected) in [(4, 96), (10, 86), (25, 61)] {
        let json = rig.post("/v1/reserve", r#"{"client_key":"a","endpoint":"/units","cost":10}"#).await.json();
        let receipt = json["reservation"].as_str().expect("a receipt").to_owned();
        for _ in 0..3 {
            let body = json!({ "reservation": receipt, "cost": real }).to_string();
            assert_eq!(rig.post("/v1/settle", &body).await.status, 200);
            assert_eq!(left(&rig).await, expected, "settled at {real}, again and again");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_that_no_rule_charged_are_settled_each_for_itself() {
    let rig = Rig::start(RULES);
    let mut receipts = Vec::new();
    for _ in 0..2 {
        let json = rig.post("/v1/reserve", r#"{"client_key":"a","endpoint":"/free","cost":10}"#).await.json();
        receipts.push(json["reservation"].as_str().expect("a receipt").to_owned());
    }
    for expected in [true, false] {
        for receipt in &receipts {
            let body = json!({ "reservation": receipt, "cost": 4 }).to_string();
            assert_eq!(rig.post("/v1/settle", &body).await.json()["settled"], expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deciding_takes_time_here_too() {
    let rig = Rig::start(RULES);
    rig.post("/v1/reserve", r#"{"client_key":"a","endpoint":"/units","cost":10}"#).await;
    rig.post("/v1/slots/acquire", r#"{"client_key":"a","endpoint":"/flight"}"#).await;
    let metrics = call(&rig.admin, "GET", "/metrics", "", "").await;
    let text = String::from_utf8(metrics.body).unwrap();
    assert!(text.contains("\ntollgate_decision_seconds_count 2\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_handed_out_is_taken_back() {
    let rig = Rig::start(RULES);
    let refused = rig.post("/v1/settle", r#"{"reservation":"tgr_AAAA","cost":1}"#).await;
    assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("unknown_receipt")));
    let other = Rig::start(RULES);
    let json = other.post("/v1/reserve", r#"{"client_key":"a","endpoint":"/units","cost":10}"#).await.json();
    let body = json!({ "reservation": json["reservation"], "cost": 0 }).to_string();
    assert_eq!(rig.post("/v1/settle", &body).await.status, 400, "another server's secret");
    let json = other.post("/v1/reserve", r#"{"client_key":"a","endpoint":"/units","cost":1000}"#).await.json();
    assert_eq!((&json["allowed"], &json["reservation"]), (&json!(false), &json!(null)), "nothing to settle");
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_are_held_renewed_and_released_once() {
    let rig = Rig::start(RULES);
    let body = r#"{"client_key":"a","endpoint":"/flight"}"#;
    let first = rig.post("/v1/slots/acquire", body).await.json();
    let second = rig.post("/v1/slots/acquire", body).await.json();
    assert_eq!((&first["remaining"], &second["remaining"], &first["ttl_ms"]), (&json!(1), &json!(0), &json!(30_000)));
    assert_eq!(rig.post("/v1/slots/acquire", body).await.json()["allowed"], false);
    let slot = json!({ "slot": first["slot"] }).to_string();
    assert_eq!(rig.post("/v1/slots/renew", &slot).await.json(), json!({ "renewed": true, "ttl_ms": 30_000 }));
    assert_eq!(rig.post("/v1/slots/release", &slot).await.json()["released"], true);
    assert_eq!(rig.post("/v1/slots/release", &slot).await.json()["released"], false, "twice frees nobody else's");
    assert_eq!(rig.post("/v1/slots/renew", &slot).await.json()["renewed"], false);
    assert_eq!(rig.post("/v1/slots/acquire", body).await.json()["remaining"], 0, "the second still holds its own");
    assert_eq!(rig.post("/v1/check", body).await.json()["rule"], json!(null), "a check holds no slot");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_good_for_what_and_where_it_was_made() {
    let secret = |config: &mut tollgate_config::Config, dir: std::path::PathBuf| {
        let file = dir.join("secret");
        std::fs::write(&file, "the same secret for both of them").expect("a file");
        config.secret_file = Some(file);
    };
    let (one, other) = (Rig::with(RULES, secret), Rig::with(RULES, secret));
    let json = one.post("/v1/reserve", r#"{"client_key":"a","endpoint":"/units","cost":100}"#).await.json();
    let body = json!({ "reservation": json["reservation"], "cost": 0 }).to_string();
    assert_eq!(one.post("/v1/settle", &body).await.json()["refunded"], 1);
    let all = r#"{"client_key":"a","endpoint":"/units","cost":100}"#;
    assert_eq!(other.post("/v1/check", all).await.json()["allowed"], true);
    let foreign = other.post("/v1/settle", &body).await;
    assert_eq!(
        (foreign.status, &foreign.json()["code"]),
        (409, &json!("foreign_receipt")),
        "or one receipt refunds twice"
    );

    let slot = one.post("/v1/slots/acquire", r#"{"client_key":"a","endpoint":"/flight"}"#).await.json();
    let body = json!({ "reservation": slot["slot"], "cost": 0 }).to_string();
    assert_eq!(one.post("/v1/settle", &body).await.json()["settled"], true, "a slot is a reservation");
}

#[tokio::test(flavor = "multi_thread")]
async fn settled_high_is_not_settled_low_afterwards() {
    let rules = "rules: [{ name: units, key_by: client_key, limit: { requests: 100, window: 1h, algorithm: fixed_window }, max_debt: 1000 }]";
    let rig = Rig::start(rules);
    let json = rig.post("/v1/reserve", r#"{"client_key":"a","cost":10}"#).await.json();
    for (cost, settled) in [(30, true), (0, false), (30, false)] {
        let body = json!({ "reservation": json["reservation"], "cost": cost }).to_string();
        assert_eq!(rig.post("/v1/settle", &body).await.json()["settled"], settled);
        assert_eq!(rig.post("/v1/check", r#"{"client_key":"a","cost":0}"#).await.json()["remaining"], 70);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_of_many_rules_come_back_too() {
    let rule = |number: usize| {
        format!("  - {{ name: r{number}, key_by: client_key, limit: {{ requests: 9, window: 1h }} }}\n")
    };
    let rig = Rig::start(&format!("rules:\n{}", (0..100).map(rule).collect::<String>()));
    let json = rig.post("/v1/reserve", r#"{"client_key":"a","cost":4}"#).await.json();
    let body = json!({ "reservation": json["reservation"], "cost": 1 }).to_string();
    assert_eq!(rig.post("/v1/settle", &body).await.json(), json!({ "settled": true, "refunded": 100, "extended": 0 }));
}
