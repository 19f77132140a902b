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
        fleet.until_both_are_seen().await;
        fleet
    }

    /// Waits until each node sees the other.
    async fn until_both_are_seen(&self) {
        for node in 0..2 {
            self.get_of_both(node, "/v1/traffic/top").await;
        }
    }

    async fn ask(&self, node: usize, path: &str) -> Answer {
        call(&self.nodes[node].admin, "GET", path, &format!("Authorization: Bearer {}\r\n", self.token), "").await
    }

    async fn get(&self, node: usize, path: &str) -> Value {
        let answer = self.ask(node, path).await;
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    /// The same of both nodes: on a busy machine one may not answer in time.
    async fn get_of_both(&self, node: usize, path: &str) -> Value {
        eventually("both answer", PATIENCE, async || {
            let answer = Some(self.ask(node, path).await).filter(|answer| answer.status == 200)?.json();
            Some(answer).filter(|answer| answer["nodes"].as_array().is_some_and(|nodes| nodes.len() == 2))
        })
        .await
    }

    /// A decision, once it is found.
    async fn found(&self, node: usize, id: &str) -> Answer {
        eventually("a decision", PATIENCE, async || {
            Some(self.ask(node, &format!("/v1/decisions/{id}")).await).filter(|answer| answer.status == 200)
        })
        .await
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
    let mut ids: BTreeSet<String> = fleet.check(0, "user:alice", 20).await.into_iter().collect();
    ids.extend(fleet.check(1, "user:alice", 22).await);
    ids.extend(fleet.check(1, "user:bob", 2).await);
    for (node, names) in [(0, json!(["a", "b"])), (1, json!(["b", "a"]))] {
        let top = eventually("all refusals are counted", PATIENCE, async || {
            let top = fleet.get_of_both(node, "/v1/traffic/top?by=denied&rule=daily").await;
            Some(top).filter(|top| top["items"][0]["count"] == 39)
        })
        .await;
        assert_eq!((&top["nodes"], &top["missing_nodes"]), (&names, &json!([])), "{top}");
        let first = &top["items"][0];
        assert_eq!((&first["error"], &top["missing_at_most"], &first["rule"]), (&json!(0), &json!(0), &json!("daily")));
        assert_eq!(top["items"].as_array().expect("a list").len(), 1, "bob is not refused: {top}");
        let client = first["client"].as_str().expect("a client").replace('#', "%23");

        for query in ["rule=daily", "client=user:alice", &format!("client={client}&rule=daily")] {
            let series = eventually("the last second is over", PATIENCE, async || {
                let series = fleet.get_of_both(node, &format!("/v1/traffic/series?{query}")).await;
                Some(series).filter(|series| query != "rule=daily" || sum(series, "denied") == 39)
            })
            .await;
            assert_eq!(series["nodes"], names);
            // A client has a series at each node from its eighth request there on, of every five minutes: 28 of 42, or less if
            // they end just now.
            let (allowed, denied) = (sum(&series, "allowed"), sum(&series, "denied"));
            match query {
                "rule=daily" => assert_eq!((allowed, denied), (5, 39)),
                _ => assert!((1..=28).contains(&(allowed + denied)), "{query}: {allowed} and {denied}"),
            }
        }

        let overview = eventually("both are in the totals", PATIENCE, async || {
            let overview = fleet.get_of_both(node, "/v1/traffic/overview").await;
            Some(overview).filter(|overview| overview["totals"]["denied"] == 39)
        })
        .await;
        assert_eq!((&overview["totals"]["allowed"], &overview["limited_now"]), (&json!(5), &json!(1)), "{overview}");
        assert_eq!(overview["top_rules"][0]["denied"], 39, "{overview}");
        let nodes = overview["nodes"].as_array().expect("a list");
        assert!(nodes.len() == 2 && nodes.iter().all(|node| node["answered"] == true), "{overview}");

        // Pages of decisions: each one once, the latest first.
        let (mut seen, mut times, mut path) = (BTreeSet::new(), Vec::new(), "/v1/decisions?limit=4".to_owned());
        loop {
            let page = fleet.get_of_both(node, &path).await;
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
        let of_alice = fleet.get_of_both(node, &format!("/v1/decisions?client={client}&allowed=false")).await;
        let deciders: BTreeSet<&str> =
            of_alice["decisions"].as_array().expect("a list").iter().filter_map(|own| own["node"].as_str()).collect();
        assert_eq!((of_alice["decisions"].as_array().map(Vec::len), deciders), (Some(39), BTreeSet::from(["a", "b"])));
    }
    for id in &ids {
        let decision = fleet.found(0, id).await.json();
        assert_eq!(decision["decision_id"].as_str(), Some(id.as_str()));
    }
    eventually("both are asked in vain", PATIENCE, async || {
        let unknown = fleet.ask(0, "/v1/decisions/0123456789abcdef").await;
        assert_eq!(unknown.status, 404);
        Some(()).filter(|()| unknown.json()["detail"].as_str().is_some_and(|text| text.contains(": a, b.")))
    })
    .await;
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
    assert_eq!(fleet.found(0, &ids[0]).await.json()["node"], "b");
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

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_strangers_are_ignored() {
    let fleet = TrafficFleet::start().await;
    let mut client = fleet.redis.client();
    let channels = client.call(&["PUBSUB", "CHANNELS", "tg:nodes:*"]);
    let channels = channels.array().expect("a list");
    let channels: Vec<&str> = channels.iter().filter_map(|name| std::str::from_utf8(name.text()?).ok()).collect();
    assert_eq!(channels.len(), 3, "one of all nodes, and one of each: {channels:?}");
    let long = "x".repeat(1 << 20); // longer than any message: the connection is not read further, and replaced
    for channel in channels {
        for message in ["", "x", &"x".repeat(100), &long] {
            client.succeed(&["PUBLISH", channel, message]);
        }
    }
    fleet.until_both_are_seen().await;
    let id = &fleet.check(0, "user:alice", 1).await[0];
    assert_eq!(fleet.found(1, id).await.json()["node"], "a");
}
