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

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/console/run.js");
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/node/node_modules");

#[test]
fn people_do_their_tasks_in_a_browser() {
    assert!(Path::new(PACKAGES).join("playwright-core").is_dir(), "Playwright is not here: script/setup installs it");
    let (dir, redis) = (Dir::new("console"), RedisServer::start());
    let store = redis.url();
    let args = ["--rules", "examples/fleet.yaml", "--http", "127.0.0.1:0", "--state-dir", "state", "--store", &store];
    // A busy machine responds late, which no task is about.
    let patience = ["--store-timeout", "2s", "--decision-deadline", "4s", "--violations-plain-keys"];
    let args: Vec<&str> = args.into_iter().chain(patience).collect();
    let server = Server::start(dir.tollgate(), &args);
    let token = fs::read_to_string(dir.path("state/admin-token")).unwrap();
    let output = Command::new(program::named("node"))
        .arg(SCRIPT)
        .env("NODE_PATH", PACKAGES)
        .env("ADMIN", &server.admin)
        .env("DATA", server.url())
        .env("TOKEN", token.trim())
        .env("CHROMIUM", program::named("chromium"))
        .output()
        .unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "\n{told}\n{errors}");
    assert_eq!(told.lines().filter(|line| line.starts_with("ok ")).count(), 8, "\n{told}\n{errors}");
}
