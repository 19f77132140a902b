//! Clients that one rule refuses minute after minute.
//!
//! An attack comes and goes, or uses many names. A program that was written without regard to its limit is
//! refused a few times in every minute, for days: its owner should be told. So a client counts as
//! steadily refused once the same rule has refused it in each of ten minutes in a row, however often.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::json;
use tollgate_core::{Digest, KeyHasher, Purpose, Request, Secret};
use tollgate_engine::{Decision, Verdict};
use tollgate_telemetry::{MetricFamilies, MetricsPage, OTHER};

use crate::events::{EventKind, EventQueue, OperatorEvent};
use crate::violations::ViolationClient;

/// Minutes in a row.
const MINUTES: u64 = 10;
/// Most clients that are watched, in about 3 MiB.
const CLIENTS_MAX: usize = 20_000;
/// Shards, so that denials of different clients rarely contend.
const SHARDS: usize = 16;
/// Most rules with a series of their own.
const SERIES_MAX: usize = 200;

const MINUTE_NANOS: u64 = 60_000_000_000;
const MINUTES_OF_A_DAY: u64 = 1440;

/// Notices such clients, counts them and tells webhooks.
pub struct SteadyRefusals {
    shards: [Mutex<HashMap<Digest, RefusedClient>>; SHARDS],
    clients: AtomicUsize,
    /// The latest minute, by the clock of decisions.
    minute: AtomicU64,
    unwatched: AtomicU64,
    hasher: KeyHasher,
    events: Arc<EventQueue>,
}

/// A client that a rule has refused in this minute or the last.
#[derive(Debug)]
struct RefusedClient {
    namespace: String,
    rule: String,
    /// Since when it is refused in every minute.
    first: u64,
    last: u64,
}

impl RefusedClient {
    fn is_steady(&self) -> bool {
        self.last - self.first + 1 >= MINUTES
    }
}

impl SteadyRefusals {
    /// Watches, and puts events into this queue.
    pub fn new(events: Arc<EventQueue>) -> SteadyRefusals {
        // A random secret: no caller can construct a collision.
        let random = RandomState::new();
        let secret = [random.hash_one(0), random.hash_one(1)].map(u64::to_le_bytes).concat();
        SteadyRefusals {
            shards: std::array::from_fn(|_| Mutex::default()),
            clients: AtomicUsize::new(0),
            minute: AtomicU64::new(0),
            unwatched: AtomicU64::new(0),
            hasher: KeyHasher::new(Secret::new(secret.try_into().unwrap_or_default())),
            events,
        }
    }

    /// Notes a denial at the rule that decided.
    #[inline]
    pub(crate) fn decided(&self, requests: &[Request<'_>], decision: &Decision) {
        if matches!(decision.verdict, Verdict::Deny) {
            self.denied(requests, decision);
        }
    }

    fn denied(&self, requests: &[Request<'_>], decision: &Decision) {
        let Some(ruling) = decision.deciding().filter(|ruling| ruling.outcome.is_some()) else { return };
        let (Some(rule), Some(request)) = (decision.rule(ruling), requests.get(usize::from(ruling.request))) else {
            return;
        };
        if matches!(request.purpose, Purpose::Peek | Purpose::Mention) {
            return;
        }
        let minute = decision.wall.nanos() / MINUTE_NANOS;
        if self.minute.fetch_max(minute, Ordering::Relaxed) < minute {
            self.forget_before(minute);
        }
        let client = ViolationClient::of(request);
        if client.is_unknown() {
            return;
        }
        let mut hasher = self.hasher;
        hasher.part(rule.namespace.as_bytes());
        hasher.part(rule.name.as_bytes());
        client.hash(&mut hasher);
        let digest = hasher.finish();
        let Some(shard) = self.shards.get(digest.0[0] as usize % SHARDS) else { return };
        let mut shard = shard.lock();
        let Some(known) = shard.get_mut(&digest) else {
            let is_full = self.clients.load(Ordering::Relaxed) >= CLIENTS_MAX;
            if is_full {
                self.unwatched.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let (namespace, rule) = (rule.namespace.clone(), rule.name.clone());
            shard.insert(digest, RefusedClient { namespace, rule, first: minute, last: minute });
            self.clients.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if minute <= known.last {
            return;
        }
        if minute > known.last + 1 {
            known.first = minute;
        }
        known.last = minute;
        if known.last - known.first + 1 == MINUTES {
            self.report(known, client);
        }
    }

    fn report(&self, known: &RefusedClient, client: ViolationClient<'_>) {
        let RefusedClient { namespace, rule, first, last } = known;
        self.events.push(|| OperatorEvent {
            namespace: Some(namespace.clone()),
            rule: Some(rule.clone()),
            client: Some(client.text()),
            occasion: (last / MINUTES_OF_A_DAY).to_string(),
            summary: format!("The rule {rule} has refused one client in each of the last {MINUTES} minutes."),
            data: json!({ "minutes": last - first + 1 }),
            ..OperatorEvent::of(EventKind::ClientRefusedSteadily)
        });
    }

    /// Forgets clients that the minute before `minute` has not refused.
    fn forget_before(&self, minute: u64) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            let before = shard.len();
            shard.retain(|_, client| client.last + 1 >= minute);
            self.clients.fetch_sub(before - shard.len(), Ordering::Relaxed);
        }
    }

    /// How many clients each rule refuses steadily.
    fn counts(&self) -> BTreeMap<(String, String), u64> {
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        for shard in &self.shards {
            for client in shard.lock().values().filter(|client| client.is_steady()) {
                let labels = (client.namespace.clone(), client.rule.clone());
                let is_new = counts.len() >= SERIES_MAX && !counts.contains_key(&labels);
                let labels = if is_new { (OTHER.to_owned(), OTHER.to_owned()) } else { labels };
                *counts.entry(labels).or_default() += 1;
            }
        }
        counts
    }
}

impl fmt::Debug for SteadyRefusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteadyRefusals").field("clients", &self.clients).finish_non_exhaustive()
    }
}

impl MetricFamilies for SteadyRefusals {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let series = self.counts().into_iter();
        let series = series.map(|((namespace, rule), count)| ([("namespace", namespace), ("rule", rule)], count));
        let help = "Clients that a rule refused in each of the last ten minutes";
        page.gauges("tollgate_clients_refused_steadily", help, series)?;
        let unwatched = self.unwatched.load(Ordering::Relaxed);
        let help = "Refusals of clients that were too many to be watched for steadiness";
        page.counter("tollgate_refused_clients_unwatched", help, unwatched)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Attribute, ManualClock, Span, Time};
    use tollgate_engine::Engine;
    use tollgate_ruleset::{CompileOptions, RuleSet};
    use tollgate_store::Memory;

    use super::*;
    use crate::observer::ServiceObserver;

    const MINUTE: Span = Span::from_secs(60);

    struct WatchedNode {
        refusals: Arc<SteadyRefusals>,
        events: Arc<EventQueue>,
        engine: Engine<Memory>,
        clock: ManualClock,
    }

    impl WatchedNode {
        fn new() -> WatchedNode {
            let events = Arc::<EventQueue>::default();
            events.want(true);
            let refusals = Arc::new(SteadyRefusals::new(events.clone()));
            let clock = ManualClock::at(Time::from_secs(1_700_000_000));
            let text = "rules: [{ name: r, key_by: user_id, limit: { requests: 1, window: 1000h } }]";
            let options = CompileOptions { secret: Secret::new([7; 16]), seed: 1 };
            let rules = RuleSet::compile(&[tollgate_rules::read("rules", text).unwrap()], &options).unwrap();
            let observer = ServiceObserver::new(Arc::default(), None).with_steady_refusals(refusals.clone());
            let engine = Engine::on_clock(rules, clock.clone()).with_observer(observer);
            WatchedNode { refusals, events, engine, clock }
        }

        fn ask(&self, user: &str) -> bool {
            self.engine.decide_now(&Request::new().with(Attribute::UserId, user)).is_allowed()
        }

        fn steady(&self) -> u64 {
            self.refusals.counts().values().sum()
        }
    }

    #[test]
    fn ten_minutes_in_a_row_are_steady_and_told_once() {
        let node = WatchedNode::new();
        assert!(node.ask("42"));
        for minute in 1..=30 {
            (0..3).for_each(|_| assert!(!node.ask("42")));
            assert_eq!(node.steady(), u64::from(minute >= MINUTES), "after {minute} minutes");
            node.clock.advance(MINUTE);
        }
        let (events, _) = node.events.drain();
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].client.as_deref(), events[0].rule.as_deref()), (Some("user:42"), Some("r")));
        node.clock.advance(MINUTE);
        assert!(node.ask("43") && !node.ask("43"));
        assert_eq!(node.steady(), 0, "it has stopped");
    }

    #[test]
    fn a_pause_begins_anew_and_a_flood_of_names_is_bounded() {
        let node = WatchedNode::new();
        assert!(node.ask("42"));
        for minute in 0..40 {
            if minute % 9 != 0 {
                assert!(!node.ask("42"));
            }
            node.clock.advance(MINUTE);
        }
        assert_eq!(node.events.drain().0.len(), 0);
        for number in 0..CLIENTS_MAX + 100 {
            let user = format!("f{number}");
            assert!(node.ask(&user) && !node.ask(&user));
        }
        assert!(node.refusals.clients.load(Ordering::Relaxed) <= CLIENTS_MAX);
        assert!(node.refusals.unwatched.load(Ordering::Relaxed) >= 99);
        node.clock.advance(MINUTE);
        node.clock.advance(MINUTE);
        assert!(!node.ask("42"));
        assert_eq!(node.refusals.clients.load(Ordering::Relaxed), 1, "those that are gone make room");
    }
}
