//! The runbooks: each section is played against a server that was brought into the state of its alert.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tollgate_lab::fault_proxy::{Direction, FaultProxy, LinkMode};
use tollgate_lab::patience;
use tollgate_lab::redis::RedisServer;

use super::{Message, Server, Session, compare, exchange, played};
use crate::support::Dir;

const PAGE: &str = "docs/guide/runbooks.md";
const PATIENCE: Duration = Duration::from_secs(30);

type MakeScene = fn() -> Scene;

/// The sections, in their order, and how their state comes about.
const SECTIONS: [(&str, MakeScene); 9] = [
    ("Denial spike", denial_spike),
    ("One client refused steadily", client_refused),
    ("Store latency", store_latency),
    ("Breaker open", breaker_open),
    ("Fallback active", fallback_active),
    ("Reload failing", reload_failing),
    ("Upstream failing", || Scene::new("upstream", "examples/rules.yaml", None)),
    ("Quota near its end", quota_near_its_end),
    ("Panicked", || Scene::new("panicked", "examples/rules.yaml", None)),
];

/// A node in the state of an alert, and what stands behind it.
struct Scene {
    session: Session,
    link: Option<FaultProxy>,
}

#[test]
fn runbooks() {
    let (path, text) = page();
    let (head, rest) = text.split_once("\n## ").unwrap();
    let mut actual = head.to_owned();
    let sections: Vec<&str> = rest.split("\n## ").collect();
    assert_eq!(sections.len(), SECTIONS.len(), "a section has no state in this test");
    for (section, (title, state)) in sections.into_iter().zip(SECTIONS) {
        assert!(section.starts_with(&format!("{title}\n")), "{title} is not the next section of {PAGE}");
        let mut scene = state();
        actual.push_str("\n## ");
        actual.push_str(&played(section, &mut scene.session));
        let commands = section.lines().filter(|line| line.trim_start().starts_with("$ ")).count();
        assert_eq!(scene.session.commands, commands, "{title}: every command is run");
    }
    compare(PAGE, &path, &text, &actual);
}

/// A command within a sentence is one that a block of the page runs.
#[test]
fn commands_in_sentences_of_runbooks_are_run() {
    let (_, text) = page();
    let run: Vec<&str> = text.lines().filter_map(|line| line.trim_start().strip_prefix("$ ")).collect();
    let quoted = text.split('`').skip(1).step_by(2).filter(|code| code.starts_with("tollgate "));
    for command in quoted.collect::<Vec<_>>() {
        let literal = |word: &&str| !word.bytes().all(|byte| byte.is_ascii_uppercase());
        let words: Vec<&str> = command.split(' ').take_while(literal).collect();
        assert!(run.iter().any(|line| line.starts_with(&words.join(" "))), "`{command}` is not run by {PAGE}");
    }
}

/// Every alert has a section, and every section an alert.
#[test]
fn runbooks_are_those_of_the_alerts() {
    let (_, text) = page();
    let alerts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring/tollgate.rules.yml");
    let alerts = fs::read_to_string(alerts).unwrap();
    let mut named: Vec<&str> =
        alerts.lines().filter_map(|line| line.split_once("runbooks.md#").map(|(_, n)| n)).collect();
    named.dedup();
    let titles = text.lines().filter_map(|line| line.strip_prefix("## "));
    let anchors: Vec<String> = titles.map(|title| title.to_lowercase().replace(' ', "-")).collect();
    assert_eq!(anchors, named);
}

fn page() -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

impl Scene {
    /// A node with these rules in `rules.yaml`, whose store is reached through a link that can be troubled.
    fn new(name: &str, rules: &str, store: Option<RedisServer>) -> Scene {
        let dir = Dir::new(&format!("runbook-{name}"));
        fs::copy(dir.path(rules), dir.path("rules.yaml")).unwrap();
        let link = store.as_ref().map(|redis| FaultProxy::start(redis.port()));
        let url = link.as_ref().map_or("memory".to_owned(), FaultProxy::url);
        let args = ["--rules", "rules.yaml", "--http", "127.0.0.1:0", "--state-dir", "state", "--node", "node-a"];
        let args: Vec<&str> = args.into_iter().chain(["--store", &url]).collect();
        let node = Server::start(dir.tollgate(), &args);
        let token = fs::read_to_string(dir.path("state/admin-token")).unwrap().trim().to_owned();
        let store_port = link.as_ref().map(FaultProxy::port);
        let session = Session { token: Some(token), redis: store, store_port, ..Session::new(dir, vec![node]) };
        Scene { session, link }
    }

    /// Asks for decisions.
    fn ask(&self, path: &str, body: &str, times: usize) {
        let mut message = Message::get(path);
        message.post("application/json", body.to_owned());
        let address = self.session.nodes[0].url().strip_prefix("http://").unwrap();
        (0..times).for_each(|_| drop(exchange(address, &message)));
    }

    /// The sum of the series of the metrics page that begin like this.
    fn metric(&self, start: &str) -> f64 {
        let address = self.session.nodes[0].admin.strip_prefix("http://").unwrap();
        let (_, page) = exchange(address, &Message::get("metrics"));
        let series = page.lines().filter(|line| line.starts_with(start));
        series.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        patience::until(what, PATIENCE, is_so);
    }

    /// An admin command of the story before the page begins.
    fn administer(&self, words: &[&str]) -> String {
        let Session { nodes, dir, .. } = &self.session;
        let output = nodes[0].operator(dir).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        nodes[0].until_followed(dir);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until all refusals of a rule are in the database.
    fn until_refusals_are_written(&self, rule: &str, refusals: u64) {
        self.until("refusals are written", || {
            let json = self.administer(&["violations", "top", "--by", "rule", "--rule", rule, "--json"]);
            let told: Value = serde_json::from_str(&json).unwrap();
            let rows = told.as_object().and_then(|members| members.values().find_map(Value::as_array).cloned());
            let counts = rows.into_iter().flatten().filter_map(|row| row["refused"].as_u64()).sum::<u64>();
            counts == refusals
        });
    }
}

fn denial_spike() -> Scene {
    let scene = Scene::new("spike", "examples/rules.yaml", None);
    let limit = ["--limit", "600", "--window", "1m", "--algorithm", "sliding_window_log"];
    let create = ["rules", "create", "--id", "search", "--endpoint", "GET /search", "--key-by", "api_key"];
    scene.administer(&[&create[..], &limit].concat());
    scene.administer(&["rules", "update", "search", "--limit", "6"]);
    scene.ask("v1/check", r#"{"api_key":"acme","endpoint":"GET /search"}"#, 20);
    scene.ask("v1/check", r#"{"api_key":"initech","endpoint":"GET /search"}"#, 8);
    scene.until_refusals_are_written("search", 14 + 2);
    scene
}

fn client_refused() -> Scene {
    let scene = Scene::new("refused", "examples/rules.yaml", None);
    scene.ask("v1/check", r#"{"api_key":"acme","endpoint":"GET /export/users"}"#, 9);
    scene.until_refusals_are_written("exports", 3);
    scene
}

/// A program that lists keys made the server slow, and each reply takes 15 ms.
fn store_latency() -> Scene {
    let redis = RedisServer::start();
    let mut client = redis.client();
    client.succeed(&["EVAL", "for i = 1, 100000 do redis.call('SET', 'session:' .. i, i) end", "0"]);
    client.succeed(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    client.succeed(&["KEYS", "session:*"]);
    client.succeed(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"]);
    let scene = Scene::new("latency", "examples/fleet.yaml", Some(redis));
    let link = scene.link.as_ref().unwrap();
    link.set_only(Direction::Replies, LinkMode::Delay(Duration::from_millis(15)));
    let slow = || {
        let fast = scene.metric("tollgate_redis_latency_seconds_bucket{le=\"0.01\"");
        scene.metric("tollgate_redis_latency_seconds_count") > fast
    };
    scene.until("a call takes longer than 10 ms", || {
        scene.ask("v1/check", r#"{"client_key":"user:42"}"#, 1);
        slow()
    });
    scene
}

fn breaker_open() -> Scene {
    let scene = Scene::new("breaker", "examples/fleet.yaml", Some(RedisServer::start()));
    scene.ask("v1/check", r#"{"client_key":"user:42"}"#, 1);
    scene.link.as_ref().unwrap().refuse();
    scene.until("the breaker opens", || {
        scene.ask("v1/check", r#"{"client_key":"user:42"}"#, 1);
        scene.metric("tollgate_redis_breaker{") == 2.0
    });
    scene
}

/// The store answers, and refuses to write.
fn fallback_active() -> Scene {
    let redis = RedisServer::start();
    let mut client = redis.client();
    let scene = Scene::new("fallback", "examples/fleet.yaml", Some(redis));
    client.succeed(&["CONFIG", "SET", "maxmemory", "1"]);
    scene.until("decisions are made without the store", || {
        scene.ask("v1/check", r#"{"client_key":"user:42"}"#, 1);
        scene.metric("tollgate_fallback_decisions_total") > 0.0
    });
    scene
}

fn reload_failing() -> Scene {
    let scene = Scene::new("reload", "examples/fleet.yaml", None);
    let file = scene.session.dir.path("rules.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("window: 1m", "window: 1 minute", 1)).unwrap();
    scene.until("the reload fails", || scene.metric("tollgate_reload_failures_total") > 0.0);
    scene
}

fn quota_near_its_end() -> Scene {
    let scene = Scene::new("quota", "examples/quotas.yaml", None);
    scene.ask("v1/reserve", r#"{"org":"acme","costs":{"output_tokens":460000}}"#, 1);
    scene.until("the mark is reached", || scene.metric("tollgate_quota_marks_total") == 2.0);
    scene
}
