//! Nodes tell each other of themselves through the shared store.

use std::fs;

use serde_json::Value;
use tollgate_config::{Config, DbPlace};
use tollgate_control::DatabaseUrl;
use tollgate_lab::patience::eventually;
use tollgate_lab::redis::RedisServer;

use crate::node::{PATIENCE, store};
use crate::rig::{Rig, call};

const RULES: &str = "rules:\n  - { name: few, limit: { requests: 1, window: 1d, algorithm: fixed_window } }\n";

/// A node of this name with a database of its own, and the token of its admin API.
async fn named(redis: &RedisServer, name: &str) -> (Rig, String) {
    let (url, mut token_file) = (redis.url(), None);
    let rig = Rig::open(RULES, |config, dir| {
        *config = Config { store: store(&url), node: Some(name.to_owned()), ..config.clone() };
        config.control.db = DbPlace::At(DatabaseUrl::Sqlite(dir.join("tollgate.db")));
        config.control.state_dir = Some(dir.clone());
        token_file = Some(dir.join("admin-token"));
    })
    .await;
    let token = fs::read_to_string(token_file.expect("a directory")).expect("the first token");
    (rig, token.trim().to_owned())
}

/// What one node knows of the fleet.
async fn fleet(asked: &(Rig, String)) -> Value {
    let (rig, token) = asked;
    call(&rig.admin, "GET", "/v1/nodes", &format!("Authorization: Bearer {token}\r\n"), "").await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_node_lists_all_and_one_that_ends_in_good_order_is_gone() {
    let redis = RedisServer::start();
    let (here, there) = (named(&redis, "here").await, named(&redis, "there").await);
    for (asked, own, other) in [(&here, "here", "there"), (&there, "there", "here")] {
        let known = eventually("the other node is known", PATIENCE, async || {
            let known = fleet(asked).await;
            (known["nodes"].as_array().is_some_and(|nodes| nodes.len() == 2)).then_some(known)
        })
        .await;
        let nodes = known["nodes"].as_array().expect("a list");
        assert_eq!((&nodes[0]["node"], &nodes[1]["node"]), (&own.into(), &other.into()), "this node comes first");
        assert_eq!((&nodes[0]["is_self"], &nodes[1]["is_self"]), (&true.into(), &false.into()));
        assert_ne!(nodes[0]["node_id"], nodes[1]["node_id"]);
        for node in nodes {
            assert_eq!((&node["version"], &node["mode"]), (&env!("CARGO_PKG_VERSION").into(), &"enforce".into()));
            assert_eq!((&node["database"], &node["missing"]), (&"up".into(), &false.into()), "{node}");
            assert_eq!(node["store"][0]["state"], "up", "{node}");
            assert!(node["started_at"].is_string() && node["seen_at"].is_string(), "{node}");
        }
    }
    there.0.end().await;
    eventually("the node that ended is gone", PATIENCE, async || {
        let known = fleet(&here).await;
        (known["nodes"].as_array().is_some_and(|nodes| nodes.len() == 1)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_store_the_last_reading_is_shown_with_its_time() {
    let mut redis = RedisServer::start();
    let (here, _there) = (named(&redis, "here").await, named(&redis, "there").await);
    let read = eventually("the other node is known", PATIENCE, async || {
        let known = fleet(&here).await;
        known["nodes"][1].is_object().then_some(known)
    })
    .await;
    redis.kill();
    let down = eventually("the breaker opens", PATIENCE, async || {
        here.0.post("/v1/check", r#"{"client_key":"user:1"}"#).await;
        let known = fleet(&here).await;
        (known["nodes"][0]["store"][0]["state"] == "down").then_some(known)
    })
    .await;
    assert_eq!((&down["nodes"][1]["node"], &down["nodes"][1]["missing"]), (&"there".into(), &false.into()));
    assert!(down["read_at"].as_str() >= read["read_at"].as_str() && down["nodes"][1]["seen_at"].is_string(), "{down}");
}
