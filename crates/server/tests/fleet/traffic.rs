//! What operators see of a fleet: any node shows the traffic of all, and says which nodes it shows.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tollgate_config::DbPlace;
use tollgate_control::DatabaseUrl;
use tollgate_lab::patience::eventually;
use tollgate_lab::redis::RedisServer;
use tollgate_net::Address;

use crate::node::{PATIENCE, store};
use crate::rig::{Answer, Rig, call};

const RULES: &str = "
key_by: client_key
rules:
  - { name: daily, on_fail: deny, limit: { requests: 3, window: 1d, algorithm: fixed_window } }
";

/// Two nodes over one store and one database.
struct TrafficFleet {
    nodes: [Rig; 2],
    token: String,
    redis: RedisServer,
    _files: TempDir,
}

async fn open(redis: &RedisServer, database: &Path, name: &str) -> Rig {
    Rig::open(RULES, |config, dir| {
        config.node = Some(name.to_owned());
        config.store = store(&redis.url());
        config.control.db = DbPlace::At(DatabaseUrl::Sqlite(database.to_owned()));
        config.control.state_dir = Some(dir);
        config.answer.decision_ids = true;
    })
    .await
}

impl TrafficFleet {
    /// Ready: each sees the other.
    async fn start() -> TrafficFleet {
        let (redis, files) = (RedisServer::start(), tempfile::tempdir().expect("a directory"));
        let database = files.path().join("tollgate.db");
        let nodes = [open(&redis, &database, "a").await, open(&redis, &database, "b").await];
        let token = std::fs::read_to_string(files.path().join("admin-token")).expect("the first token");
        let fleet = TrafficFleet { nodes, token: token.trim().to_owned(), redis, _files: files };
        for node in 0..2 {
            eventually("both nodes are seen", PATIENCE, async || {
                let nodes = fleet.get(node, "/v1/traffic/top").await["nodes"].clone();
                Some(()).filter(|()| nodes.as_array().is_some_and(|nodes| nodes.len() == 2))
            })
            .await;
        }
        fleet
    }

    async fn ask(&self, node: usize, path: &str) -> Answer {
        call(&self.nodes[node].admin, "GET", path, &format!("Authorization: Bearer {}\r\n", self.token), "").await
    }

    async fn get(&self, node: usize, path: &str) -> Value {
        let answer = self.ask(node, path).await;
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    /// So many requests of a client at a node. Returns the ids of the decisions.
    async fn check(&self, node: usize, client: &str, times: usize) -> Vec<String> {
        let mut ids = Vec::new();
        for _ in 0..times {
            let answer = self.nodes[node].check(&format!(r#"{{"client_key":"{client}"}}"#)).await;
            ids.push(answer["decision_id"].as_str().expect("an id").to_owned());
        }
        ids
    }
}

fn sum(series: &Value, name: &str) -> u64 {
    series[name].as_array().expect("steps").iter().filter_map(Value::as_u64).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn any_node_shows_the_traffic_of_all() {
    let fleet = TrafficFleet::start().await;
    // The limit is shared: three requests pass, whatever node they come to.
    let mut ids: BTreeSet<String> = fleet.check(0, "user:alice", 10).await.into_iter().collect();
    ids.extend(fleet.check(1, "user:alice", 12).await);
    ids.extend(fleet.check(1, "user:bob", 2).await);
    for (node, names) in [(0, json!(["a", "b"])), (1, json!(["b", "a"]))] {
        let top = eventually("all refusals are counted", PATIENCE, async || {
            let top = fleet.get(node, "/v1/traffic/top?by=denied&rule=daily").await;
            Some(top).filter(|top| top["items"][0]["count"] == 19)
        })
        .await;
        assert_eq!((&top["nodes"], &top["missing_nodes"]), (&names, &json!([])), "{top}");
        let first = &top["items"][0];
        assert_eq!((&first["error"], &top["missing_at_most"], &first["rule"]), (&json!(0), &json!(0), &json!("daily")));
        assert_eq!(top["items"].as_array().expect("a list").len(), 1, "bob is not refused: {top}");
        let client = first["client"].as_str().expect("a client").replace('#', "%23");

        for query in ["rule=daily", "client=user:alice", &format!("client={client}&rule=daily")] {
            let series = eventually("the last second is over", PATIENCE, async || {
                let series = fleet.get(node, &format!("/v1/traffic/series?{query}")).await;
                Some(series).filter(|series| query != "rule=daily" || sum(series, "denied") == 19)
            })
            .await;
            assert_eq!(series["nodes"], names);
            // A client has a series at each node from its eighth request there on: three of ten, and five of twelve.
            let expected = if query == "rule=daily" { (5, 19) } else { (0, 8) };
            assert_eq!((sum(&series, "allowed"), sum(&series, "denied")), expected, "{query}");
        }

        let overview = eventually("both are in the totals", PATIENCE, async || {
            let overview = fleet.get(node, "/v1/traffic/overview").await;
            Some(overview).filter(|overview| overview["totals"]["denied"] == 19)
        })
        .await;
        assert_eq!((&overview["totals"]["allowed"], &overview["limited_now"]), (&json!(5), &json!(1)), "{overview}");
        assert_eq!(overview["top_rules"][0]["denied"], 19, "{overview}");
        let nodes = overview["nodes"].as_array().expect("a list");
        assert!(nodes.len() == 2 && nodes.iter().all(|node| node["answered"] == true), "{overview}");

        // Pages of decisions: each one once, the latest first.
        let (mut seen, mut times, mut path) = (BTreeSet::new(), Vec::new(), "/v1/decisions?limit=4".to_owned());
        loop {
            let page = fleet.get(node, &path).await;
            assert_eq!(page["nodes"], names);
            for decision in page["decisions"].as_array().expect("a list") {
                let id = decision["decision_id"].as_str().expect("an id").to_owned();
                assert!(seen.insert(id), "twice: {decision}");
                times.push(decision["at"].as_str().expect("a time").to_owned());
            }
            let Some(next) = page["next_before"].as_str() else { break };
            path = format!("/v1/decisions?limit=4&before={next}");
        }
        assert_eq!(seen, ids);
        assert!(times.iter().rev().is_sorted(), "{times:?}");
        let of_alice = fleet.get(node, &format!("/v1/decisions?client={client}&allowed=false")).await;
        let deciders: BTreeSet<&str> =
            of_alice["decisions"].as_array().expect("a list").iter().filter_map(|own| own["node"].as_str()).collect();
        assert_eq!((of_alice["decisions"].as_array().map(Vec::len), deciders), (Some(19), BTreeSet::from(["a", "b"])));
    }
    for id in &ids {
        let decision = fleet.get(0, &format!("/v1/decisions/{id}")).await;
        assert_eq!(decision["decision_id"].as_str(), Some(id.as_str()));
    }
    let unknown = fleet.ask(0, "/v1/decisions/0123456789abcdef").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.json()["detail"].as_str().is_some_and(|text| text.contains("a, b")), "{}", unknown.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_shows_itself_when_the_store_is_away_and_names_what_is_missing() {
    let mut fleet = TrafficFleet::start().await;
    fleet.check(0, "user:alice", 6).await;
    let ids = fleet.check(1, "user:alice", 1).await;
    fleet.redis.kill();
    let top = eventually("b does not answer", PATIENCE, async || {
        let top = fleet.get(0, "/v1/traffic/top?by=denied").await;
        Some(top).filter(|top| top["missing_nodes"] == json!(["b"]) && top["items"][0]["count"] == 3)
    })
    .await;
    assert_eq!(top["nodes"], json!(["a"]), "{top}");
    let unknown = fleet.ask(0, &format!("/v1/decisions/{}", ids[0])).await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.json()["detail"].as_str().is_some_and(|text| text.contains("b did not answer")));
    // The store is back, and so is the other node.
    fleet.redis.restart();
    eventually("b answers again", PATIENCE, async || {
        Some(fleet.ask(0, &format!("/v1/decisions/{}", ids[0])).await).filter(|answer| answer.status == 200)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_one_node_has_the_events_of_all() {
    let fleet = TrafficFleet::start().await;
    let Address::Tcp(address) = fleet.nodes[1].admin.clone() else { panic!("a TCP address") };
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head = format!("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n", fleet.token);
    stream.write_all(head.as_bytes()).await.expect("a reader");
    let mut text = String::new();
    let reading = async {
        let (mut asked, mut read) = (0, 0);
        let events = |text: &str, kind: &str, holds: &dyn Fn(&Value) -> bool| {
            let found = text.split("\n\n").filter(|event| event.contains(&format!("event: {kind}")));
            found
                .filter_map(|event| event.split_once("data: "))
                .any(|(_, data)| serde_json::from_str(data.trim()).is_ok_and(|data: Value| holds(&data)))
        };
        loop {
            let mut part = [0; 4096];
            let count = stream.read(&mut part).await.expect("bytes");
            assert!(count > 0, "the stream ended");
            text.push_str(&String::from_utf8_lossy(&part[..count]).replace('\r', ""));
            read += 1;
            // After each event: b begins to follow a when the stream begins, and tells what comes from then on.
            if asked < 3 * read {
                fleet.check(0, "user:alice", 4).await;
                asked += 4;
            }
            let is_denied = events(&text, "denied", &|data| data["node"] == "a" && data["rule"] == "daily");
            let is_counted =
                events(&text, "tick", &|data| data["denied"].as_u64() > Some(0) && data["limited_now"] == 1);
            if is_denied && is_counted {
                break;
            }
        }
    };
    assert!(timeout(PATIENCE, reading).await.is_ok(), "waited {PATIENCE:?} in vain: {text}");
    assert!(!text.contains("alice"), "{text}");
}
