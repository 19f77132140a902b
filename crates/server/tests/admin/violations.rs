//! Violations: lists and top offenders.

use serde_json::{Value, json};
use tollgate_control::{Instant, Violation};

use crate::rig::Rig;

fn violation(client: &str, endpoint: &str, rule: &str, minute: i64, count: i64) -> Violation {
    Violation {
        namespace: "default".to_owned(),
        client_key: client.to_owned(),
        endpoint: endpoint.to_owned(),
        rule_id: Some(rule.to_owned()),
        is_shadow: false,
        minute: Instant(1_700_000_040_000_000 + minute * 60_000_000),
        last: Instant(1_700_000_040_000_000 + minute * 60_000_000 + 59_000_000),
        refused: count,
        request_count: 11,
        limit_value: 10,
    }
}

async fn rig() -> Rig {
    let rig = Rig::start().await;
    let all = [
        violation("user:1", "/a", "orders", 0, 5),
        violation("user:1", "/a", "orders", 1, 6),
        violation("user:2", "/b", "orders", 1, 100),
        violation("user:2", "/a", "login", 2, 1),
    ];
    rig.control.as_ref().unwrap().record_violations(&all).await.unwrap();
    rig
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_found_the_latest_first() {
    let rig = rig().await;
    let first = rig.get("/v1/violations?limit=1").await.expect(200).json();
    let mut shown = first["violations"][0].clone();
    assert!(shown.as_object_mut().unwrap().remove("violation_id").unwrap().is_i64());
    let expected = json!({
        "namespace": "default", "client_key": "user:2", "endpoint": "/a", "rule_id": "login",
        "shadow": false, "violated_at": "2023-11-14T22:16:00.000000Z", "last_violated_at": "2023-11-14T22:16:59.000000Z",
        "refused": 1, "request_count": 11, "limit_value": 10,
    });
    assert_eq!(shown, expected);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = rig.get(&format!("/v1/violations?cursor={cursor}")).await.expect(200).json();
    assert_eq!((rest["violations"].as_array().unwrap().len(), &rest["next_cursor"]), (3, &Value::Null));
    for (query, count) in [
        ("client_key=user:1", 2),
        ("endpoint=/b", 1),
        ("rule_id=orders", 3),
        ("rule_id=orders&shadow=false", 3),
        ("shadow=true", 0),
        ("from=2023-11-14T22:15:00Z", 3),
        ("to=2023-11-14T22:15:00Z", 1),
        ("from=2023-11-14T22:15:00Z&to=2023-11-14T22:16:00Z", 2),
        ("namespace=other", 0),
    ] {
        let answer = rig.get(&format!("/v1/violations?{query}")).await.expect(200).json();
        assert_eq!(answer["violations"].as_array().unwrap().len(), count, "{query}");
    }
    assert_eq!(rig.get("/v1/violations?from=yesterday").await.expect(400).code(), "bad_parameter");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worst_are_named_first() {
    let rig = rig().await;
    let names = |answer: Value| -> Vec<(String, i64)> {
        let one = |value: &Value| (value["what"].as_str().unwrap().to_owned(), value["refused"].as_i64().unwrap());
        answer["offenders"].as_array().unwrap().iter().map(one).collect()
    };
    for (query, expected) in [
        ("", vec![("user:2", 101), ("user:1", 11)]),
        ("?by=rule", vec![("orders", 111), ("login", 1)]),
        ("?by=endpoint&limit=1", vec![("/b", 100)]),
        ("?by=client&from=2023-11-14T22:16:00Z", vec![("user:2", 1)]),
    ] {
        let answer = rig.get(&format!("/v1/violations/top{query}")).await.expect(200).json();
        let expected: Vec<(String, i64)> = expected.into_iter().map(|(what, count)| (what.to_owned(), count)).collect();
        assert_eq!(names(answer), expected, "{query}");
    }
    assert_eq!(rig.get("/v1/violations/top?by=country").await.expect(400).code(), "bad_parameter");
}
