//! Which stores a node starts on, and what it says about the others.

use tollgate_config::{Config, StoreSettings};
use tollgate_lab::redis::RedisServer;
use tollgate_server::run::Server as Node;
use tollgate_store_redis::check::acl_user;

use crate::node::store;
use crate::rig::Rig;

const RULES: &str = "rules: [{ name: all, key_by: client_key, limit: { requests: 10, window: 1d } }]";

async fn refusal(store: StoreSettings) -> String {
    let error = Node::open(Config { store, ..Config::for_test() }, None).await.err().expect("no start");
    format!("{error:#}")
}

#[tokio::test]
async fn f24_a_store_that_evicts_is_refused_where_that_was_asked_for() {
    let redis = RedisServer::start_with(&["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    let text = refusal(StoreSettings { require_noeviction: true, ..store(&redis.url()) }).await;
    assert!(text.contains("cannot be used") && text.contains("noeviction"), "{text}");
    Node::open(Config { store: store(&redis.url()), ..Config::for_test() }, None).await.expect("only complains");
}

#[tokio::test]
async fn a_member_of_a_cluster_is_not_taken_for_a_single_server() {
    let redis = RedisServer::start_with(&["--cluster-enabled", "yes"]);
    let text = refusal(store(&redis.url())).await;
    assert!(text.contains("redis-cluster://"), "{text}");
}

#[tokio::test]
async fn p30_a_wrong_password_is_told_and_not_shown() {
    let redis = RedisServer::start();
    redis.client().succeed(&["CONFIG", "SET", "requirepass", "right-one"]);
    let url = redis.url().replace("://", "://:wrong-one@");
    let text = refusal(store(&url)).await;
    assert!(text.contains("password") && !text.contains("wrong-one"), "{text}");
}

#[tokio::test]
async fn a_user_with_exactly_the_documented_rights_is_enough_and_its_password_may_be_in_a_file() {
    let redis = RedisServer::start();
    let command = acl_user("tollgate", "hunter2");
    redis.client().succeed(&command.split(' ').collect::<Vec<_>>());
    redis.client().succeed(&["ACL", "SETUSER", "default", "off"]);
    let url = redis.url().replace("://", "://tollgate@");
    let rig = Rig::open(RULES, |config, dir| {
        let file = dir.join("password");
        std::fs::write(&file, "hunter2\n").expect("a file");
        config.store = StoreSettings { password_file: Some(file), ..store(&url) };
    });
    let answer = rig.await.check(r#"{"client_key":"user:1"}"#).await;
    assert_eq!((&answer["mode"], &answer["allowed"]), (&"store".into(), &true.into()));
}
