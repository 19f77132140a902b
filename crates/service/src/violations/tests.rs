//! Refusals are counted once and written once, whatever else happens.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tollgate_control::{Control, DatabaseUrl, GroupBy, Instant, Page, Violation, ViolationFilter};
use tollgate_core::Enforcement;
use tollgate_core::{Attribute, Charge, ManualClock, Receipt, Request, Span, Time};
use tollgate_engine::Engine;
use tollgate_store::{Memory, Outcomes, Store, StoreError, StoreErrorKind, Taken};

use super::{ViolationMetrics, ViolationWriter, ViolationWriterConfig, Violations};
use crate::ServiceObserver;

/// 2027-01-15T08:00:00Z, the first instant of a minute.
const START: Time = Time::from_nanos(1_800_000_000_000_000_000);

const RULES: &str = "
rules:
  - { name: few, key_by: client_key, limit: { requests: 1, window: 1h, algorithm: fixed_window } }
  - { name: none, match: { tier: bad }, key_by: client_key, limit: { requests: 2, window: 1h, algorithm: fixed_window } }
  - { name: trial, match: { tier: bad }, mode: shadow, key_by: global, limit: { requests: 1, window: 1h, algorithm: fixed_window } }
";

struct Node {
    engine: Engine<Memory>,
    clock: ManualClock,
    violations: Arc<Violations>,
    metrics: Arc<ViolationMetrics>,
}

impl Node {
    fn new() -> Node {
        let clock = ManualClock::at(START);
        let metrics = Arc::new(ViolationMetrics::default());
        let violations = Arc::new(Violations::new(metrics.clone()));
        let observer = ServiceObserver::new(Arc::default(), None).with_violations(violations.clone());
        let rules = tollgate_engine::rules_from_yaml(RULES).unwrap();
        let engine = Engine::on_clock(rules, clock.clone()).with_observer(observer);
        Node { engine, clock, violations, metrics }
    }

    /// Sends so many requests; all but the first are denied.
    fn ask(&self, client: &str, times: usize) {
        let request = Request::new().with(Attribute::ClientKey, client).with(Attribute::Endpoint, "GET /a/./b?c=d");
        (0..times).for_each(|_| drop(self.engine.decide_now(&request)));
    }

    fn drain(&self) -> Vec<Violation> {
        let mut drained = self.violations.drain();
        drained.sort_by(|a, b| (&a.client_key, a.minute, &a.rule_id).cmp(&(&b.client_key, b.minute, &b.rule_id)));
        drained
    }

    fn writer(&self, control: &Control) -> ViolationWriter {
        ViolationWriter::new(ViolationWriterConfig {
            violations: self.violations.clone(),
            control: control.clone(),
            metrics: self.metrics.clone(),
            retention: Duration::from_secs(86_400),
            clock: Arc::new(self.clock.clone()),
            site_key: None,
        })
    }
}

fn shown(violations: &[Violation]) -> Vec<String> {
    let one = |violation: &Violation| {
        let Violation { client_key, rule_id, refused, request_count, limit_value, .. } = violation;
        let (rule_id, shadow) =
            (rule_id.as_deref().unwrap_or("?"), if violation.is_shadow { " in shadow" } else { "" });
        format!("{client_key} {rule_id} {refused}: {request_count} of {limit_value}{shadow}")
    };
    violations.iter().map(one).collect()
}

#[test]
fn refusals_are_counted_by_client_rule_and_minute() {
    let node = Node::new();
    node.ask("user:42", 3);
    node.ask("other", 2);
    node.clock.advance(Span::from_nanos(59_999_999_999));
    node.ask("user:42", 1);
    node.clock.advance(Span::from_nanos(1));
    node.ask("user:42", 1);
    let drained = node.drain();
    assert_eq!(shown(&drained), ["other few 1: 2 of 1", "user:42 few 3: 2 of 1", "user:42 few 1: 2 of 1"]);
    let minute = Instant::from(START).0;
    assert_eq!(
        drained.iter().map(|row| row.minute.0).collect::<Vec<_>>(),
        [minute, minute, minute + 60_000_000],
        "the minute's first instant"
    );
    let last: Vec<i64> = drained.iter().map(|row| row.last.0 - minute).collect();
    assert_eq!(last, [0, 59_999_999, 60_000_000], "the last time, not the minute");
    assert!(drained.iter().all(|row| row.namespace == "default" && row.endpoint == "/a/b"), "{drained:?}");
    assert_eq!(node.drain(), []);
}

#[test]
fn every_rule_that_refused_counts_and_no_other() {
    let node = Node::new();
    let bad = Request::new().with(Attribute::ClientKey, "eve").with(Attribute::Tier, "bad");
    (0..4).for_each(|_| drop(node.engine.decide_now(&bad.cost(3))));
    assert_eq!(shown(&node.drain()), ["eve few 4: 4 of 1", "eve none 4: 5 of 2", "eve trial 4: 4 of 1 in shadow"]);
    drop(node.engine.decide_now(&bad.cost(3).peek()));
    drop(node.engine.decide_now(&Request::new().with(Attribute::Ip, "nonsense")));
    assert_eq!(shown(&node.drain()), [""; 0], "no request was denied");
    node.engine.set_enforcement(Enforcement::Shadow);
    assert!(node.engine.decide_now(&bad.cost(3)).is_allowed());
    let shadowed = ["eve few 1: 4 of 1 in shadow", "eve none 1: 5 of 2 in shadow", "eve trial 1: 4 of 1 in shadow"];
    assert_eq!(shown(&node.drain()), shadowed, "what would have been refused");
}

#[test]
fn a_rule_with_a_meter_or_costs_is_shown_what_it_was_asked_for() {
    let node = Node::new();
    let rules = "
key_by: user_id
rules:
  - { name: tokens, meter: tokens, limit: { requests: 8000, window: 1d, algorithm: fixed_window } }
  - { name: costly, limit: { requests: 10, window: 1d, algorithm: fixed_window }, cost: [{ match: { tier: big }, cost: 4 }] }
";
    node.engine.swap_rules(tollgate_engine::rules_from_yaml(rules).unwrap());
    let client = |id, key| Request::new().with(Attribute::UserId, id).with(Attribute::ClientKey, key);
    let request = client("42", "user:42").with_costs(&[("tokens", 5000)]);
    (0..2).for_each(|_| drop(node.engine.decide_now(&request)));
    assert_eq!(shown(&node.drain()), ["user:42 tokens 1: 13000 of 8000"], "not one more than the limit");
    let request = client("7", "user:7").with(Attribute::Tier, "big");
    (0..3).for_each(|_| drop(node.engine.decide_now(&request)));
    assert_eq!(shown(&node.drain()), ["user:7 costly 1: 14 of 10"]);
}

#[test]
fn requests_denied_together_are_counted_each() {
    let node = Node::new();
    let [a, b] = ["a", "b"].map(|client| Request::new().with(Attribute::ClientKey, client));
    drop(node.engine.decide_all_now(&[a, a, b]));
    assert_eq!(shown(&node.drain()), ["a few 2: 2 of 1"], "a client within its limit is not counted");
}

/// A store that never answers.
struct Away;

impl Store for Away {
    async fn take(&self, _: &[Charge], _: Span, _: &mut Outcomes) -> Result<Taken, StoreError> {
        Err(StoreError { kind: StoreErrorKind::Unavailable, detail: String::new() })
    }

    async fn give_back(&self, _: &[Receipt]) -> Result<usize, StoreError> {
        Ok(0)
    }

    async fn forget(&self, _: &[Charge]) -> Result<(), StoreError> {
        Ok(())
    }
}

#[tokio::test]
async fn denials_while_the_store_is_away_are_no_violations() {
    let metrics = Arc::new(ViolationMetrics::default());
    let violations = Arc::new(Violations::new(metrics.clone()));
    let rules = "on_fail: deny\nrules:\n  - { key_by: global, limit: { requests: 9, window: 1s } }\n";
    let rules = tollgate_engine::rules_from_yaml(rules).unwrap();
    let observer = ServiceObserver::new(Arc::default(), None).with_violations(violations.clone());
    let engine = Engine::new(Away, rules).with_observer(observer);
    assert!(!engine.decide(&Request::new()).await.is_allowed());
    assert_eq!(violations.drain(), []);
}

#[test]
fn a_refusal_that_was_counted_before_allocates_nothing() {
    let node = Node::new();
    let request = Request::new().with(Attribute::UserId, "42").with(Attribute::ClientKey, "user:42");
    drop(node.engine.decide_now(&request));
    let decision = node.engine.decide_now(&request);
    let measured = allocation_counter::measure(|| node.violations.decided(&[request], &decision, &[]));
    assert_eq!(measured.count_total, 0);
    assert_eq!(shown(&node.drain()), ["user:42 few 2: 2 of 1"]);
}

#[test]
fn counts_beyond_the_bound_are_dropped_and_counted() {
    let node = Node::new();
    (0..10_003).for_each(|client| node.ask(&format!("user:{client}"), 2));
    node.ask("user:0", 5);
    assert_eq!(node.metrics.counts(), (0, 3), "known clients are still counted");
    let drained = node.drain();
    assert_eq!(drained.len(), 10_000);
    assert_eq!(drained.iter().map(|row| row.refused).sum::<i64>(), 10_005);
    node.ask("user:10002", 1);
    assert_eq!(node.drain().len(), 1, "there is room again");
}

#[test]
fn nothing_is_lost_between_threads() {
    let node = Node::new();
    (0..10).for_each(|client| node.ask(&client.to_string(), 1));
    let mut drained = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..1000).for_each(|n| node.ask(&(n % 10).to_string(), 1)));
        }
        (0..20).for_each(|_| drained.extend(node.violations.drain()));
    });
    drained.extend(node.violations.drain());
    assert_eq!(drained.iter().map(|row| row.refused).sum::<i64>(), 8000);
}

fn database(files: &TempDir) -> Control {
    Control::new(&DatabaseUrl::Sqlite(files.path().join("tollgate.db"))).unwrap()
}

async fn stored(control: &Control) -> Vec<Violation> {
    let page = Page { limit: 1000, after: None };
    let listing = control.violations(&ViolationFilter::default(), &page).await.unwrap();
    listing.entries.into_iter().map(|record| record.violation).collect()
}

#[tokio::test]
async fn counts_of_one_minute_become_one_row() {
    let (node, files) = (Node::new(), tempfile::tempdir().unwrap());
    let control = database(&files);
    control.migrate().await.unwrap();
    let mut writer = node.writer(&control);
    node.ask("user:42", 3);
    writer.write().await;
    node.ask("user:42", 4);
    writer.write().await;
    writer.write().await;
    assert_eq!(shown(&stored(&control).await), ["user:42 few 6: 2 of 1"]);
    assert_eq!(node.metrics.counts(), (6, 0));
}

#[tokio::test]
async fn client_keys_are_digests_at_rest() {
    let (node, files) = (Node::new(), tempfile::tempdir().unwrap());
    let control = database(&files);
    control.migrate().await.unwrap();
    let mut config = node.writer(&control).config;
    config.site_key = Some([7; 32]);
    node.ask("user:canary42", 3);
    ViolationWriter::new(config).write().await;
    let rows = stored(&control).await;
    assert!(super::is_digest(&rows[0].client_key) && rows[0].client_key.starts_with("user:#"), "{rows:?}");
    drop(control);
    for file in std::fs::read_dir(files.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(8).any(|piece| piece == b"canary42"), "the key stands in the file");
    }
}

#[tokio::test]
async fn unwritten_rows_wait_and_the_oldest_are_dropped_first() {
    let (node, files) = (Node::new(), tempfile::tempdir().unwrap());
    let control = database(&files);
    let mut writer = node.writer(&control);
    for round in 0..3 {
        (0..9000).for_each(|client| node.ask(&format!("{round}:{client}"), 2));
        node.clock.advance(Span::from_nanos(60_000_000_000));
        writer.write().await; // there are no tables yet
    }
    assert_eq!(node.metrics.counts(), (0, 7000));
    control.migrate().await.unwrap();
    writer.write().await;
    assert_eq!(node.metrics.counts(), (20_000, 7000));
    let oldest = ViolationFilter { to: Some(Instant(Instant::from(START).0 + 1)), ..ViolationFilter::default() };
    let of_the_oldest = control.offenders(GroupBy::Rule, &oldest, 1).await.unwrap();
    assert_eq!(of_the_oldest[0].refused, 2000, "of 9000");
}

#[tokio::test]
async fn remaining_counts_are_written_at_the_end() {
    let (node, files) = (Node::new(), tempfile::tempdir().unwrap());
    let control = database(&files);
    control.migrate().await.unwrap();
    node.ask("user:42", 3);
    tokio::spawn(node.writer(&control).run(async {})).await.unwrap();
    assert_eq!(shown(&stored(&control).await), ["user:42 few 2: 2 of 1"]);
}

#[tokio::test]
async fn losses_at_the_end_are_counted() {
    let (node, files) = (Node::new(), tempfile::tempdir().unwrap());
    node.ask("user:42", 3);
    node.writer(&database(&files)).run(async {}).await;
    assert_eq!(node.metrics.counts(), (0, 2));
}

#[tokio::test]
async fn old_rows_are_deleted() {
    let (node, files) = (Node::new(), tempfile::tempdir().unwrap());
    let control = database(&files);
    control.migrate().await.unwrap();
    node.ask("early", 2);
    node.clock.advance(Span::from_nanos(12 * 3_600_000_000_000));
    node.ask("late", 2);
    node.writer(&control).write().await;
    node.writer(&control).prune().await;
    assert_eq!(stored(&control).await.len(), 2);
    node.clock.advance(Span::from_nanos(12 * 3_600_000_000_000 + 60_000_000_000));
    node.writer(&control).prune().await;
    assert_eq!(shown(&stored(&control).await), ["late few 1: 2 of 1"]);
}
