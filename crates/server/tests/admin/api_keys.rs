//! API keys: shown once, masked for viewers, confined to their namespace, rotated and revoked.

use serde_json::{Value, json};
use tollgate_control::record::Role;

use crate::rig::{Answer, JSON, Rig};

async fn as_admin(rig: &Rig, method: &str, path: &str, body: Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    rig.call_as(&rig.admin, method, path, JSON, &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_a_key() {
    let rig = Rig::start().await;
    let made = as_admin(&rig, "POST", "/v1/keys", json!({ "client_key": "user:42", "name": "app" })).await.expect(201);
    let (key, id) =
        (made.json()["key"].as_str().unwrap().to_owned(), made.json()["key_id"].as_str().unwrap().to_owned());
    assert!(key.starts_with(&format!("tk_{id}_")) && key.len() >= 48, "160 bits: {key}");
    assert_eq!(made.field("location"), Some(format!("/v1/keys/{id}").as_str()));
    let one = format!("/v1/keys/{id}");
    let shown = as_admin(&rig, "GET", &one, Value::Null).await.expect(200);
    let mut expected = made.json();
    expected.as_object_mut().unwrap().remove("key");
    assert_eq!(shown.json(), expected);
    assert!(!shown.text().contains(&key) && !shown.text().contains("hash"), "told once");

    let rotated =
        as_admin(&rig, "POST", &format!("{one}/rotate"), json!({ "overlap": "24h" })).await.expect(200).json();
    assert_eq!(rotated["key_id"], json!(id), "the same key");
    assert_ne!(rotated["key"].as_str(), Some(key.as_str()));
    assert_ne!(rotated["fingerprint"], expected["fingerprint"]);
    assert!(rotated["previous_until"].is_string());
    as_admin(&rig, "POST", &format!("{one}/rotate"), json!({ "overlap": "91d" })).await.expect(422);
    as_admin(&rig, "POST", &format!("{one}/rotate"), json!({ "overlap": "soon" })).await.expect(422);

    as_admin(&rig, "DELETE", &one, Value::Null).await.expect(204);
    as_admin(&rig, "DELETE", &one, Value::Null).await.expect(404);
    as_admin(&rig, "POST", &format!("{one}/rotate"), json!({})).await.expect(404);
    let current = as_admin(&rig, "GET", "/v1/keys", Value::Null).await.expect(200).json();
    assert_eq!(current["keys"], json!([]));
    let all = as_admin(&rig, "GET", "/v1/keys?revoked=true", Value::Null).await.expect(200).json();
    assert_eq!(all["keys"][0]["key_id"], json!(id));
    assert!(all["keys"][0]["revoked_at"].is_string());

    let audit = as_admin(&rig, "GET", "/v1/audit?kind=key", Value::Null).await.expect(200);
    let actions: Vec<Value> =
        audit.json()["audit"].as_array().into_iter().flatten().map(|row| row["action"].clone()).collect();
    assert_eq!(actions, ["revoke", "rotate", "create"]);
    assert!(!audit.text().contains(key.rsplit('_').next().unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_see_keys_without_clients_and_none_of_another_namespace() {
    let rig = Rig::start().await;
    let made = as_admin(&rig, "POST", "/v1/keys?namespace=team", json!({ "client_key": "user:42" })).await.expect(201);
    let id = made.json()["key_id"].as_str().unwrap().to_owned();
    let viewer = rig.token(Role::Viewer, Some(&["team"])).await;
    let listed = rig.call_as(&viewer, "GET", "/v1/keys", "", "").await.expect(200);
    assert_eq!(listed.json()["keys"][0]["key_id"], json!(id));
    assert!(!listed.text().contains("user:42"), "a digest: {}", listed.text());
    let elsewhere = rig.token(Role::Operator, Some(&["side"])).await;
    let none = rig.call_as(&elsewhere, "GET", "/v1/keys", "", "").await.expect(200).json();
    assert_eq!(none["keys"], json!([]));
    for path in [format!("/v1/keys/{id}"), format!("/v1/keys/{id}?namespace=side")] {
        rig.call_as(&elsewhere, "DELETE", &path, "", "").await.expect(404);
    }
    rig.call_as(&elsewhere, "DELETE", &format!("/v1/keys/{id}?namespace=team"), "", "").await.expect(403);
    rig.call_as(&viewer, "POST", "/v1/keys", JSON, "{\"client_key\":\"user:1\"}").await.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_key_is_refused() {
    let rig = Rig::start().await;
    for (body, field) in [
        (json!({}), "client_key"),
        (json!({ "client_key": "" }), "client_key"),
        (json!({ "client_key": "user:42", "key": "mine" }), "key"),
        (json!({ "client_key": "user:42", "expires_in": "90" }), "expires_in"),
        (json!({ "client_key": "user:42", "name": "x".repeat(201) }), "name"),
        (json!({ "client_key": "user:42", "namespace": "other" }), "namespace"),
    ] {
        let answer = as_admin(&rig, "POST", "/v1/keys", body.clone()).await;
        assert!(matches!(answer.status, 400 | 422), "{body}: {}", answer.status);
        assert_eq!(answer.faults().first().map(|(field, _)| field.as_str()), Some(field), "{body}");
    }
}
