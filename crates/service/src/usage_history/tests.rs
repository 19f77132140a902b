//! The history of usage, over a real store and a real database.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tollgate_control::{Control, DatabaseUrl, Page, PeriodUsage, PeriodUsageFilter};
use tollgate_core::{Attribute, Charge, ManualClock, Request, Secret, Span, Time};
use tollgate_engine::{Decision, Engine, Observer, Reservation};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::{Memory, MemoryConfig};

use super::*;
use crate::ServiceObserver;
use crate::store::ConfiguredStore;
use crate::violations::KeyHashing;

/// 2023-11-14 22:13:20, two hours before a day ends.
const START: Time = Time::from_secs(1_700_000_000);
const DAY: Span = Span::from_secs(86_400);
const DAILY: &str = "rules: [{ name: daily, key_by: api_key, quota: { amount: 1000, every: day } }]";

/// Rules whose buckets have the same names in every test.
fn compiled(rules: &str) -> RuleSet {
    let options = CompileOptions { secret: Secret::new([7; 16]), seed: 1 };
    RuleSet::compile(&[tollgate_rules::read("rules", rules).unwrap()], &options).unwrap()
}

/// A node with its tables.
struct Node {
    clock: ManualClock,
    engine: Arc<Engine<ConfiguredStore>>,
    tracker: Arc<UsageTracker>,
    metrics: Arc<UsageHistoryMetrics>,
    control: Control,
    _files: TempDir,
}

impl Node {
    async fn new(rules: &str) -> Node {
        let node = Node::without_tables(rules);
        node.control.migrate().await.unwrap();
        node
    }

    fn without_tables(rules: &str) -> Node {
        let files = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(START);
        let metrics = Arc::new(UsageHistoryMetrics::default());
        let tracker = Arc::new(UsageTracker::new(metrics.clone()));
        let memory = Memory::with_clock(MemoryConfig::default(), Arc::new(clock.clone()));
        let observer = ServiceObserver::new(Arc::default(), None).with_usage(tracker.clone());
        let rules = compiled(rules);
        let engine = Engine::with_clock(ConfiguredStore::Memory(memory), rules, Arc::new(clock.clone()));
        let engine = Arc::new(engine.with_observer(observer));
        let control = Control::new(&DatabaseUrl::Sqlite(files.path().join("tollgate.db"))).unwrap();
        Node { clock, engine, tracker, metrics, control, _files: files }
    }

    fn writer(&self) -> UsageWriter {
        UsageWriter::new(UsageWriterConfig {
            tracker: self.tracker.clone(),
            engine: self.engine.clone(),
            control: self.control.clone(),
            metrics: self.metrics.clone(),
            retention: Duration::from_secs(86_400),
            clock: Arc::new(self.clock.clone()),
            site_key: None,
            node: "alone".to_owned(),
        })
    }

    async fn charge(&self, key: &str, cost: u64) -> bool {
        self.engine.decide(&Request::new().with(Attribute::ApiKey, key).cost(cost)).await.is_allowed()
    }

    async fn reserve(&self, key: &str, cost: u64) -> Reservation {
        self.engine.reserve(&Request::new().with(Attribute::ApiKey, key).cost(cost)).await.1.unwrap()
    }

    async fn rows(&self) -> Vec<PeriodUsage> {
        let page = Page { limit: 1000, after: None };
        let listing = self.control.period_usage(&PeriodUsageFilter::default(), &page).await.unwrap();
        listing.entries.into_iter().map(|record| record.usage).collect()
    }

    /// Client, used and limit of every row, with the day on which its period starts.
    async fn shown(&self) -> Vec<String> {
        let show = |row: &PeriodUsage| {
            let day = row.period_start.map(|start| start.to_string()[5..10].to_owned());
            let client = row.client_key.clone().unwrap_or_else(|| "?".to_owned());
            let limit = row.limit_value.map_or("?".to_owned(), |limit| limit.to_string());
            format!("{client} {}: {} of {limit}", day.unwrap_or_else(|| "?".to_owned()), row.used)
        };
        let mut rows: Vec<String> = self.rows().await.iter().map(show).collect();
        rows.sort();
        rows
    }
}

#[tokio::test]
async fn every_period_of_a_client_has_one_row_with_what_the_store_said() {
    let node = Node::new(DAILY).await;
    let mut writer = node.writer();
    writer.write().await;
    assert!(node.charge("a", 7).await && node.charge("a", 3).await && node.charge("b", 1).await);
    assert!(!node.charge("a", 1000).await, "a refused request uses nothing");
    writer.write().await;
    writer.write().await;
    assert_eq!(node.shown().await, ["key:a 11-14: 10 of 1000", "key:b 11-14: 1 of 1000"]);
    let row = node.rows().await.remove(0);
    assert_eq!((row.namespace.as_str(), row.rule_id.as_str(), row.node.as_str()), ("default", "daily", "alone"));
    node.clock.advance(DAY);
    assert!(node.charge("a", 5).await);
    writer.write().await;
    assert_eq!(node.shown().await, ["key:a 11-14: 10 of 1000", "key:a 11-15: 5 of 1000", "key:b 11-14: 1 of 1000"]);
    assert_eq!(node.metrics.counts(), (3, 0, 0), "unchanged usage is not written again");
}

#[tokio::test]
async fn settling_writes_what_is_left_of_an_estimate() {
    let node = Node::new(DAILY).await;
    let mut writer = node.writer();
    let (low, high) = (node.reserve("a", 100).await, node.reserve("b", 100).await);
    writer.write().await;
    assert_eq!(node.shown().await, ["key:a 11-14: 100 of 1000", "key:b 11-14: 100 of 1000"]);
    node.clock.advance(Span::SECOND);
    let _ = node.engine.settle(low, 40).await.unwrap();
    let _ = node.engine.settle(high, 130).await.unwrap();
    writer.write().await;
    assert_eq!(node.shown().await, ["key:a 11-14: 40 of 1000", "key:b 11-14: 130 of 1000"], "and whose they are");
    let again = node.reserve("a", 10).await;
    let _ = node.engine.settle(again, 0).await.unwrap();
    assert!(node.charge("a", 1).await);
    writer.write().await;
    assert_eq!(node.shown().await[0], "key:a 11-14: 41 of 1000");
}

#[tokio::test]
async fn usage_of_a_period_that_ends_before_it_is_written_is_not_lost() {
    let node = Node::new(DAILY).await;
    let mut writer = node.writer();
    assert!(node.charge("a", 7).await && node.charge("b", 7).await);
    let late = node.reserve("b", 5).await;
    node.clock.advance(DAY);
    let _ = node.engine.settle(late, 0).await.unwrap(); // gives nothing back: that period is over
    assert!(node.charge("a", 2).await);
    writer.write().await;
    let all = ["key:a 11-14: 7 of 1000", "key:a 11-15: 2 of 1000", "key:b 11-14: 12 of 1000"];
    assert_eq!(node.shown().await, all);
}

#[tokio::test]
async fn clients_and_organisations_are_digests_that_are_found_by_their_keys() {
    let rules = format!("{DAILY}\nclients: [{{ client_key: 'key:canary42', org: canary-org }}]");
    let node = Node::new(&rules).await;
    let mut config = node.writer().config;
    config.site_key = Some([7; 32]);
    assert!(node.charge("canary42", 3).await);
    UsageWriter::new(config).write().await;
    let row = node.rows().await.remove(0);
    let hashing = KeyHashing::hashed(&[7; 32]);
    assert_eq!(row.client_key, Some(hashing.of("key:canary42")));
    assert_eq!(row.organisation, Some(hashing.of("org:canary-org")));
    for file in std::fs::read_dir(node._files.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(6).any(|piece| piece == b"canary"), "the key stands in the file");
    }
}

#[tokio::test]
async fn a_changed_calendar_moves_the_row_with_its_usage() {
    let monthly = |anchor: u32| {
        format!("rules: [{{ name: m, key_by: api_key, quota: {{ amount: 1000, every: month, anchor: {anchor} }} }}]")
    };
    let node = Node::new(&monthly(1)).await;
    let mut writer = node.writer();
    assert!(node.charge("a", 7).await);
    let open = node.reserve("a", 10).await;
    writer.write().await;
    assert_eq!(node.shown().await, ["key:a 11-01: 17 of 1000"]);
    node.engine.swap_rules(compiled(&monthly(10)));
    node.clock.advance(Span::SECOND);
    assert!(node.charge("a", 1).await);
    let _ = node.engine.settle(open, 10).await.unwrap();
    writer.write().await;
    assert_eq!(node.shown().await, ["key:a 11-10: 18 of 1000"], "the units are there once");
}

#[tokio::test]
async fn rows_wait_for_the_database_and_losses_at_the_end_are_counted() {
    let node = Node::without_tables(DAILY);
    let mut writer = node.writer();
    assert!(node.charge("a", 7).await);
    writer.write().await;
    assert!(node.charge("a", 1).await && node.charge("b", 1).await);
    writer.write().await;
    assert_eq!(node.metrics.counts(), (0, 2, 0));
    node.control.migrate().await.unwrap();
    writer.write().await;
    assert_eq!(node.shown().await, ["key:a 11-14: 8 of 1000", "key:b 11-14: 1 of 1000"]);
    let other = Node::without_tables(DAILY);
    assert!(other.charge("a", 7).await);
    other.writer().run(async {}).await;
    let (written, _, dropped) = other.metrics.counts();
    assert_eq!((written, dropped), (0, 1));
}

#[tokio::test]
async fn the_last_usage_is_written_at_the_end() {
    let node = Node::new(DAILY).await;
    assert!(node.charge("a", 7).await);
    tokio::spawn(node.writer().run(async {})).await.unwrap();
    assert_eq!(node.shown().await, ["key:a 11-14: 7 of 1000"]);
}

#[tokio::test]
async fn usage_that_a_journal_restored_is_written_at_the_start() {
    let node = Node::new(DAILY).await;
    assert!(node.charge("a", 7).await);
    node.writer().write().await;
    assert!(node.charge("a", 4).await && node.charge("b", 4).await);
    drop(node.tracker.drain()); // a kill: what was noted is lost, the journal has it
    node.clock.advance(Span::SECOND);
    node.writer().write().await;
    assert_eq!(
        node.shown().await,
        ["? ?: 4 of ?", "key:a 11-14: 11 of 1000"],
        "what was never written has no name yet"
    );
    node.clock.advance(Span::SECOND);
    assert!(node.charge("b", 1).await);
    node.writer().write().await;
    assert_eq!(node.shown().await, ["key:a 11-14: 11 of 1000", "key:b 11-14: 5 of 1000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_that_charge_and_settle_end_with_what_the_store_has() {
    let node = Arc::new(Node::new(DAILY).await);
    let work = (0..8).map(|number| {
        let node = node.clone();
        tokio::spawn(async move {
            let key = format!("k{}", number % 3);
            for round in 0..40 {
                let reservation = node.reserve(&key, 3).await;
                let _ = node.engine.settle(reservation, round % 6).await.unwrap();
                node.clock.advance(Span::from_nanos(1000));
                let _ = node.charge(&key, 1).await;
            }
        })
    });
    let work: Vec<_> = work.collect();
    let mut writer = node.writer();
    for one in work {
        writer.write().await;
        one.await.unwrap();
    }
    writer.write().await;
    let mut all = node.shown().await;
    for key in ["k0", "k1", "k2"] {
        let (usage, ..) = node.engine.usage(&Request::new().with(Attribute::ApiKey, key)).await.unwrap();
        assert_eq!(all.remove(0), format!("key:{key} 11-14: {} of 1000", usage[0].used));
    }
}

#[tokio::test]
async fn buckets_beyond_the_bound_are_not_noted_and_are_counted() {
    let node = Node::without_tables(DAILY);
    for number in 0..50_003 {
        let key = number.to_string();
        let _ = node.engine.try_decide(&[Request::new().with(Attribute::ApiKey, &key)]).unwrap();
    }
    assert_eq!(node.metrics.counts(), (0, 0, 3));
    assert_eq!(node.tracker.drain().len(), 50_000);
    let _ = node.engine.try_decide(&[Request::new().with(Attribute::ApiKey, "50002")]).unwrap();
    assert_eq!(node.tracker.drain().len(), 1, "there is room again");
}

/// Passes decisions on, and measures what noting them allocates.
struct Measured(Arc<UsageTracker>);

impl Observer for Measured {
    fn decided(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
        self.0.decided(requests, decision, charges);
        let again = allocation_counter::measure(|| self.0.decided(requests, decision, charges));
        assert_eq!(again.count_total, 0);
    }
}

#[test]
fn a_bucket_that_was_noted_before_allocates_nothing() {
    let tracker = Arc::new(UsageTracker::new(Arc::default()));
    let engine = Engine::on_clock(compiled(DAILY), ManualClock::at(START));
    let engine = engine.with_observer(Measured(tracker.clone()));
    assert!(engine.decide_now(&Request::new().with(Attribute::ApiKey, "a")).is_allowed());
    assert_eq!(tracker.drain().len(), 1);
}
