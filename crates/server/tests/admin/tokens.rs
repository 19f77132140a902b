//! Tokens: shown once, valid at once, revoked at once; S06 and S07 of the corpus.

use serde_json::{Value, json};
use tollgate_control::record::Role;
use tollgate_control::{Author, Instant, TokenDraft};
use tollgate_core::Span;

use crate::rig::{Answer, JSON, Rig};

async fn as_admin(rig: &Rig, method: &str, path: &str, body: Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    rig.call_as(&rig.admin, method, path, JSON, &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_a_token() {
    let rig = Rig::start().await;
    let body = json!({ "name": "deploy", "role": "operator", "namespaces": ["team"], "expires_in": "90d" });
    let made = as_admin(&rig, "POST", "/v1/tokens", body).await.expect(201);
    let token = made.json()["token"].as_str().unwrap().to_owned();
    let id = made.json()["token_id"].as_str().unwrap().to_owned();
    assert!(token.starts_with(&format!("tg_{id}_")) && token.len() >= 30, "{token}");
    assert_eq!(made.field("location"), Some(format!("/v1/tokens/{id}").as_str()));
    assert_eq!(made.json()["expires_at"], json!(rig.in_seconds(90 * 86_400)));
    assert_eq!(made.json()["created_by"].as_str(), rig.admin.split('_').nth(1));

    let shown = as_admin(&rig, "GET", &format!("/v1/tokens/{id}"), Value::Null).await.expect(200).json();
    let mut expected = made.json();
    expected.as_object_mut().unwrap().remove("token");
    assert_eq!(shown, expected);
    let all = as_admin(&rig, "GET", "/v1/tokens", Value::Null).await.expect(200);
    assert_eq!(all.json()["tokens"].as_array().unwrap().len(), 4);
    assert!(!all.text().contains(&token) && !all.text().contains("hash"), "told once");

    let who = rig.call_as(&token, "GET", "/v1/whoami", "", "").await.expect(200).json();
    assert_eq!(
        who,
        json!({ "token_id": id, "name": "deploy", "role": "operator", "namespaces": ["team"], "expires_at": made.json()["expires_at"] })
    );
    let rule = json!({ "rule_id": "a", "limit": 1, "window_seconds": 1 }).to_string();
    let in_team = rig.call_as(&token, "POST", "/v1/rules", JSON, &rule).await.expect(201).json();
    assert_eq!(in_team["namespace"], "team", "its only namespace is the one it means");

    as_admin(&rig, "DELETE", &format!("/v1/tokens/{id}"), Value::Null).await.expect(204);
    assert_eq!(rig.call_as(&token, "GET", "/v1/whoami", "", "").await.expect(401).code(), "unknown_token", "at once");
    as_admin(&rig, "DELETE", &format!("/v1/tokens/{id}"), Value::Null).await.expect(404);
    let used = rig.tokens.used();
    assert!(used.iter().any(|(token_id, _)| *token_id == id), "{used:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_token_is_refused() {
    let rig = Rig::start().await;
    for (body, faults) in [
        (json!({}), "name missing-field, role missing-field"),
        (json!({ "name": "a", "role": "root" }), "role unknown-value"),
        (json!({ "name": "a", "role": "viewer", "namespaces": "team" }), "namespaces wrong-type"),
        (json!({ "name": "a", "role": "viewer", "namespaces": [] }), "namespaces out-of-range"),
        (json!({ "name": "a", "role": "viewer", "namespaces": ["team", "a\"b"] }), "namespaces bad-name"),
        (json!({ "name": "a", "role": "viewer", "expires_in": "90" }), "expires_in bad-duration"),
        (json!({ "name": "a", "role": "viewer", "expires_at": "2020-01-01T00:00:00Z" }), "expires_at out-of-range"),
        (
            json!({ "name": "a", "role": "viewer", "expires_at": "2553-01-01T00:00:00Z", "expires_in": "1d" }),
            "expires_in out-of-range",
        ),
        (json!({ "name": "a", "role": "viewer", "secret": "mine" }), "secret unknown-field"),
    ] {
        let answer = as_admin(&rig, "POST", "/v1/tokens", body.clone()).await;
        let told: Vec<String> = answer.faults().into_iter().map(|(field, code)| format!("{field} {code}")).collect();
        assert_eq!(told.join(", "), faults, "{body}");
        assert!(matches!(answer.status, 400 | 422));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_does_not_outlive_the_one_that_made_it() {
    let rig = Rig::start().await;
    let hour = Instant(rig.now().0 + 3_600_000_000);
    let maker = rig.token_until(Role::Admin, None, Some(hour)).await;
    let make = async |expiry: Value| {
        let mut body = json!({ "name": "a", "role": "viewer" });
        body.as_object_mut().unwrap().extend(expiry.as_object().unwrap().clone());
        rig.call_as(&maker, "POST", "/v1/tokens", JSON, &body.to_string()).await
    };
    for longer in [json!({ "expires_in": "61m" }), json!({ "expires_at": rig.in_seconds(3601) })] {
        let faults = make(longer.clone()).await.expect(422).faults();
        assert_eq!(faults, [("expires_at".to_owned(), "not-yours".to_owned())], "{longer}");
    }
    assert_eq!(make(json!({ "expires_in": "1h" })).await.expect(201).json()["expires_at"], json!(hour.to_string()));
    assert_eq!(
        make(json!({})).await.expect(201).json()["expires_at"],
        json!(hour.to_string()),
        "it ends with its maker"
    );
    let free = as_admin(&rig, "POST", "/v1/tokens", json!({ "name": "a", "role": "viewer" })).await.expect(201);
    assert_eq!(free.json()["expires_at"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_of_some_namespaces_gives_no_more_than_it_has() {
    let rig = Rig::start().await;
    let team = rig.token(Role::Admin, Some(&["team", "side"])).await;
    let make = |namespaces: Value| {
        let (rig, team) = (&rig, &team);
        let body = json!({ "name": "a", "role": "admin", "namespaces": namespaces }).to_string();
        async move { rig.call_as(team, "POST", "/v1/tokens", JSON, &body).await }
    };
    for beyond in [Value::Null, json!(["default"]), json!(["team", "default"])] {
        let faults = make(beyond.clone()).await.expect(422).faults();
        assert_eq!(faults, [("namespaces".to_owned(), "not-yours".to_owned())], "{beyond}");
    }
    let made = make(json!(["team"])).await.expect(201).json();
    let listed = rig.call_as(&team, "GET", "/v1/tokens", "", "").await.expect(200).json();
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 2, "its own and the one it made: {listed}");
    let other = rig.admin.split('_').nth(1).unwrap();
    rig.call_as(&team, "GET", &format!("/v1/tokens/{other}"), "", "").await.expect(404);
    rig.call_as(&team, "DELETE", &format!("/v1/tokens/{other}"), "", "").await.expect(404);
    let own = made["token_id"].as_str().unwrap();
    rig.call_as(&team, "DELETE", &format!("/v1/tokens/{own}"), "", "").await.expect(204);
    for (method, path, body) in [("GET", "/v1/audit/verify", ""), ("PUT", "/v1/mode", "{\"mode\":\"off\"}")] {
        let answer = rig.call_as(&team, method, path, JSON, body).await;
        assert_eq!(answer.expect(403).code(), "not_for_all_namespaces", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s06_calls_without_a_valid_token_are_refused() {
    let rig = Rig::start().await;
    let get = |fields: String, path: &'static str| {
        let rig = &rig;
        async move { rig.raw("GET", path, &fields, b"").await }
    };
    let none = get(String::new(), "/v1/rules").await.expect(401);
    assert_eq!((none.code().as_str(), none.field("www-authenticate")), ("no_token", Some("Bearer")));
    let (no, unknown) = (["", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "tg_x_y"], ["Bearer tg_x_y", "Bearer tg_"]);
    let expected = no.map(|value| (value, "no_token")).into_iter().chain(unknown.map(|value| (value, "unknown_token")));
    for (value, code) in expected {
        let answer = get(format!("Authorization: {value}\r\n"), "/v1/rules").await.expect(401);
        assert_eq!(answer.code(), code, "{value}");
    }
    let good = format!("Authorization: Bearer {}\r\n", rig.viewer);
    get(good.clone(), "/v1/rules").await.expect(200);
    get(good.replace("Bearer", "bearer"), "/v1/rules").await.expect(200);
    for path in ["/v1/rules?token=x", "/v1/rules?access_token=x", "/v1/rules?name=tg_a_b"] {
        assert_eq!(get(good.clone(), path).await.expect(401).code(), "token_in_query", "{path}");
        assert_eq!(get(String::new(), path).await.expect(401).code(), "token_in_query", "{path}");
    }
    let short = rig.token_until(Role::Viewer, None, Some(Instant(rig.now().0 + 60_000_000))).await;
    rig.call_as(&short, "GET", "/v1/rules", "", "").await.expect(200);
    rig.clock.advance(Span::from_secs(60));
    assert_eq!(rig.call_as(&short, "GET", "/v1/rules", "", "").await.expect(401).code(), "token_expired");
    let almost = format!("{}x", rig.viewer);
    assert_eq!(rig.call_as(&almost, "GET", "/v1/rules", "", "").await.expect(401).code(), "unknown_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn s07_only_the_address_that_keeps_guessing_is_throttled() {
    let rig = Rig::start().await;
    let bad = "Authorization: Bearer tg_guess_guess\r\n";
    let good = format!("Authorization: Bearer {}\r\n", rig.viewer);
    for _ in 0..20 {
        rig.raw_from([127, 0, 0, 9], "GET", "/v1/rules", bad).await.expect(401);
    }
    let waits = rig.raw_from([127, 0, 0, 9], "GET", "/v1/rules", bad).await.expect(429);
    assert_eq!((waits.code().as_str(), waits.field("retry-after")), ("too_many_bad_tokens", Some("6")));
    let looked_at = rig.raw_from([127, 0, 0, 9], "GET", "/v1/rules", &good).await;
    assert_eq!(looked_at.status, 429, "no secret is compared for it, not even a good one");
    rig.raw_from([127, 0, 0, 8], "GET", "/v1/rules", &good).await.expect(200);
    rig.raw_from([127, 0, 0, 9], "GET", "/openapi.json", "").await.expect(200);
    rig.clock.advance(Span::from_secs(6));
    rig.raw_from([127, 0, 0, 9], "GET", "/v1/rules", &good).await.expect(200);
    for _ in 0..50 {
        rig.raw_from([127, 0, 0, 7], "GET", "/v1/rules", "").await.expect(401);
    }
    rig.raw_from([127, 0, 0, 7], "GET", "/v1/rules", &good).await.expect(200);
}

/// Another process, such as `tollgate db token`, created it: the node finds it in the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_known_as_soon_as_the_database_has_it() {
    let rig = Rig::start().await;
    let draft = TokenDraft { name: "new".to_owned(), role: Role::Viewer, namespaces: None, expires_at: None };
    let author = Author { id: "cli".to_owned(), name: "cli".to_owned() };
    let (record, token) = rig.control.as_ref().unwrap().create_token(&draft, &author).await.unwrap();
    let write = rig.call_as(&token, "POST", "/v1/rules?nonsense=1", "", "").await;
    assert_eq!(write.expect(403).code(), "role_too_weak", "its role is looked at first");
    let fresh = rig.control.as_ref().unwrap().create_token(&draft, &author).await.unwrap().1;
    rig.call_as(&fresh, "GET", "/v1/rules", "", "").await.expect(200);
    let wrong = format!("tg_{}_wrong", record.token_id);
    let refused = rig.call_as(&wrong, "GET", "/v1/rules?nonsense=1", "", "").await;
    assert_eq!(refused.expect(401).code(), "unknown_token", "nothing else is told");
    rig.control.as_ref().unwrap().revoke_token(&record.token_id, &author).await.unwrap();
    rig.tokens.remove(&record.token_id);
    assert_eq!(rig.call_as(&token, "GET", "/v1/rules", "", "").await.expect(401).code(), "unknown_token");
}
