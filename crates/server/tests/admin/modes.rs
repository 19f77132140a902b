//! The kill switch, the status, and a server without a database.

use serde_json::{Value, json};
use tollgate_admin::{AdminAccess, DatabaseHealth, NodeStatus, QuarantinedRow, StoreServer};
use tollgate_control::record::Role;
use tollgate_control::{Author, DatabaseUrl, Enforcement, Instant};
use tollgate_core::Span;
use tollgate_lab::postgres::PostgresServer;

use crate::rig::{JSON, Rig, Setup};

async fn set(rig: &Rig, mode: &str) -> Value {
    let body = json!({ "mode": mode }).to_string();
    rig.call_as(&rig.admin, "PUT", "/v1/mode", JSON, &body).await.expect(200).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_turns_here_and_the_fleet_is_told() {
    let rig = Rig::start().await;
    assert_eq!(rig.get("/v1/mode").await.expect(200).json()["mode"], "enforce");
    let off = set(&rig, "off").await;
    assert_eq!(off, json!({ "mode": "off", "since": rig.in_seconds(0), "scope": "fleet" }));
    assert_eq!(rig.get("/v1/mode").await.json(), off);
    let state = rig.control.as_ref().unwrap().state().await.unwrap();
    assert_eq!((state.mode, state.mode_since), (Enforcement::Off, rig.now()));
    rig.clock.advance(Span::from_millis(1));
    set(&rig, "shadow").await;
    assert_eq!(rig.world.turned.lock().last(), Some(&Enforcement::Shadow));
    assert_eq!(*rig.world.kept.lock(), [Enforcement::Off, Enforcement::Shadow]);
    let rows = rig.get("/v1/audit?kind=mode").await.json();
    assert_eq!(rows["audit"].as_array().unwrap().len(), 2, "{rows}");
    for body in ["{\"mode\":\"on\"}", "{}", "{\"mode\":true}", "{\"mode\":\"off\",\"for\":\"1h\"}"] {
        let answer = rig.call_as(&rig.admin, "PUT", "/v1/mode", JSON, body).await;
        assert!(matches!(answer.status, 400 | 422), "{body}: {}", answer.text());
    }
    assert_eq!(rig.world.turned.lock().last(), Some(&Enforcement::Shadow));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_on_call_switches_to_shadow_and_back_and_changes_nothing_else() {
    let rig = Rig::start().await;
    let on_call = rig.token(Role::OnCall, None).await;
    let turn =
        async |mode: &str| rig.call_as(&on_call, "PUT", "/v1/mode", JSON, &json!({ "mode": mode }).to_string()).await;
    for mode in ["shadow", "enforce", "shadow"] {
        assert_eq!(turn(mode).await.expect(200).json()["mode"], mode);
    }
    assert_eq!(turn("off").await.expect(403).code(), "role_too_weak");
    set(&rig, "off").await;
    assert_eq!(turn("enforce").await.expect(403).code(), "role_too_weak", "what an admin switched off stays off");
    let rule = json!({ "limit": 1, "window_seconds": 1 }).to_string();
    assert_eq!(rig.call_as(&on_call, "POST", "/v1/rules", JSON, &rule).await.expect(403).code(), "role_too_weak");
    rig.call_as(&on_call, "GET", "/v1/rules", "", "").await.expect(200);
    set(&rig, "enforce").await;
    let operator = async |mode: &str| rig.call("PUT", "/v1/mode", JSON, &json!({ "mode": mode }).to_string()).await;
    operator("shadow").await.expect(200);
    assert_eq!(operator("off").await.expect(403).code(), "role_too_weak", "takes an admin's token");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_on_call_switches_one_rule_to_shadow_and_back() {
    let rig = Rig::start().await;
    let on_call = rig.token(Role::OnCall, None).await;
    let rule = json!({ "rule_id": "a", "limit": 1, "window_seconds": 1 }).to_string();
    rig.call("POST", "/v1/rules", JSON, &rule).await.expect(201);
    let path = "/v1/rules/a/mode";
    let turn = async |token: &str, mode: &str| {
        rig.call_as(token, "PUT", path, JSON, &json!({ "mode": mode }).to_string()).await
    };
    for mode in ["shadow", "enforce", "shadow"] {
        assert_eq!(turn(&on_call, mode).await.expect(200).json()["mode"], mode);
    }
    rig.call_as(&on_call, "DELETE", path, "", "").await.expect(204);
    assert_eq!(turn(&on_call, "off").await.expect(403).code(), "role_too_weak");
    rig.call("PUT", path, JSON, &json!({ "mode": "off" }).to_string()).await.expect(200);
    assert_eq!(turn(&on_call, "enforce").await.expect(403).code(), "role_too_weak", "an operator switched it off");
    assert_eq!(rig.call_as(&on_call, "DELETE", path, "", "").await.expect(403).code(), "role_too_weak");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_stands_still_or_behind_does_not_hold_the_switch() {
    let rig = Rig::start().await;
    for mode in ["off", "shadow", "enforce", "off"] {
        let shown = set(&rig, mode).await;
        assert_eq!((&shown["mode"], &shown["scope"]), (&json!(mode), &json!("fleet")));
        assert_eq!(rig.control.as_ref().unwrap().state().await.unwrap().mode.name(), mode);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_turns_while_the_database_is_away() {
    let mut server = PostgresServer::start();
    let rig = Rig::at(DatabaseUrl::Postgres(server.database())).await;
    server.stop(); // it keeps its connections and says nothing
    let off = set(&rig, "off").await;
    assert_eq!((&off["mode"], &off["scope"]), (&json!("off"), &json!("node")));
    assert_eq!(rig.world.turned.lock().last(), Some(&Enforcement::Off));
    server.kill();
    let away = rig.get("/v1/rules").await.expect(503);
    assert_eq!((away.code().as_str(), away.field("retry-after")), ("database_away", Some("1")));
    let body = json!({ "limit": 1, "window_seconds": 1 });
    assert_eq!(rig.send("POST", "/v1/rules", body).await.expect(503).code(), "database_away");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_database_nothing_can_be_changed_but_the_mode() {
    let dir = tempfile::tempdir().unwrap();
    let with = Rig::start().await;
    let mut rig = Rig::with(dir, Setup { place: None, hosts: Vec::new(), metrics: AdminAccess::Open }).await;
    let tokens = with.control.as_ref().unwrap().tokens().await.unwrap();
    rig.tokens.replace(tokens, tokio::time::Instant::now());
    (rig.operator, rig.admin) = (with.operator.clone(), with.admin.clone());
    assert_eq!(rig.get("/v1/rules").await.expect(200).json(), json!({ "rules": [], "next_cursor": null }));
    for (method, path, body) in [
        ("POST", "/v1/rules", "{\"limit\":1,\"window_seconds\":1}"),
        ("DELETE", "/v1/rules/a", ""),
        ("GET", "/v1/clients", ""),
        ("POST", "/v1/rules/refresh", ""),
    ] {
        let answer = rig.call(method, path, JSON, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "no_database"), "{method} {path}");
        assert!(answer.text().contains("--db"), "{}", answer.text());
    }
    let off = set(&rig, "off").await;
    assert_eq!((&off["mode"], &off["scope"]), (&json!("off"), &json!("node")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_tells_what_cannot_be_used_and_hides_keys_from_viewers() {
    let rig = Rig::start().await;
    let row = |kind: &str, namespace: &str, id: &str| QuarantinedRow {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        id: id.to_owned(),
        reason: format!("{id} is odd"),
    };
    *rig.world.status.lock() = NodeStatus {
        node: "here".to_owned(),
        serving: 7,
        generation: Some(42),
        database: DatabaseHealth::Away("connection refused".to_owned()),
        refreshed_at: Some(Instant(1_700_000_000_000_000)),
        quarantined: vec![row("rule", "default", "r"), row("client", "default", "key:abc"), row("rule", "team", "t")],
        store: vec![StoreServer { address: "127.0.0.1:6379".to_owned(), state: "down" }],
        file_errors: vec!["rules.yaml:1: no colon".to_owned()],
    };
    let shown = rig.get("/v1/status").await.expect(200).json();
    let expected = json!({
        "node": "here", "serving": 7, "generation": 42, "mode": "enforce",
        "database": { "state": "away", "error": "connection refused" },
        "refreshed_at": "2023-11-14T22:13:20.000000Z",
        "store": [{ "address": "127.0.0.1:6379", "state": "down" }],
        "file_errors": ["rules.yaml:1: no colon"],
        "quarantined": [
            { "kind": "rule", "namespace": "default", "id": "r", "reason": "r is odd" },
            { "kind": "client", "namespace": "default", "id": "key:abc", "reason": "key:abc is odd" },
            { "kind": "rule", "namespace": "team", "id": "t", "reason": "t is odd" },
        ],
    });
    assert_eq!(shown, expected);
    let viewer = rig.token(Role::Viewer, Some(&["default"])).await;
    let shown = rig.call_as(&viewer, "GET", "/v1/status", "", "").await.expect(200);
    assert!(!shown.text().contains("abc") && !shown.text().contains("colon"), "{}", shown.text());
    assert_eq!(shown.json()["quarantined"].as_array().unwrap().len(), 2, "and shows no other namespaces");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_from_somewhere_else_that_is_newer_stays() {
    let rig = Rig::start().await;
    let control = rig.control.clone().unwrap();
    let author = Author { id: "cli".to_owned(), name: "cli".to_owned() };
    let later = Instant(rig.now().0 + 1);
    control.set_mode(Enforcement::Shadow, later, &author).await.unwrap();
    let shown = set(&rig, "off").await;
    assert_eq!(
        (&shown["mode"], &shown["since"]),
        (&json!("shadow"), &json!(later.to_string())),
        "the newer word counts"
    );
    assert_eq!(rig.world.turned.lock().last(), Some(&Enforcement::Shadow), "here too");
    let state = control.state().await.unwrap();
    assert_eq!((state.mode, state.mode_since), (Enforcement::Shadow, later));
}
