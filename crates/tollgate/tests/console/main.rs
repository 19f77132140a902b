//! The console in a real browser, as people use it: with Redis and a database, with and without scripts.
//!
//! One Chromium runs the pieces of `pages/` one after another; each is a person's task. Without it, and without its
//! packages for Node, the test fails: script/setup installs them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "../support/server.rs"]
mod running;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use running::Server;
use support::Dir;
use tollgate_lab::program;
use tollgate_lab::redis::RedisServer;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/console");
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/node/node_modules");

/// Node with one of our scripts, Playwright and Chromium.
fn script(name: &str) -> Command {
    assert!(Path::new(PACKAGES).join("playwright-core").is_dir(), "Playwright is not here: script/setup installs it");
    let mut command = Command::new(program::named("node"));
    command.arg(Path::new(SCRIPTS).join(name)).env("NODE_PATH", PACKAGES).env("CHROMIUM", program::named("chromium"));
    command
}

/// Runs it: all of so many tasks are done.
fn run(mut command: Command, tasks: usize) {
    let output = command.output().unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "\n{told}\n{errors}");
    assert_eq!(told.lines().filter(|line| line.starts_with("ok ")).count(), tasks, "\n{told}\n{errors}");
}

#[test]
fn people_do_their_tasks_in_a_browser() {
    let (dir, redis) = (Dir::new("console"), RedisServer::start());
    let store = redis.url();
    let args = ["--rules", "examples/fleet.yaml", "--http", "127.0.0.1:0", "--state-dir", "state", "--store", &store];
    // A busy machine responds late, which no task is about.
    let patience = ["--store-timeout", "2s", "--decision-deadline", "4s", "--violations-plain-keys"];
    let edge = "domain: edge\ndescriptors:\n- key: tenant\n  rate_limit: { unit: day, requests_per_unit: 7 }\n";
    fs::create_dir(dir.path("envoy")).unwrap();
    dir.write("envoy/edge.yaml", edge);
    let more = ["--envoy-config", "envoy", "--webhooks", "--webhook-private-networks", "--node", "first"];
    let args: Vec<&str> = args.into_iter().chain(patience).chain(more).collect();
    let server = Server::start(dir.tollgate(), &args);
    // Another node of the same store, with other rules and without the database.
    let args = ["--rules", "examples/rules.yaml", "--http", "127.0.0.1:0", "--db", "off", "--store", &store];
    let second = Server::start(dir.tollgate(), &[&args[..], &["--node", "second"]].concat());
    let token = fs::read_to_string(dir.path("state/admin-token")).unwrap();
    let mut tasks = script("run.js");
    tasks.env("ADMIN", &server.admin).env("DATA", server.url()).env("TOKEN", token.trim());
    tasks.env("SECOND", second.id().to_string());
    run(tasks, 15);
}

#[test]
fn an_open_page_outlives_a_restart_of_its_server() {
    let dir = Dir::new("console-restart");
    let mut restart = script("restart.js");
    restart.arg(env!("CARGO_BIN_EXE_tollgate")).arg(dir.path(""));
    run(restart, 1);
}
