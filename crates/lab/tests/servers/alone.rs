//! One server: both flavours, stopping and restarting, and clocks that step.

use std::time::Duration;

use tollgate_lab::patience::{self, Watch};
use tollgate_lab::redis::{Flavour, RedisClient, RedisOptions, RedisServer};
use tollgate_testkit::checker;

#[test]
fn both_flavours_answer_and_say_who_they_are() {
    let redis = RedisServer::of(Flavour::Redis);
    assert!(!redis.client().fields(&["INFO", "server"]).contains_key("valkey_version"));
    let valkey = RedisServer::of(Flavour::Valkey);
    assert!(valkey.client().fields(&["INFO", "server"])["valkey_version"].starts_with("9."));
}

#[test]
fn comes_back_empty_on_its_port() {
    let mut server = RedisServer::start();
    let port = server.port();
    server.client().succeed(&["SET", "a", "1"]);
    server.kill();
    assert!(RedisClient::connect(port).is_err(), "the port is closed");
    server.restart();
    assert_eq!((server.port(), server.client().number(&["DBSIZE"])), (port, 0));
}

#[test]
fn halts_and_goes_on() {
    let server = RedisServer::start();
    let mut client = server.client().patience(Duration::from_millis(200));
    server.stop();
    assert!(client.try_call(&["PING"]).is_err(), "a stopped server does not answer");
    server.cont();
    assert_eq!(server.client().text(&["PING"]), "PONG");
}

#[test]
fn clocks_step_on_both_flavours() {
    for flavour in Flavour::ALL {
        let server = RedisOptions { flavour, own_clock: true, ..RedisOptions::default() }.start();
        let (start, watch) = (server.seconds(), Watch::start());
        for step in [-3600, 7200, 0, 86_400 * 365 * 80] {
            server.step_clock(step);
            let shown = server.seconds() - start;
            assert!((step..step + 20).contains(&shown), "{flavour:?}: stepped by {step}, shows {shown}");
        }
        assert!(watch.elapsed() < Duration::from_secs(20), "our own clock has not moved");
    }
}

#[test]
fn keys_expire_by_the_clock_that_steps() {
    let server = RedisOptions { own_clock: true, ..RedisOptions::default() }.start();
    let mut client = server.client();
    client.succeed(&["SET", "a", "1", "PX", "10000"]);
    server.step_clock(-3600);
    patience::until("E12: ten seconds become an hour", Duration::from_secs(5), || {
        client.number(&["PTTL", "a"]) > 3_600_000 // the server reads its clock a few times per second
    });
    server.step_clock(7200);
    patience::until("E13: everything is gone", Duration::from_secs(5), || client.number(&["EXISTS", "a"]) == 0);
}

#[test]
fn p19_a_scan_finds_buckets_that_stay() {
    let server = RedisServer::start();
    let mut client = server.client();
    let [good, long, immortal] = ["good", "long", "immortal"].map(|name| format!("tg:{{abc}}{name:_<22}"));
    for (key, millis) in [(good.as_str(), "1000"), (&long, "70000"), ("tg:{abc}secret", "80000")] {
        client.succeed(&["SET", key, "1", "PX", millis]);
    }
    client.succeed(&["SET", &immortal, "1"]);
    let (buckets, found) = checker::scan(&mut client, Duration::from_secs(60));
    assert_eq!((buckets, found.keys().collect()), (3, vec![&immortal, &long]));
    assert_eq!(found[&immortal], -1);
}
