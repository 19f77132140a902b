//! Amounts by meter over HTTP: reserve, extend, settle, and what is refused.

use serde_json::{Value, json};

use crate::rig::Rig;

const RULES: &str = "
key_by: client_key
rules:
  - { name: requests, limit: { requests: 100, window: 1h, algorithm: fixed_window } }
  - { name: output, meter: output_tokens, limit: { amount: 1000, window: 1h, algorithm: fixed_window } }
  - { name: credits, meter: { input_tokens: 1, output_tokens: 4 }, limit: { amount: 5000, window: 1h, algorithm: fixed_window } }
  - { name: flight, limit: { algorithm: concurrency, slots: 3, slot_ttl: 30s } }
";

/// What is left, by rule.
async fn left(rig: &Rig) -> Vec<u64> {
    let body = r#"{"client_key":"a","cost":0,"costs":{"output_tokens":0,"input_tokens":0}}"#;
    let json = rig.post("/v1/check", body).await.json();
    let rules = json["rules"].as_array().unwrap_or_else(|| panic!("several rules: {json}"));
    rules.iter().map(|rule| rule["remaining"].as_u64().expect("a number")).collect()
}

const FULL: [u64; 3] = [100, 1000, 5000];

async fn reserve(rig: &Rig, costs: Value) -> Value {
    let json = rig.post("/v1/reserve", &json!({ "client_key": "a", "costs": costs }).to_string()).await.json();
    json["reservation"].clone()
}

async fn post(rig: &Rig, path: &str, body: Value) -> (u16, Value) {
    let answer = rig.post(path, &body.to_string()).await;
    (answer.status, answer.json())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_is_extended_and_settled_per_meter() {
    let rig = Rig::start(RULES);
    let body = json!({ "client_key": "a", "costs": { "input_tokens": 100, "output_tokens": 200 } });
    let (_, reserved) = post(&rig, "/v1/reserve", body).await;
    assert_eq!((&reserved["allowed"], &reserved["ttl_ms"]), (&json!(true), &json!(30_000)));
    let meters: Vec<&Value> = reserved["rules"].as_array().unwrap().iter().map(|rule| &rule["meter"]).collect();
    assert_eq!(meters[..2], [&Value::Null, &json!("output_tokens")], "{reserved}");
    assert_eq!(left(&rig).await, [99, 800, 4100]);

    let step = json!({ "reservation": reserved["reservation"], "costs": { "output_tokens": 300 } });
    let (status, extended) = post(&rig, "/v1/extend", step.clone()).await;
    assert_eq!((status, &extended["allowed"], &extended["ttl_ms"]), (200, &json!(true), &json!(30_000)));
    let meters: Vec<&Value> = extended["rules"].as_array().unwrap().iter().map(|rule| &rule["remaining"]).collect();
    assert_eq!(meters[..2], [&json!(500), &json!(2900)], "what is left of output and credits: {extended}");
    assert_eq!(left(&rig).await, [99, 500, 2900]);
    let (status, again) = post(&rig, "/v1/extend", step).await;
    assert_eq!((status, &again["code"]), (409, &json!("replaced_receipt")));

    let much = json!({ "reservation": extended["reservation"], "costs": { "output_tokens": 501 } });
    let (status, denied) = post(&rig, "/v1/extend", much.clone()).await;
    assert_eq!((status, &denied["allowed"], &denied["rule"]), (200, &json!(false), &json!("output")), "{denied}");
    assert_eq!((&denied["limit"], &denied["remaining"]), (&json!(1000), &json!(500)));
    let (status, _) = post(&rig, "/v1/extend?status=429", much).await;
    assert_eq!((status, left(&rig).await), (429, vec![99, 500, 2900]));

    let old = json!({ "reservation": reserved["reservation"], "costs": { "output_tokens": 0 } });
    assert_eq!(post(&rig, "/v1/settle", old).await.1["settled"], false, "an old receipt settles nothing");
    let real = json!({ "reservation": extended["reservation"], "costs": { "output_tokens": 450 } });
    let settled = json!({ "settled": true, "refunded": 3, "extended": 0 });
    assert_eq!(post(&rig, "/v1/settle", real.clone()).await, (200, settled), "output, credits and the slot");
    assert_eq!(left(&rig).await, [99, 550, 3100]);
    let repeated = json!({ "settled": false, "refunded": 0, "extended": 0 });
    assert_eq!(post(&rig, "/v1/settle", real).await, (200, repeated));
    assert_eq!(left(&rig).await, [99, 550, 3100]);
}

#[tokio::test(flavor = "multi_thread")]
async fn settling_above_the_reservation_is_charged_and_reported() {
    let rig = Rig::start(RULES);
    let receipt = reserve(&rig, json!({ "output_tokens": 10 })).await;
    let body = json!({ "reservation": receipt, "costs": { "output_tokens": 60 } });
    let above = json!({ "output_tokens": 50 });
    let settled = json!({ "settled": true, "refunded": 1, "extended": 2, "above": above });
    assert_eq!(post(&rig, "/v1/settle", body).await, (200, settled), "the slot came back; output and credits");
    assert_eq!(left(&rig).await, [99, 940, 4760]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_limit_counts_no_further_is_reported() {
    let rules = "rules: [{ name: output, key_by: client_key, meter: output_tokens, max_debt: 100, limit: { amount: 500, window: 366d } }]";
    let rig = Rig::start(rules);
    let receipt = reserve(&rig, json!({ "output_tokens": 50 })).await;
    let body = json!({ "reservation": receipt, "costs": { "output_tokens": 700 } });
    let uncharged = json!([{ "rule": "output", "units": 100 }]);
    let above = json!({ "output_tokens": 650 });
    let settled = json!({ "settled": true, "refunded": 0, "extended": 1, "above": above, "uncharged": uncharged });
    assert_eq!(post(&rig, "/v1/settle", body).await, (200, settled));
}

#[tokio::test(flavor = "multi_thread")]
async fn amounts_that_are_none_are_refused_and_charge_nothing() {
    let rig = Rig::start(RULES);
    let receipt = reserve(&rig, json!({ "output_tokens": 0 })).await.as_str().expect("a receipt").to_owned();
    let before = left(&rig).await;
    let amounts = [
        (r#"{"output_tokens":-1}"#, "bad_cost"),
        (r#"{"output_tokens":1.5}"#, "bad_cost"),
        (r#"{"output_tokens":1e3}"#, "bad_cost"),
        (r#"{"output_tokens":9007199254740992}"#, "bad_cost"),
        (r#"{"output_tokens":99999999999999999999999}"#, "bad_cost"),
        (r#"{"output_tokens":"7"}"#, "bad_cost"),
        (r#"{"output_tokens":null}"#, "bad_cost"),
        (r#"{"output_tokens":1,"output_tokens":2}"#, "duplicate_field"),
        (r#"{"Output":1}"#, "bad_attribute_name"),
        (r#"{"":1}"#, "bad_attribute_name"),
        (r#"{"two words":1}"#, "bad_attribute_name"),
        (r#"[1]"#, "wrong_type"),
        (r#"7"#, "wrong_type"),
    ];
    let many: Vec<String> = (0..17).map(|number| format!(r#""m{number}":1"#)).collect();
    let many = format!("{{{}}}", many.join(","));
    for (costs, code) in amounts.into_iter().chain([(many.as_str(), "too_many")]) {
        for path in ["/v1/check", "/v1/reserve", "/v1/slots/acquire", "/v1/explain"] {
            let answer = rig.post(path, &format!(r#"{{"client_key":"a","costs":{costs}}}"#)).await;
            assert_eq!((answer.status, &answer.json()["code"]), (400, &json!(code)), "{path} {costs}");
        }
        for path in ["/v1/extend", "/v1/settle"] {
            let answer = rig.post(path, &format!(r#"{{"reservation":"{receipt}","costs":{costs}}}"#)).await;
            assert_eq!((answer.status, &answer.json()["code"]), (400, &json!(code)), "{path} {costs}");
        }
    }
    for (path, key) in [("/v1/check", r#""client_key":"a""#), ("/v1/settle", &format!(r#""reservation":"{receipt}""#))]
    {
        for body in [r#""cost":1,"costs":{"requests":2}"#, r#""costs":{"requests":2},"cost":1"#] {
            let answer = rig.post(path, &format!("{{{key},{body}}}")).await;
            assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("duplicate_field")), "{path} {body}");
        }
    }
    assert_eq!(left(&rig).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn meters_that_are_unknown_or_not_reserved_are_refused() {
    let rig = Rig::start(RULES);
    for path in ["/v1/check", "/v1/reserve", "/v1/slots/acquire", "/v1/explain"] {
        let (status, json) = post(&rig, path, json!({ "client_key": "a", "costs": { "output_token": 1 } })).await;
        assert_eq!((status, &json["code"], &json["field"]), (400, &json!("unknown_meter"), &json!("costs")), "{path}");
    }
    assert_eq!(left(&rig).await, FULL);
    let receipt = reserve(&rig, json!({ "output_tokens": 5 })).await;
    let before = left(&rig).await;
    for path in ["/v1/extend", "/v1/settle"] {
        let body = json!({ "reservation": receipt, "costs": { "input_tokens": 1 } });
        let (status, json) = post(&rig, path, body).await;
        assert_eq!((status, &json["code"]), (400, &json!("meter_not_reserved")), "{path}");
        let (status, json) = post(&rig, path, json!({ "reservation": receipt })).await;
        assert_eq!((status, &json["code"]), (400, &json!("missing_field")), "{path}");
    }
    assert_eq!(left(&rig).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_of_others_are_refused() {
    let (rig, other) = (Rig::start(RULES), Rig::start(RULES));
    let receipt = reserve(&other, json!({ "output_tokens": 50 })).await;
    for receipt in [receipt, json!("tgr_AAAA"), json!("")] {
        for path in ["/v1/extend", "/v1/settle"] {
            let body = json!({ "reservation": receipt, "costs": { "output_tokens": 0 } });
            let (status, json) = post(&rig, path, body).await;
            assert_eq!((status, &json["code"]), (400, &json!("unknown_receipt")), "{path}");
        }
    }
    assert_eq!(left(&rig).await, FULL);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_may_reject_requests_without_its_meter() {
    let rig = Rig::start(&RULES.replace("meter: output_tokens,", "meter: output_tokens, unmetered: reject,"));
    for path in ["/v1/check", "/v1/reserve"] {
        let (status, json) = post(&rig, path, json!({ "client_key": "a", "costs": { "input_tokens": 5 } })).await;
        assert_eq!((status, &json["code"]), (400, &json!("missing_meter")), "{path}");
    }
    assert_eq!(left(&rig).await, FULL);
}

/// Slots and reservations are one thing: both are settled, extended, renewed and released.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_is_settled_and_a_reservation_renewed() {
    let rig = Rig::start(RULES);
    let body = json!({ "client_key": "a", "costs": { "output_tokens": 50 } });
    let (_, slot) = post(&rig, "/v1/slots/acquire", body).await;
    let step = json!({ "reservation": slot["slot"], "costs": { "output_tokens": 50 } });
    let (_, extended) = post(&rig, "/v1/extend", step).await;
    let renew = json!({ "reservation": extended["reservation"] });
    assert_eq!(post(&rig, "/v1/slots/renew", renew.clone()).await.1, json!({ "renewed": true, "ttl_ms": 30_000 }));
    assert_eq!(post(&rig, "/v1/slots/release", renew.clone()).await.1, json!({ "released": true }));
    assert_eq!(post(&rig, "/v1/slots/release", renew).await.1, json!({ "released": false }));
    assert_eq!(left(&rig).await, [99, 900, 4600], "released at its estimates");
}
