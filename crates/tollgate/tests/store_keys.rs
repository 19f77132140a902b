//! `tollgate store keys` with a real node and a real store: the keys are those of the node, and the decoded state
//! matches the counts of the node.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "support/server.rs"]
mod running;
mod support;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use running::Server;
use serde_json::Value;
use support::Dir;
use tollgate_lab::patience;
use tollgate_lab::redis::{RedisCluster, RedisServer};

const RULES: &str = "key_by: client_key
rules:
  - { name: tokens, limit: { requests: 24, window: 1d, burst: 10 } }
  - { name: windows, match: { endpoint: 'GET /a' }, limit: { requests: 20, window: 1d, algorithm: fixed_window } }
  - { name: counter, limit: { requests: 30, window: 1d, algorithm: sliding_window_counter } }
  - { name: log, limit: { requests: 40, window: 1d, algorithm: sliding_window_log } }
  - { name: flight, limit: { slots: 5, slot_ttl: 1h, algorithm: concurrency } }
  - { name: by-endpoint, key_by: 'client_key:endpoint', limit: { requests: 50, window: 1d, algorithm: fixed_window } }
  - { name: paid, match: { tier: paid }, limit: { requests: 60, window: 1d } }
  - { name: alone, limit: { requests: 70, window: 1d }, consistency: local }
";
const CLIENT: [&str; 4] = ["--client", "user:42", "--tier", "free"];

/// A node with generous timeouts, for a busy machine.
fn node(dir: &Dir, store: &str, more: &[&str]) -> Server {
    dir.write("keys.yaml", RULES);
    let args = ["--rules", "keys.yaml", "--http", "127.0.0.1:0", "--store", store];
    let patience = ["--store-timeout", "2s", "--decision-deadline", "4s"];
    Server::start(dir.tollgate(), &[&args[..], &patience, more].concat())
}

fn run(dir: &Dir, args: &[&str]) -> (i32, String, String) {
    let output = dir.tollgate().args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn keys(dir: &Dir, store: &str, more: &[&str]) -> (i32, String, String) {
    run(dir, &[&["store", "keys", "--store", store, "--rules", "keys.yaml"], &CLIENT[..], more].concat())
}

/// The rules by name, from `--json`.
fn listed(dir: &Dir, store: &str, more: &[&str]) -> Value {
    let (code, text, error) = keys(dir, store, &[more, &["--json"]].concat());
    assert_eq!(code, 0, "{error}");
    let listed: Value = serde_json::from_str(&text).unwrap();
    by_name(&listed)
}

fn by_name(listed: &Value) -> Value {
    let rules = listed["rules"].as_array().unwrap().iter();
    rules.map(|rule| (rule["name"].as_str().unwrap().to_owned(), rule.clone())).collect()
}

fn charge(dir: &Dir, server: &Server, times: &str) {
    let call = ["check", "--url", server.url(), "--endpoint", "GET /a", "--repeat", times];
    let (code, text, error) = run(dir, &[&call[..], &CLIENT].concat());
    assert_eq!(code, 0, "{text}{error}");
}

fn acquire_slot(server: &Server) {
    let mut stream = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap();
    let body = r#"{"client_key":"user:42","tier":"free","endpoint":"GET /a"}"#;
    let head =
        "POST /v1/slots/acquire HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json";
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(r#""slot":"tgr_"#), "{answer}");
}

fn explained(dir: &Dir, server: &Server) -> Value {
    let call = ["explain", "--url", server.url(), "--json", "--endpoint", "GET /a"];
    let (_, text, error) = run(dir, &[&call[..], &CLIENT].concat());
    by_name(&serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{error}")))
}

#[test]
fn shows_what_a_node_counted_of_every_algorithm() {
    let (dir, redis) = (Dir::new("store-keys"), RedisServer::start());
    let server = node(&dir, &redis.url(), &[]);
    let unused = listed(&dir, &redis.url(), &[]);
    for name in ["tokens", "windows", "counter", "log", "flight"] {
        let bucket = &unused[name]["buckets"][0];
        assert_eq!((&bucket["exists"], &bucket["used"]), (&false.into(), &0.into()), "{name}: {bucket}");
    }
    let (_, text, _) = keys(&dir, &redis.url(), &[]);
    assert!(text.contains("  state     no key: unused, 40 of 40 left\n"), "{text}");

    charge(&dir, &server, "3");
    acquire_slot(&server);
    let client = &mut redis.client();
    let found = listed(&dir, &redis.url(), &[]);
    let explained = explained(&dir, &server);
    // Whether the slot counts as a request is read from the node.
    for (name, limit) in [("tokens", 10), ("windows", 20), ("counter", 30), ("log", 40)] {
        let (bucket, by_node) = (&found[name]["buckets"][0], &explained[name]);
        assert_eq!(bucket["store_key"], by_node["store_key"], "{name}");
        assert_eq!(bucket["used"], by_node["used_before"], "{name}");
        assert_eq!((&bucket["limit"], &bucket["slot"]), (&limit.into(), &Value::Null), "{name}");
        assert!(bucket["used"].as_u64() >= Some(3) && bucket["ttl_ms"].as_u64() > Some(0), "{name}: {bucket}");
        let key = bucket["store_key"].as_str().unwrap();
        assert_eq!(client.number(&["EXISTS", key]), 1, "{name}");
    }
    let used = &explained["windows"]["used_before"];
    assert_eq!(&found["windows"]["buckets"][0]["state"]["count"], used);
    assert_eq!(&found["counter"]["buckets"][0]["state"]["current"], used);
    assert_eq!(&found["log"]["buckets"][0]["state"]["entries"], used);
    assert_eq!(found["flight"]["buckets"][0]["state"]["held"], 1);
    assert_eq!(found["flight"]["buckets"][0]["remaining"], 4);
    assert!(found["tokens"]["buckets"][0]["state"]["tat"].as_str().unwrap().ends_with('Z'));

    assert_eq!(found["windows"]["assumed"], serde_json::json!(["endpoint"]));
    let because = |name: &str| found[name]["because"].as_str().unwrap_or_default();
    assert_eq!(because("by-endpoint"), "its key needs endpoint, which was not given");
    assert_eq!(because("paid"), "tier should be paid, is free");
    assert!(because("alone").contains("local"), "{}", because("alone"));
    let complete = listed(&dir, &redis.url(), &["--endpoint", "GET /a"]);
    assert_eq!(complete["by-endpoint"]["buckets"][0]["store_key"], explained["by-endpoint"]["store_key"]);
    assert_eq!(&complete["by-endpoint"]["buckets"][0]["used"], used);

    // The command sends only reads, and runs no script.
    drop(server);
    let is_alone = || client.text(&["CLIENT", "LIST"]).lines().count() == 1;
    patience::until("the node's connections end", Duration::from_secs(30), is_alone);
    client.succeed(&["CONFIG", "RESETSTAT"]);
    listed(&dir, &redis.url(), &["--endpoint", "GET /a"]);
    let sent = client.text(&["INFO", "commandstats"]);
    let sent = sent.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split(':').next());
    let sent: BTreeSet<&str> = sent.collect();
    let reads = ["client|setname", "config|resetstat", "get", "lrange", "pttl", "script|load", "time"];
    let reads: BTreeSet<&str> = reads.into_iter().chain(["zcount", "zrange", "zrangebyscore"]).collect();
    assert_eq!(sent, reads);
}

#[test]
fn an_override_of_the_rules_file_is_the_limit_of_its_client() {
    let (dir, redis) = (Dir::new("store-keys-override"), RedisServer::start());
    let _server = node(&dir, &redis.url(), &[]); // keeps the secret in the store
    let overrides = "overrides:\n  - { client_key: 'user:42', rule: windows, requests: 500 }\n";
    dir.write("keys.yaml", format!("{RULES}{overrides}"));
    let found = listed(&dir, &redis.url(), &[]);
    let limits = |name: &str| (found[name]["limit"]["requests"].as_u64(), found[name]["buckets"][0]["limit"].as_u64());
    assert_eq!(limits("windows"), (Some(500), Some(500)));
    assert_eq!(limits("counter"), (Some(30), Some(30)));
}

#[test]
fn reports_foreign_values_and_keys_without_expiry() {
    let (dir, redis) = (Dir::new("store-keys-foreign"), RedisServer::start());
    let server = node(&dir, &redis.url(), &[]);
    charge(&dir, &server, "1");
    let found = listed(&dir, &redis.url(), &[]);
    let key = |name: &str| found[name]["buckets"][0]["store_key"].as_str().unwrap().to_owned();
    let client = &mut redis.client();
    drop(server); // it would repair the following changes
    client.succeed(&["PERSIST", &key("counter")]);
    client.succeed(&["DEL", &key("log")]);
    client.succeed(&["SET", &key("log"), "text"]);
    client.succeed(&["SET", &key("tokens"), "soon"]);
    let (code, text, error) = keys(&dir, &redis.url(), &[]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(text.matches("not a bucket of this algorithm").count(), 2, "{text}");
    assert!(text.contains("none: the key never expires"), "{text}");
}

#[test]
fn uses_the_secret_of_the_nodes() {
    let (dir, redis) = (Dir::new("store-keys-secret"), RedisServer::start());
    dir.write("secret", "0123456789abcdef0123456789abcdef");
    dir.write("other", "fedcba9876543210fedcba9876543210");
    let server = node(&dir, &redis.url(), &["--secret-file", "secret"]);
    let (code, _, error) = keys(&dir, &redis.url(), &[]);
    assert_eq!(code, 2);
    assert!(error.contains("the store holds no secret") && error.contains("--secret-file"), "{error}");
    charge(&dir, &server, "1");
    let found = listed(&dir, &redis.url(), &["--secret-file", "secret"]);
    assert_eq!(found["tokens"]["buckets"][0]["store_key"], explained(&dir, &server)["tokens"]["store_key"]);
    let fingerprinted = || redis.client().number(&["EXISTS", "tg:{AAA}fingerprint"]) == 1;
    patience::until("a node leaves the fingerprint of its secret", Duration::from_secs(30), fingerprinted);
    let (code, text, warning) = keys(&dir, &redis.url(), &["--secret-file", "other"]);
    assert!(warning.contains("another secret"), "{warning}");
    assert!(code == 0 && !text.contains("ttl"), "{text}");
}

#[test]
fn shows_the_slots_of_a_cluster() {
    let (dir, cluster) = (Dir::new("store-keys-cluster"), RedisCluster::start());
    let server = node(&dir, &cluster.url(), &[]);
    charge(&dir, &server, "2");
    let (found, explained) = (listed(&dir, &cluster.url(), &[]), explained(&dir, &server));
    for name in ["tokens", "windows", "counter", "log"] {
        let bucket = &found[name]["buckets"][0];
        assert_eq!(bucket["store_key"], explained[name]["store_key"], "{name}");
        assert_eq!(bucket["slot"], explained[name]["slot"], "{name}");
        assert_eq!(bucket["used"], 2, "{name}");
    }
}

#[test]
fn errors_are_clear() {
    let dir = Dir::new("store-keys-wrong");
    dir.write("keys.yaml", RULES);
    let (code, _, error) = keys(&dir, "redis://user:hunter2@127.0.0.1:1", &[]);
    assert_eq!(code, 2);
    assert!(error.contains("cannot connect") && !error.contains("hunter2"), "{error}");
    let call = ["store", "keys", "--store", "redis://127.0.0.1:1", "--rules", "keys.yaml"];
    assert!(run(&dir, &call).2.contains("--client user:42"));
}

/// An override in the database counts where its admin listener is named: the state is decoded with its limit.
#[test]
fn overrides_in_the_database_apply_where_an_admin_listener_is_named() {
    let (dir, redis) = (Dir::new("store-keys-overrides"), RedisServer::start());
    let store = redis.url();
    let server = node(&dir, &store, &["--state-dir", "state"]);
    let create = ["overrides", "create", "--client", "user:42", "--rule", "windows", "--limit", "200", "--for", "2h"];
    let made = server.operator(&dir).args(create).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let limit = |mut command: Command| {
        let asked = ["store", "keys", "--store", &store, "--rules", "keys.yaml", "--endpoint", "GET /a", "--json"];
        let output = command.args(asked).args(CLIENT).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        by_name(&serde_json::from_slice(&output.stdout).unwrap())["windows"]["limit"]["requests"].clone()
    };
    assert_eq!(limit(dir.tollgate()), 20, "no admin listener is named");
    assert_eq!(limit(server.operator(&dir)), 200);
}
