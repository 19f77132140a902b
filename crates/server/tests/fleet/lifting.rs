//! Lifting a penalty that one node has in its own memory: by that node, and by no other.

use std::path::PathBuf;

use serde_json::Value;
use tollgate_config::{Config, DbPlace};
use tollgate_control::DatabaseUrl;
use tollgate_lab::patience::eventually;
use tollgate_lab::redis::RedisServer;

use crate::node::{PATIENCE, store};
use crate::penalties::{REQUEST, RULES};
use crate::rig::{Answer, Rig, call};

const ONE_DAY_MS: f64 = 86_400_000.0;

/// Nodes with one database. They have one name, that of the host, and one secret.
struct Nodes {
    files: tempfile::TempDir,
}

impl Nodes {
    fn new() -> Nodes {
        let files = tempfile::tempdir().expect("a directory");
        std::fs::write(files.path().join("secret"), "sixteen bytes of one secret").expect("a file");
        Nodes { files }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    async fn open(&self, rules: &str, change: impl FnOnce(&mut Config)) -> Rig {
        Rig::open(rules, |config, dir| {
            config.control.db = DbPlace::At(DatabaseUrl::Sqlite(self.path("tollgate.db")));
            config.control.state_dir = Some(dir);
            config.secret_file = Some(self.path("secret"));
            change(config);
        })
        .await
    }

    async fn operator(&self, rig: &Rig, method: &str, path: &str) -> Answer {
        let token = std::fs::read_to_string(self.path("admin-token")).expect("the first token");
        call(&rig.admin, method, path, &format!("Authorization: Bearer {}\r\n", token.trim()), "").await
    }

    async fn listed(&self, rig: &Rig) -> Vec<Value> {
        let listed = self.operator(rig, "GET", "/v1/penalties").await.json();
        listed["penalties"].as_array().expect("a list").clone()
    }

    /// Waits until so many penalties are listed.
    async fn list_of(&self, rig: &Rig, count: usize) -> Vec<Value> {
        eventually("the penalties are listed", PATIENCE, async || {
            Some(self.listed(rig).await).filter(|listed| listed.len() == count)
        })
        .await
    }
}

/// True if a penalty refuses the client: for longer than the window could.
async fn is_penalised(rig: &Rig) -> bool {
    let answer = rig.check(REQUEST).await;
    answer["allowed"] == false && answer["retry_after_ms"].as_f64().unwrap_or(0.0) > ONE_DAY_MS
}

async fn penalise(rig: &Rig) {
    eventually("a penalty", PATIENCE, async || is_penalised(rig).await.then_some(())).await;
}

fn path_of(penalty: &Value) -> String {
    format!("/v1/penalties/{}", penalty["penalty_id"].as_str().expect("an id"))
}

async fn the_node_that_has_it_lifts_it(nodes: &Nodes, here: Rig, there: Rig) {
    penalise(&here).await;
    assert!(!is_penalised(&there).await, "the other node has buckets of its own");
    let listed = nodes.list_of(&there, 1).await;
    let node = listed[0]["node"].as_str().expect("a node").to_owned();
    assert!(node.ends_with(&format!("@{}", here.admin)), "{node}");

    let refused = nodes.operator(&there, "DELETE", &path_of(&listed[0])).await;
    let problem = refused.json();
    assert_eq!((refused.status, problem["code"].as_str()), (409, Some("held_by_another_node")), "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(&node)), "{problem}");
    assert!(is_penalised(&here).await, "still in force");
    assert_eq!(nodes.listed(&there).await.len(), 1, "and still listed");

    assert_eq!(nodes.operator(&here, "DELETE", &path_of(&listed[0])).await.status, 204);
    assert!(!is_penalised(&here).await);
    assert!(nodes.listed(&here).await.is_empty());
    assert_eq!(nodes.operator(&here, "DELETE", &path_of(&listed[0])).await.status, 404);
    here.end().await;
    there.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_does_not_lift_a_penalty_in_the_memory_of_another() {
    let nodes = Nodes::new();
    let (here, there) = (nodes.open(RULES, |_| {}).await, nodes.open(RULES, |_| {}).await);
    the_node_that_has_it_lifts_it(&nodes, here, there).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_penalty_of_a_local_rule_belongs_to_its_node_though_the_store_is_shared() {
    let (redis, nodes) = (RedisServer::start(), Nodes::new());
    let rules = RULES.replace("    limit:", "    consistency: local\n    limit:");
    let open = async || nodes.open(&rules, |config| config.store = store(&redis.url())).await;
    let (here, there) = (open().await, open().await);
    the_node_that_has_it_lifts_it(&nodes, here, there).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lifting_the_penalty_of_one_node_leaves_that_of_another() {
    let nodes = Nodes::new();
    let (here, there) = (nodes.open(RULES, |_| {}).await, nodes.open(RULES, |_| {}).await);
    penalise(&here).await;
    penalise(&there).await;
    let listed = nodes.list_of(&here, 2).await;
    assert_eq!(listed[0]["penalty_id"], listed[1]["penalty_id"], "one secret, one bucket");
    assert_eq!(nodes.operator(&there, "DELETE", &path_of(&listed[0])).await.status, 204);
    assert!(!is_penalised(&there).await);
    assert!(is_penalised(&here).await);
    let left = nodes.listed(&there).await;
    assert_eq!(left.len(), 1);
    assert!(left[0]["node"].as_str().is_some_and(|node| node.ends_with(&here.admin.to_string())), "{left:?}");
    assert_eq!(nodes.operator(&there, "DELETE", &path_of(&left[0])).await.status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn penalties_in_memory_end_with_their_process() {
    let nodes = Nodes::new();
    let (here, there) = (nodes.open(RULES, |_| {}).await, nodes.open(RULES, |_| {}).await);
    penalise(&here).await;
    penalise(&there).await;
    nodes.list_of(&here, 2).await;
    let address = here.admin.clone();
    here.end().await;
    let again = nodes.open(RULES, |config| config.admin = Some(address)).await;
    let left = nodes.list_of(&again, 1).await;
    assert!(left[0]["node"].as_str().is_some_and(|node| node.ends_with(&there.admin.to_string())), "{left:?}");
    assert!(!is_penalised(&again).await);
}
