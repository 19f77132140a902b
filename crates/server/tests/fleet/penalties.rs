//! Penalties of a fleet: begun once, in force at all nodes, listed and lifted.

use serde_json::{Value, json};
use tollgate_config::DbPlace;
use tollgate_control::DatabaseUrl;
use tollgate_lab::patience::eventually;
use tollgate_lab::redis::RedisServer;

use crate::node::{PATIENCE, store};
use crate::rig::{Rig, call};

pub const RULES: &str = "
key_by: user_id
rules:
  - name: guarded
    limit: { requests: 2, window: 1d, algorithm: fixed_window }
    penalty: { after: 5, within: 1h, block: 2d }
";

pub const REQUEST: &str = r#"{"client_key":"user:42"}"#;
const TWO_DAYS: f64 = 2.0 * 86_400.0;

#[tokio::test(flavor = "multi_thread")]
async fn a_penalty_is_in_force_at_all_nodes_until_it_is_lifted() {
    let (redis, files) = (RedisServer::start(), tempfile::tempdir().expect("a directory"));
    let database = files.path().join("tollgate.db");
    let open = || {
        let (url, database) = (redis.url(), database.clone());
        Rig::open(RULES, move |config, dir| {
            config.store = store(&url);
            config.control.db = DbPlace::At(DatabaseUrl::Sqlite(database));
            config.control.state_dir = Some(dir);
        })
    };
    let (here, there) = (open().await, open().await);
    let token = std::fs::read_to_string(files.path().join("admin-token")).expect("the first token");
    let operator = async |rig: &Rig, method: &str, path: &str| {
        let fields = format!("Authorization: Bearer {}\r\n", token.trim());
        call(&rig.admin, method, path, &fields, "").await
    };
    let retry_after = |answer: &Value| answer["retry_after_ms"].as_f64().unwrap_or(0.0) / 1000.0;

    for rig in [&here, &there] {
        assert_eq!(rig.check(REQUEST).await["allowed"], true);
    }
    // Denied by the window first, then for longer than that could be.
    let penalised = async |rig: &Rig| {
        let answer = rig.check(REQUEST).await;
        assert_eq!(answer["allowed"], false);
        Some(answer.clone()).filter(|answer| retry_after(answer) > 86_400.0)
    };
    let first = eventually("a penalty", PATIENCE, async || penalised(&here).await).await;
    assert!(retry_after(&first) <= TWO_DAYS, "{first}");
    assert_eq!((&first["limit"], &first["remaining"], &first["rule"]), (&json!(2), &json!(0), &json!("guarded")));
    eventually("at the other node", PATIENCE, async || penalised(&there).await).await;
    assert_eq!(there.check(r#"{"client_key":"user:43"}"#).await["allowed"], true, "others are not concerned");

    let listed = eventually("it is listed", PATIENCE, async || {
        let listed = operator(&there, "GET", "/v1/penalties?client_key=user:42").await.json();
        Some(listed["penalties"].clone()).filter(|penalties| penalties[0].is_object())
    })
    .await;
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "begun once: {listed}");
    assert_eq!((&listed[0]["rule_id"], &listed[0]["number"]), (&json!("guarded"), &json!(1)));
    assert!(!listed.to_string().contains("user:42"), "{listed}");
    assert_eq!(here.figure("tollgate_penalties_total").await + there.figure("tollgate_penalties_total").await, 1.0);

    let path = format!("/v1/penalties/{}", listed[0]["penalty_id"].as_str().expect("an id"));
    assert_eq!(operator(&here, "DELETE", &path).await.status, 204);
    assert_eq!(operator(&here, "DELETE", &path).await.status, 404);
    eventually("the window refuses again", PATIENCE, async || {
        let answer = here.check(REQUEST).await;
        Some(()).filter(|()| answer["allowed"] == false && retry_after(&answer) <= 86_400.0)
    })
    .await;
    let audit = operator(&here, "GET", "/v1/audit?kind=penalty").await;
    assert!(String::from_utf8_lossy(&audit.body).contains("lift"), "{}", audit.head);
}
