//! Units that clients take in advance, against a real server: how many decisions a call gives, and that all processes together
//! are admitted no more than the limit and what P5 adds to it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "support/server.rs"]
mod running;
mod support;

use std::fs;

use running::Server;
use support::Dir;
use tollgate_client::{Attribute, Client, ClientConfig, OnError, Prefetch, PrefetchConfig, Request, Span};

/// Nothing refills while a test runs.
const RULES: &str = "
key_by: user_id
rules:
  - { name: hot, match: { endpoint: 'GET /hot' }, limit: { requests: 100000, window: 24h } }
  - { name: scarce, match: { endpoint: 'GET /scarce' }, limit: { requests: 500, window: 24h } }
";

fn server(name: &str) -> (Dir, Server) {
    let dir = Dir::new(name);
    fs::write(dir.path("rules.yaml"), RULES).unwrap();
    let server = Server::start(
        dir.tollgate(),
        &["--rules", &dir.path("rules.yaml").display().to_string(), "--http", "127.0.0.1:0"],
    );
    (dir, server)
}

fn client(server: &Server) -> Client {
    // Patient, and closed: what a slow machine does not answer must not count as admitted.
    let config = ClientConfig::new(server.url()).timeout(Span::from_secs(30)).on_error(OnError::Closed);
    Client::new(config).unwrap()
}

fn asked(endpoint: &str) -> Request<'_> {
    Request::new().with(Attribute::UserId, "42").with(Attribute::Endpoint, endpoint)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_key_costs_a_call_per_hundred_decisions_and_comes_back() {
    let (_dir, server) = server("prefetch-hot");
    let client = client(&server);
    // A life longer than the test: the machine may be slow.
    let config = PrefetchConfig { units: 100, life: Span::from_secs(600), ..PrefetchConfig::default() };
    let prefetch = Prefetch::new(client.clone(), config);
    let mut leased = 0;
    for _ in 0..5_000 {
        let decision = prefetch.check(&asked("GET /hot")).await.unwrap();
        assert!(decision.allowed);
        leased += usize::from(decision.mode == "lease");
    }
    assert_eq!(leased, 5_000);
    let held = prefetch.units_held();
    prefetch.close().await;
    let left = client.check(&asked("GET /hot").peek()).await.unwrap().remaining.unwrap();
    // What was refilled meanwhile is far less than a call's units.
    assert!((95_000..=95_000 + 100).contains(&left), "{left} left of 100,000, {held} were held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_together_are_admitted_no_more_than_the_limit() {
    let (_dir, server) = server("prefetch-scarce");
    let mut processes = Vec::new();
    for _ in 0..4 {
        let prefetch =
            Prefetch::new(client(&server), PrefetchConfig { deny_for: Span::ZERO, ..PrefetchConfig::default() });
        processes.push(tokio::spawn(async move {
            let mut admitted = 0;
            for _ in 0..300 {
                admitted += u32::from(prefetch.check(&asked("GET /scarce")).await.unwrap().allowed);
            }
            prefetch.close().await;
            admitted
        }));
    }
    let mut admitted = 0;
    for process in processes {
        admitted += process.await.unwrap();
    }
    // One unit every 173 s refills; nothing is spent that was not charged.
    assert!((300..=505).contains(&admitted), "{admitted} of 500");
}
