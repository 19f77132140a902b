//! The client directory.

use serde_json::{Value, json};

use crate::rig::{JSON, Rig, YAML};

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_a_client() {
    let rig = Rig::start().await;
    let body =
        json!({ "client_key": "key:a/b c", "tier": "pro", "organisation": "acme", "attributes": { "region": "eu" } });
    let made = rig.send("POST", "/v1/clients", body.clone()).await.expect(201);
    assert_eq!(made.field("location"), Some("/v1/clients/key:a%2Fb%20c"));
    let mut shown = made.json();
    for name in ["created_at", "updated_at", "version"] {
        assert!(!shown.as_object_mut().unwrap().remove(name).unwrap().is_null());
    }
    let mut expected = body.clone();
    expected["namespace"] = json!("default");
    assert_eq!(shown, expected);
    let path = made.field("location").unwrap();
    assert_eq!(rig.get(path).await.expect(200).json(), made.json());
    assert_eq!(rig.send("POST", "/v1/clients", body).await.expect(409).code(), "conflict");

    let merged = json!({ "tier": null, "attributes": { "region": null, "plan": "x" } });
    let merged = rig.send_if("PATCH", path, &made.etag(), merged).await.expect(200);
    assert_eq!((&merged.json()["tier"], &merged.json()["attributes"]), (&Value::Null, &json!({ "plan": "x" })));
    let replaced = rig.send_if("PUT", path, &merged.etag(), json!({ "tier": "free" })).await.expect(200).json();
    assert_eq!((&replaced["organisation"], &replaced["attributes"]), (&Value::Null, &json!({})));
    rig.call("DELETE", path, "", "").await.expect(204);
    rig.call("DELETE", path, "", "").await.expect(404);
    rig.call("PUT", path, &format!("{JSON}If-None-Match: *\r\n"), "{\"tier\":\"free\"}").await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_found_by_tier_organisation_and_prefix_taken_literally() {
    let rig = Rig::start().await;
    for (key, tier, organisation) in
        [("key:a", "free", "acme"), ("key:ab", "pro", "acme"), ("key:%b", "free", "other"), ("key:_c", "free", "other")]
    {
        let body = json!({ "client_key": key, "tier": tier, "organisation": organisation });
        rig.send("POST", "/v1/clients", body).await.expect(201);
    }
    for (query, expected) in [
        ("?tier=free", vec!["key:%b", "key:_c", "key:a"]),
        ("?organisation=acme", vec!["key:a", "key:ab"]),
        ("?prefix=key:a", vec!["key:a", "key:ab"]),
        ("?prefix=key:%25", vec!["key:%b"]),
        ("?prefix=key:_", vec!["key:_c"]),
        ("?prefix=KEY", vec![]),
        ("?limit=1&tier=pro", vec!["key:ab"]),
    ] {
        let answer = rig.get(&format!("/v1/clients{query}")).await.expect(200).json();
        let keys: Vec<&str> =
            answer["clients"].as_array().unwrap().iter().map(|one| one["client_key"].as_str().unwrap()).collect();
        assert_eq!(keys, expected, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_clients_are_refused() {
    let rig = Rig::start().await;
    for (body, faults) in [
        (json!({ "tier": "free" }), vec![("client_key", "missing-field")]),
        (
            json!({ "client_key": "a", "attributes": { "x": 1, "y": "z" }, "tier": 7 }),
            vec![("tier", "wrong-type"), ("attributes.x", "wrong-type")],
        ),
        (json!({ "client_key": "a", "attributes": [] }), vec![("attributes", "wrong-type")]),
        (json!({ "client_key": "a", "org": "acme" }), vec![("org", "unknown-field")]),
    ] {
        let answer = rig.send("POST", "/v1/clients", body.clone()).await.expect(400);
        let expected: Vec<(String, String)> =
            faults.into_iter().map(|(field, code)| (field.to_owned(), code.to_owned())).collect();
        assert_eq!(answer.faults(), expected, "{body}");
    }
    for body in [
        json!({ "client_key": "a\u{7}" }),
        json!({ "client_key": "a", "attributes": { "tier": "x" } }),
        json!({ "client_key": "a", "attributes": { "No": "x" } }),
    ] {
        rig.send("POST", "/v1/clients", body).await.expect(422);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calendars_that_do_not_exist_are_refused() {
    let rig = Rig::start().await;
    let first = json!({ "client_key": "a", "attributes": { "anchor": "17" } });
    let first = rig.send("POST", "/v1/clients", first).await.expect(201);
    for (name, value, code) in [("time_zone", "Europe/Berlim", "unknown-time-zone"), ("anchor", "32", "bad-anchor")] {
        let body = json!({ "attributes": { name: value } });
        let made = rig.send("POST", "/v1/clients", json!({ "client_key": "b", "attributes": { name: value } })).await;
        let replaced = rig.send_if("PUT", "/v1/clients/a", &first.etag(), body.clone()).await;
        let merged = rig.send_if("PATCH", "/v1/clients/a", &first.etag(), body).await;
        for answer in [made, replaced, merged] {
            assert_eq!(answer.expect(422).faults(), [(format!("attributes.{name}"), code.to_owned())]);
        }
        let file = format!("rules: []\nclients: [{{ client_key: c, {name}: {value} }}]\n");
        let answer = rig.call("POST", "/v1/rules/import", YAML, &file).await.expect(422);
        assert_eq!(answer.faults(), [(format!("clients[0].{name}"), code.to_owned())], "{file}");
    }
    assert_eq!(rig.get("/v1/clients/a").await.expect(200).json()["attributes"], json!({ "anchor": "17" }));
}
