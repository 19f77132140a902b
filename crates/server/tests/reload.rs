//! Rules that change while they are asked: nothing is dropped, nothing is mixed, and the decision log proves it.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tollgate_config::Config;
use tollgate_net::Address;
use tollgate_server::Surface;
use tollgate_server::run::Server;

const CLIENTS: usize = 4;
const RELOADS: u64 = 12;

/// Two rules whose numbers belong together: a decision that mixed two generations would show two different ones.
fn write_rules(path: &Path, number: u64) {
    let rule = |name: &str| {
        format!(
            "  - {{ name: {name}, key_by: client_key, limit: {{ requests: {number}, window: 1h, algorithm: fixed_window }} }}\n"
        )
    };
    let text = format!("rules:\n{}{}", rule("one"), rule("two"));
    let fresh = path.with_extension("new");
    fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, path)).expect("a file");
}

async fn check(stream: &mut TcpStream, key: usize) -> Value {
    let body = format!("{{\"client_key\":\"user:{key}\"}}");
    let text = format!("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).await.expect("a connection that stays");
    let mut bytes = Vec::new();
    loop {
        assert!(stream.read_buf(&mut bytes).await.expect("an answer") > 0, "closed without an answer");
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
            if body.len() == length.parse::<usize>().expect("a number") {
                return serde_json::from_str(body).expect("JSON");
            }
        }
    }
}

/// Waits until the admin port tells this line.
async fn until_told(admin: SocketAddr, line: &str) {
    let told = async {
        loop {
            let mut stream = TcpStream::connect(admin).await.expect("an admin port");
            let get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            stream.write_all(get.as_bytes()).await.expect("somebody who listens");
            let mut text = String::new();
            stream.read_to_string(&mut text).await.expect("an answer");
            if text.contains(line) {
                return;
            }
        }
    };
    timeout(Duration::from_secs(20), told).await.unwrap_or_else(|_| panic!("waited in vain for {line}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_answered_under_exactly_one_generation() {
    let dir = tempfile::tempdir().unwrap();
    let (rules, log) = (dir.path().join("rules.yaml"), dir.path().join("decisions.log"));
    write_rules(&rules, 1_000_000);
    let config = Config {
        rules: Some(rules.clone()),
        reload_interval: Duration::from_millis(10),
        decision_log: Some(log.to_string_lossy().into_owned()),
        ..Config::for_test()
    };
    let server = Server::bind(config, None).unwrap();
    let at = |wanted: Surface| {
        let tcp = |(surface, address)| match address {
            Address::Tcp(at) if surface == wanted => Some(at),
            _ => None,
        };
        server.addresses().into_iter().find_map(tcp).unwrap()
    };
    let (address, admin) = (at(Surface::Data), at(Surface::Admin));
    let drain = server.drain();
    let running = tokio::spawn(server.run());

    let stop = Arc::new(AtomicBool::new(false));
    let (seen, mut last_seen) = watch::channel([0; CLIENTS]);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|key| {
            let (stop, seen) = (stop.clone(), seen.clone());
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let (mut answered, mut last) = (0_u64, 0);
                let mut limits: BTreeMap<u64, u64> = BTreeMap::new();
                while !stop.load(Ordering::Relaxed) {
                    let answer = check(&mut stream, key).await;
                    let generation = answer["generation"].as_u64().unwrap();
                    assert!(generation >= last, "generations never go back");
                    if last != generation {
                        last = generation;
                        seen.send_modify(|seen| seen[key] = generation);
                    }
                    answered += 1;
                    for rule in answer["rules"].as_array().unwrap() {
                        let limit = rule["limit"].as_u64().unwrap();
                        assert_eq!(*limits.entry(generation).or_insert(limit), limit, "one generation, one limit");
                    }
                }
                (answered, last, limits)
            })
        })
        .collect();
    for number in 1..=RELOADS {
        if number % 3 == 0 {
            fs::write(&rules, "rules: [{ limit: { requests: oops").unwrap(); // half of a file: changes nothing
            until_told(admin, &format!("tollgate_reload_failures_total {}\n", number / 3)).await;
        }
        write_rules(&rules, 1_000_000 + number);
        until_told(admin, &format!("tollgate_generation {}\n", 1 + number)).await;
    }
    let reached = timeout(Duration::from_secs(20), last_seen.wait_for(|seen| seen.iter().all(|at| *at == 1 + RELOADS)));
    reached.await.expect("everybody is answered under the last rules").unwrap();
    stop.store(true, Ordering::Relaxed);

    let mut answered = 0;
    let mut limits: BTreeMap<u64, u64> = BTreeMap::new();
    for client in clients {
        let (count, last, seen) = client.await.unwrap();
        answered += count;
        assert_eq!(last, 1 + RELOADS, "invalid rules are no generation");
        assert_eq!(seen.get(&last), Some(&(1_000_000 + RELOADS)), "everybody ends under the last rules");
        for (generation, limit) in seen {
            assert_eq!(*limits.entry(generation).or_insert(limit), limit, "clients agree");
        }
    }
    drain.begin();
    assert_eq!(timeout(Duration::from_secs(20), running).await.unwrap().unwrap(), 0);

    let lines: Vec<Value> =
        fs::read_to_string(&log).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len() as u64, answered, "one line per answer, none lost");
    assert!(
        lines
            .iter()
            .all(|line| line["allowed"] == true && line["key"].as_str().is_some_and(|key| !key.contains("user")))
    );
    let logged: BTreeMap<u64, usize> = lines.iter().fold(BTreeMap::new(), |mut counts, line| {
        *counts.entry(line["generation"].as_u64().unwrap()).or_default() += 1;
        counts
    });
    assert!(limits.keys().all(|generation| logged.contains_key(generation)), "what was answered is what was logged");
}

/// The first lines of a rules file are a valid one; rules that were lost with the others must not stop to limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_cut_off_is_held_back_unless_it_is_meant() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.yaml");
    let rules = |head: &str, count: usize| {
        let rule =
            |number| format!("  - {{ name: r{number}, key_by: global, limit: {{ requests: 9, window: 1h }} }}\n");
        format!("{head}rules:\n{}", (0..count).map(rule).collect::<String>())
    };
    let write = |text: String| {
        let fresh = path.with_extension("new");
        fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, &path)).expect("a file");
    };
    write(rules("", 9));
    let config = Config { rules: Some(path.clone()), reload_interval: Duration::from_millis(10), ..Config::for_test() };
    let server = Server::bind(config, None).unwrap();
    let tcp = |(surface, address)| match address {
        Address::Tcp(at) if surface == Surface::Admin => Some(at),
        _ => None,
    };
    let admin = server.addresses().into_iter().find_map(tcp).unwrap();
    let drain = server.drain();
    let running = tokio::spawn(server.run());
    until_told(admin, "\ntollgate_rules 9\n").await;
    write(rules("", 1));
    until_told(admin, "\ntollgate_reloads_held_back_total 1\n").await;
    until_told(admin, "\ntollgate_rules 9\n").await;
    write(rules("allow_shrink: true\n", 1));
    until_told(admin, "\ntollgate_rules 1\n").await;
    write("allow_shrink: true\nrules: []\n".to_owned());
    until_told(admin, "\ntollgate_rules 0\n").await;
    drain.begin();
    assert_eq!(timeout(Duration::from_secs(20), running).await.unwrap().unwrap(), 0);
}

/// The same for the files of a directory of Envoy's, which have no field to say that it is meant.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_envoy_that_was_cut_off_is_held_back_unless_that_is_allowed() {
    for allow_shrink in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let limit = |number| format!("  - key: k{number}\n    rate_limit: {{ unit: minute, requests_per_unit: 5 }}\n");
        let limits = |count: usize| format!("domain: d\ndescriptors:\n{}", (0..count).map(limit).collect::<String>());
        let write = |name: &str, text: &str| {
            let fresh = dir.path().join("fresh");
            fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, dir.path().join(name))).expect("a file");
        };
        write("a.yaml", &limits(9));
        write("b.yaml", &limits(4).replace("domain: d", "domain: e"));
        let mut config = Config { reload_interval: Duration::from_millis(10), ..Config::for_test() };
        config.envoy.config = Some(dir.path().to_owned());
        config.envoy.allow_shrink = allow_shrink;
        let server = Server::bind(config, None).unwrap();
        let tcp = |(surface, address)| match address {
            Address::Tcp(at) if surface == Surface::Admin => Some(at),
            _ => None,
        };
        let admin = server.addresses().into_iter().find_map(tcp).expect("an admin port");
        let drain = server.drain();
        let running = tokio::spawn(server.run());
        // Every domain has one more: for limits that come with the request.
        until_told(admin, "\ntollgate_rules 15\n").await;
        write("a.yaml", "domain: d\n");
        if allow_shrink {
            until_told(admin, "\ntollgate_rules 6\n").await;
        } else {
            until_told(admin, "\ntollgate_reloads_held_back_total 1\n").await;
            until_told(admin, "\ntollgate_rules 15\n").await;
            write("a.yaml", &limits(8));
            until_told(admin, "\ntollgate_rules 14\n").await;
            fs::remove_file(dir.path().join("b.yaml")).unwrap();
            until_told(admin, "\ntollgate_rules 9\n").await;
        }
        drain.begin();
        assert_eq!(timeout(Duration::from_secs(20), running).await.unwrap().unwrap(), 0);
    }
}
