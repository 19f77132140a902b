//! The monitoring pack in deploy/monitoring: its alerts do what they say, and every query names what a node exports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tollgate_config::DbPlace;
use tollgate_control::DatabaseUrl;
use tollgate_core::{ManualClock, Span, Time};
use tollgate_lab::program;
use tollgate_lab::redis::RedisServer;
use tollgate_net::Address;

use crate::node::store;
use crate::rig::{Rig, call};

const RULES: &str = "
key_by: client_key
rules:
  - { name: few, match: { tier: free }, limit: { requests: 1, window: 1d, algorithm: fixed_window } }
  - { name: watched, mode: shadow, limit: { requests: 1, window: 1d, algorithm: fixed_window } }
  - { name: leased, match: { tier: leased }, consistency: leased, limit: { requests: 100000, window: 1d } }
  - { name: monthly, match: { tier: paid }, on_fail: deny, quota: { amount: 2, every: month, marks: [50%, 100%] } }
";

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["instance", "job"];

fn pack() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring")
}

fn promtool(arguments: &[&str], input: Option<&str>) -> Output {
    let mut command = Command::new(program::named("promtool"));
    command.args(arguments).current_dir(pack()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, input.unwrap_or_default().as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn expect_success(output: &Output) {
    let (told, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && wrong.is_empty(), "{told}{wrong}");
}

async fn page(rig: &Rig) -> String {
    String::from_utf8(call(&rig.admin, "GET", "/metrics", "", "").await.body).expect("text")
}

async fn ask(rig: &Rig, tier: &str, times: usize) {
    for _ in 0..times {
        rig.check(&format!(r#"{{"client_key":"user:1","tier":"{tier}"}}"#)).await;
    }
}

/// A node of a fleet with a database and a gateway, and one by itself, after a few of everything; ten minutes of refusals at the second.
async fn pages(bare: bool) -> [String; 2] {
    let redis = RedisServer::start();
    let shared = Rig::open(RULES, |config, dir| {
        config.store = store(&redis.url());
        config.control.db = DbPlace::At(DatabaseUrl::Sqlite(dir.join("tollgate.db")));
        config.control.state_dir = Some(dir.clone());
        config.decision_log = Some(dir.join("decisions").display().to_string());
        config.signals.webhooks = true;
        config.gateway.listen = Some(Address::loopback(0));
        config.gateway.upstream = vec!["http://127.0.0.1:1".to_owned()]; // nothing is sent there
        config.signals.bare_metric_names = bare;
    })
    .await;
    let clock = ManualClock::at(Time::from_secs(1_800_000_000));
    let alone = Rig::on_clock(RULES, &clock);
    for (tier, times) in [("free", 3), ("leased", 30), ("paid", 3)] {
        ask(&shared, tier, times).await;
    }
    for _ in 0..12 {
        ask(&alone, "free", 2).await;
        clock.advance(Span::from_secs(60));
    }
    [page(&shared).await, page(&alone).await]
}

/// Names and labels on pages. A family without samples has no labels.
fn exported(pages: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in pages.iter().flat_map(|page| page.lines()) {
        if let Some((name, _)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            names.entry(name.to_owned()).or_default();
        } else if !line.starts_with('#') {
            let series = line.rsplit_once(' ').expect("a value").0;
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let labels = labels.trim_end_matches('}').split("\",").filter_map(|label| label.split_once("=\""));
            names.entry(name.to_owned()).or_default().extend(labels.map(|(label, _)| label.to_owned()));
        }
    }
    names
}

/// Every metric of a query, with the labels that it is selected and grouped by.
fn asked(query: &str) -> Vec<(String, BTreeSet<String>)> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    let mut grouped: BTreeSet<String> = BTreeSet::new();
    for piece in query.split("by (").skip(1) {
        let list = piece.split(')').next().unwrap_or_default();
        grouped.extend(list.split(',').map(|label| label.trim().to_owned()));
    }
    let mut metrics = Vec::new();
    let mut rest = query;
    while let Some(at) = rest.find(is_word) {
        let from = &rest[at..];
        let end = from.find(|letter| !is_word(letter)).unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        rest = after;
        let mut labels = BTreeSet::new();
        if let Some(inside) = after.strip_prefix('{') {
            let (selectors, behind) = inside.split_once('}').expect("an end");
            labels.extend(selectors.split(',').filter_map(|one| Some(one.split_once(['=', '!'])?.0.trim().to_owned())));
            rest = behind;
        }
        if name.starts_with("tollgate_") || name.starts_with("process_") {
            metrics.push((name.to_owned(), labels));
        }
    }
    for (_, labels) in &mut metrics {
        labels.extend(grouped.iter().cloned());
    }
    metrics
}

fn dashboard() -> Value {
    serde_json::from_str(&fs::read_to_string(pack().join("grafana.json")).expect("a file")).expect("JSON")
}

fn queries_of_dashboard() -> Vec<String> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("a list");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().expect("a query").to_owned()).collect()
}

/// The queries of alerts, as `expr:` has them: on its line, or on the indented ones behind it.
fn queries_of_alerts() -> Vec<String> {
    let text = fs::read_to_string(pack().join("tollgate.rules.yml")).expect("a file");
    let mut queries: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        let (key, indent) = (line.trim(), line.len() - line.trim_start().len());
        if let Some(query) = key.strip_prefix("expr:") {
            queries.push(query.trim().trim_start_matches(">-").to_owned());
            is_inside = query.trim() == ">-";
        } else if is_inside && indent > 8 {
            let query = queries.last_mut().expect("begun");
            query.push(' ');
            query.push_str(key);
        } else {
            is_inside = false;
        }
    }
    queries
}

#[tokio::test(flavor = "multi_thread")]
async fn every_query_names_metrics_and_labels_that_a_node_exports() {
    let pages = pages(false).await;
    let exported = exported(&pages);
    let (panels, alerts) = (queries_of_dashboard(), queries_of_alerts());
    assert!(panels.len() > 40 && alerts.len() >= 10, "{} and {}", panels.len(), alerts.len());
    let mut wrong = Vec::new();
    for query in panels.iter().chain(&alerts) {
        let metrics = asked(query);
        assert!(!metrics.is_empty() || query.contains("tollgate:"), "{query}");
        for (name, labels) in metrics {
            match exported.get(&name) {
                None => wrong.push(format!("{name} is not exported: {query}")),
                Some(known) => wrong.extend(
                    labels
                        .iter()
                        .filter(|label| !known.contains(*label) && !ADDED.contains(&label.as_str()) && *label != "le")
                        .map(|label| format!("{name} has no label {label}: {query}")),
                ),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn promtool_accepts_the_page_the_alerts_and_every_query() {
    expect_success(&promtool(&["check", "rules", "tollgate.rules.yml"], None));
    let tried = promtool(&["test", "rules", "tollgate.test.yml"], None);
    assert!(tried.status.success(), "{}", String::from_utf8_lossy(&tried.stderr));
    // As rules, so that promtool parses the queries of the dashboard; Grafana fills in the variables.
    let mut text = "groups: [{ name: panels, rules: [".to_owned();
    for (number, query) in queries_of_dashboard().iter().enumerate() {
        let query = query.replace("$__rate_interval", "5m").replace('$', "");
        text += &format!("{{ record: 'q:{number}', expr: {} }}, ", Value::from(query));
    }
    let file = tempfile::Builder::new().suffix(".yml").tempfile().expect("a file");
    fs::write(file.path(), text + "] }]").expect("room");
    expect_success(&promtool(&["check", "rules", &file.path().display().to_string()], None));
    for page in pages(false).await {
        expect_success(&promtool(&["check", "metrics"], Some(&page)));
    }
    let [bare, _] = pages(true).await;
    assert!(bare.contains("\nrequests_denied_total{") && !bare.contains("\ntollgate_"), "{bare}");
}

/// Every alert has a runbook with a heading of its own.
#[test]
fn every_alert_has_a_runbook() {
    let rules = fs::read_to_string(pack().join("tollgate.rules.yml")).expect("a file");
    let page = fs::read_to_string(pack().join("../../docs/guide/runbooks.md")).expect("a file");
    let anchors: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|heading| heading.to_lowercase().replace(' ', "-"))
        .collect();
    let linked: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("runbook: docs/guide/runbooks.md#")).collect();
    assert_eq!(linked.len(), rules.matches("- alert:").count());
    assert!(linked.iter().all(|anchor| anchors.contains(*anchor)), "{linked:?} in {anchors:?}");
}
