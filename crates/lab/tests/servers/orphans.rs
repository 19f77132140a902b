//! A test that is killed leaves nothing behind.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tollgate_lab::redis::RedisServer;
use tollgate_lab::{patience, postgres};

const ROLE: &str = "TOLLGATE_TEST_VICTIM";
const NAME: &str = "orphans::nothing_outlives_a_test_that_is_killed";

/// Runs itself as a second process, which starts servers, one of them halted, one with children, and is killed.
#[test]
fn nothing_outlives_a_test_that_is_killed() {
    if env::var_os(ROLE).is_some() {
        return wait_for_the_end();
    }
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(ROLE, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
    let found: Vec<String> = lines.filter_map(|line| Some(line.split_once("found ")?.1.to_owned())).take(4).collect();
    let is_there = |name: &String| Path::new(name).exists();
    assert!(found.len() == 4 && found.iter().all(is_there), "{found:?}");
    victim.kill().unwrap();
    victim.wait().unwrap();
    patience::until("processes and files are gone", Duration::from_secs(10), || !found.iter().any(is_there));
}

fn wait_for_the_end() {
    let (running, halted) = (RedisServer::start(), RedisServer::start());
    halted.stop();
    let database = postgres::shared().pid();
    let files = running.directory().display();
    let mut out = std::io::stdout().lock();
    for pid in [running.pid(), halted.pid(), database] {
        writeln!(out, "\nfound /proc/{pid}").unwrap();
    }
    writeln!(out, "found {files}").unwrap();
    patience::pause(Duration::from_secs(60));
}
