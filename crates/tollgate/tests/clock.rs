//! The wall clock is set while a server runs: dates and expiry follow it, buckets do not.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "support/server.rs"]
mod running;
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use running::Server;
use serde_json::Value;
use support::Dir;
use tollgate_core::{Clock, Span, Time};
use tollgate_lab::wall_clock::WallClock;
use tollgate_rules::datetime;
use tollgate_store::MonotonicClock;

const HOUR: i64 = 3600;

const RULES: &str = "rules:
  - { name: hourly, match: { endpoint: /a }, key_by: user_id, limit: { requests: 2, window: 1h, algorithm: sliding_window_log } }
  - { name: spare, match: { endpoint: /b }, key_by: user_id, limit: { requests: 5, window: 1h } }
";

struct Answered {
    status: u16,
    date: u64,
    body: Value,
}

/// One call; `head` is a request line without the version, and optional headers.
fn call(url: &str, head: &str, body: &str) -> Answered {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (line, fields) = head.split_once("\r\n").unwrap_or((head, "X-Test: 1"));
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let date = head.lines().find_map(|line| line.strip_prefix("Date: ")).unwrap();
    let status = head[9..12].parse().unwrap();
    Answered { status, date: seconds(date), body: serde_json::from_str(body).unwrap_or_default() }
}

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds(date: &str) -> u64 {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = MONTHS.find(&date[8..11]).unwrap() / 3 + 1;
    let text = format!("{}-{month:02}-{}T{}Z", &date[12..16], &date[5..7], &date[17..25]);
    datetime::parse(&text).unwrap() / 1_000_000_000
}

fn until(what: &str, mut holds: impl FnMut() -> bool) -> Span {
    let start = MonotonicClock::new().now();
    loop {
        let waited = MonotonicClock::new().now().since(start);
        if holds() {
            return waited;
        }
        assert!(waited < Span::from_secs(20), "{what}");
    }
}

fn around(actual: u64, expected: i64) -> bool {
    actual.cast_signed().abs_diff(expected) <= 5
}

/// Seconds since 1970 on a clock that is `ahead` by so many seconds.
fn wall(ahead: i64) -> i64 {
    (MonotonicClock::new().wall().since(Time::ZERO).nanos() / 1_000_000_000).cast_signed() + ahead
}

#[test]
fn setting_the_clock_moves_dates_and_expiry_but_no_bucket() {
    let dir = Dir::new("clock");
    dir.write("rules.yaml", RULES);
    let clock = WallClock::new(&dir.path(""));
    let mut command = dir.tollgate();
    clock.apply(&mut command);
    let server = Server::start(command, &["--http", "127.0.0.1:0", "--state-dir", "state", "--rules", "rules.yaml"]);
    let url = server.url().to_owned();
    let check = |path: &str| call(&url, "POST /v1/check", &format!(r#"{{"user_id":"1","endpoint":"{path}"}}"#));
    let first = fs::read_to_string(dir.path("state/admin-token")).unwrap();
    let with = |token: &str| format!("GET /v1/rules\r\nAuthorization: Bearer {}", token.trim());
    let admin = |token: &str| call(&server.admin, &with(token), "").status;

    let create = ["tokens", "create", "--name", "soon", "--role", "viewer", "--expires-in", "30m", "--json"];
    let made = server.operator(&dir).args(create).output().unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap_or_else(|_| panic!("{made:?}"));
    let soon = made["token"].as_str().unwrap().to_owned();
    until("the new token is known", || admin(&soon) == 200);

    let before = check("/a");
    assert!(around(before.date, wall(0)), "{}", before.date);
    assert_eq!(before.body["remaining"], 1);

    clock.set(HOUR);
    let took = until("Date follows", || around(check("/b").date, wall(HOUR)));
    assert!(took < Span::from_secs(5), "within a second, on a machine that is not busy: {took}");
    let forward = check("/a");
    assert_eq!(forward.body["remaining"], 0, "an hour on the wall gives nothing back");
    assert!(around(forward.body["reset_at"].as_u64().unwrap(), wall(2 * HOUR)), "{}", forward.body);
    assert_eq!((admin(&soon), admin(&first)), (401, 200), "what expires at a date has expired");

    clock.set(-HOUR);
    until("Date follows back", || around(check("/b").date, wall(-HOUR)));
    let back = check("/a");
    assert_eq!((&back.body["allowed"], &back.body["remaining"]), (&Value::Bool(false), &Value::from(0)));
    let wait = back.body["retry_after"].as_u64().unwrap();
    assert!((3500..=3600).contains(&wait), "the bucket never saw a step: {wait}");
    assert!(around(back.body["reset_at"].as_u64().unwrap(), wall(0)), "{}", back.body);
    assert_eq!(admin(&soon), 200, "by that clock it is good again");
}

const MONTHLY: &str = "rules: [{ name: monthly, key_by: user_id, quota: { amount: 10, every: month, rollover: 20% } }]";

/// A node with buckets in memory and a journal, on a clock that can be set. It can be started again.
struct MonthlyNode {
    dir: Dir,
    clock: WallClock,
    server: Option<Server>,
}

impl MonthlyNode {
    fn start(name: &str) -> MonthlyNode {
        let dir = Dir::new(name);
        dir.write("rules.yaml", MONTHLY);
        let clock = WallClock::new(&dir.path(""));
        let mut node = MonthlyNode { dir, clock, server: None };
        node.start_again();
        node
    }

    /// Ends the process, if there is one, and starts the next one in the same directory.
    fn start_again(&mut self) {
        if let Some(server) = self.server.take() {
            server.end();
        }
        let mut command = self.dir.tollgate();
        self.clock.apply(&mut command);
        let arguments =
            ["--http", "127.0.0.1:0", "--state-dir", "state", "--drain-delay", "0s", "--rules", "rules.yaml"];
        self.server = Some(Server::start(command, &arguments));
    }

    fn url(&self) -> &str {
        self.server.as_ref().unwrap().url()
    }

    /// The answer to a check of this cost.
    fn charge(&self, cost: u64) -> Value {
        call(self.url(), "POST /v1/check", &format!(r#"{{"user_id":"1","cost":{cost}}}"#)).body
    }

    /// Used and remaining units, and the end of the period in seconds since 1970.
    fn usage(&self) -> (u64, u64, i64) {
        let answer = call(self.url(), "GET /v1/usage?user_id=1", "").body;
        let rule = &answer["rules"][0];
        let number = |name: &str| rule[name].as_u64().unwrap_or_else(|| panic!("{answer}"));
        let end = datetime::parse(rule["period"]["end"].as_str().unwrap()).unwrap() / 1_000_000_000;
        assert_eq!(number("reset_at"), end, "the wall clock shows it when the period ends: {answer}");
        (number("used"), number("remaining"), end.cast_signed())
    }

    /// Sets the clock this many seconds after the end of the month that it is now, or before.
    fn step_to(&self, end: i64, after: i64) {
        self.clock.set(end - wall(0) + after);
        until("the node sees the step", || {
            let date = call(self.url(), "POST /v1/check", r#"{"user_id":"watch","cost":0}"#).date;
            around(date, end + after)
        });
    }
}

#[test]
fn a_month_ends_when_the_clock_is_stepped_over_its_end() {
    let node = MonthlyNode::start("clock-month");
    assert_eq!(node.charge(7)["allowed"], true);
    let (used, remaining, end) = node.usage();
    assert_eq!((used, remaining), (7, 3));

    node.step_to(end, -HOUR);
    assert_eq!(node.usage(), (7, 3, end), "the last hour");
    node.step_to(end, HOUR);
    let (used, remaining, next_end) = node.usage();
    assert_eq!((used, remaining), (0, 12), "ten, and two of the three that were left");
    assert!(next_end > end + 27 * 86_400, "{next_end}");
    let charged = node.charge(5);
    assert_eq!((&charged["allowed"], &charged["remaining"]), (&Value::Bool(true), &Value::from(7)), "{charged}");

    node.step_to(end, -HOUR);
    let (used, _, back) = node.usage();
    assert_eq!((used, back), (5, end), "a step back keeps what the period has that runs");
}

#[test]
fn a_journal_of_a_month_that_has_ended_hands_on_what_was_left() {
    let mut node = MonthlyNode::start("clock-journal");
    assert_eq!(node.charge(7)["allowed"], true);
    let (_, _, end) = node.usage();
    node.step_to(end, -HOUR);
    node.start_again();
    assert_eq!(node.usage(), (7, 3, end), "the month goes on");
    node.clock.set(end - wall(0) + HOUR);
    node.start_again();
    let (used, remaining, next_end) = node.usage();
    assert_eq!((used, remaining), (0, 12), "a new month, and what was left of the last one");
    assert_eq!(node.charge(5)["remaining"], 7);
    node.start_again();
    assert_eq!(node.usage(), (5, 7, next_end));
    node.clock.set(next_end - wall(0) + 40 * 86_400);
    node.start_again();
    let (used, remaining, _) = node.usage();
    assert_eq!((used, remaining), (0, 10), "a month without a charge hands nothing on");
}
