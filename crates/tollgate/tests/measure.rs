//! `tollgate measure` against servers with a knee.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use support::Dir;
use tollgate_lab::knee::{KneeConfig, KneeServer};

/// The knee lies within these shares of what the server carries: never above it, but for the ends of a step.
const FOUND: std::ops::Range<f64> = 0.5..1.2;
/// Other processes can take the machine for longer than a step and its repetition: then it is measured again.
const ATTEMPTS: usize = 5;

fn measure(dir: &Dir, address: SocketAddr, flags: &[&str]) -> (String, String, Option<i32>) {
    let mut command = dir.tollgate();
    command.args(["measure", &format!("http://{address}/orders/1"), "--step", "1s"]).args(flags);
    let output = command.output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap(), output.status.code())
}

/// Four workers of 40 ms: 100 requests per second.
fn server() -> (KneeServer, f64) {
    let config =
        KneeConfig { workers: 4, fixed: Duration::from_millis(40), varying: Duration::ZERO, contention: 0.002 };
    (KneeServer::start(config).unwrap(), config.capacity())
}

#[test]
fn the_knee_is_found_where_the_workers_are_busy() {
    let dir = Dir::new("measure-knee");
    let (server, capacity) = server();
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let (text, errors, code) = measure(&dir, server.address(), &["--json"]);
        let told: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{errors}"));
        let share = told["knee"]["offered"].as_f64().unwrap_or(0.0) / capacity;
        assert!(share < FOUND.end, "more than the workers can do: {text}");
        if code == Some(0) && FOUND.contains(&share) {
            assert_eq!(told["end"], "found", "{text}");
            let proposed = told["proposal"]["requests_per_second"].as_f64().unwrap() / capacity;
            assert!((0.3..0.96).contains(&proposed), "a fifth below the knee: {text}");
            let steps = told["steps"].as_array().unwrap();
            let offered = |verdict: &str| -> Vec<f64> {
                let steps = steps.iter().filter(|step| step["verdict"] == verdict);
                steps.map(|step| step["offered"].as_f64().unwrap()).collect()
            };
            let highest_kept = offered("kept_up").into_iter().fold(0.0, f64::max);
            assert_eq!(told["knee"]["offered"].as_f64(), Some(highest_kept), "{text}");
            let highest = steps.iter().filter_map(|step| step["offered"].as_f64()).fold(0.0, f64::max);
            assert!(highest <= highest_kept * 1.5 * 1.5, "no step is far above what was carried: {text}");
            return;
        }
        last = text;
    }
    panic!("the knee was not found in {ATTEMPTS} attempts: {last}");
}

#[test]
fn the_proposal_is_valid_and_bounds_are_kept() {
    let dir = Dir::new("measure-proposal");
    let (server, _) = server();
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let (text, errors, code) = measure(&dir, server.address(), &["--headroom", "30%"]);
        assert_eq!(errors, "");
        if code == Some(0) {
            assert!(text.contains("◀ knee") && text.contains("\nknee: "), "{text}");
            let (rules, routes) = text.split_once("# rules.yaml").unwrap().1.split_once("# routes.yaml").unwrap();
            assert!(rules.contains("30 % below the knee"), "{text}");
            dir.write("rules.yaml", format!("#{rules}"));
            dir.write("routes.yaml", format!("#{routes}"));
            for command in [&["rules", "lint", "rules.yaml"][..], &["gateway", "check", "routes.yaml"][..]] {
                let output = dir.tollgate().args(command).output().unwrap();
                assert!(output.status.success(), "{command:?}: {output:?}\n{text}");
            }
            return;
        }
        last = text;
    }
    panic!("the knee was not found in {ATTEMPTS} attempts: {last}");
}

#[test]
fn the_search_ends_at_its_bounds() {
    let dir = Dir::new("measure-bounds");
    let (server, _) = server();
    let (text, errors, code) = measure(&dir, server.address(), &["--requests", "200"]);
    assert_eq!((errors.as_str(), code), ("", Some(1)), "{text}");
    assert!(text.contains("--requests allows no more"), "{text}");
    // A rate over a time is one request more if both ends count.
    assert!(server.finished() <= 202, "{} requests: {text}", server.finished());
    let (text, _, code) = measure(&dir, server.address(), &["--time", "1s", "--json"]);
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &told["end"], &told["knee"]), (Some(1), &Value::from("time_max"), &Value::Null));
}

#[test]
fn what_cannot_be_measured_is_an_error() {
    let dir = Dir::new("measure-errors");
    let refused = |args: &[&str]| {
        let output = dir.tollgate().arg("measure").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["http://127.0.0.1:1/"]).contains("cannot connect to 127.0.0.1:1"));
    assert!(refused(&["https://127.0.0.1/"]).contains("wants TLS"));
    assert!(refused(&["redis://127.0.0.1:1"]).contains("only http:// can be measured"));
    assert!(refused(&["http://127.0.0.1:1/", "--from", "0"]).contains("the first is at least 1"));
    assert!(refused(&["http://127.0.0.1:1/", "--headroom", "20"]).contains("write a percentage"));
}
