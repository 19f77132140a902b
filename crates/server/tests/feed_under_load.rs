//! F47 and P22: rules that change through their file while threads decide.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tollgate_core::{Attribute, Charge, ManualClock, Request, Time};
use tollgate_engine::{Decision, Engine, Observer};
use tollgate_ruleset::CompileOptions;
use tollgate_server::rule_sources::{Pace, Reloader, RulesFileSource, WatchConfig};
use tollgate_store::Memory;

const PACE: Pace =
    Pace { poll: Duration::from_millis(2), settle: Duration::from_millis(4), settle_max: Duration::from_millis(50) };

/// Two rules that say the same, so that a decision under both tells whether they are of one generation.
fn twins(limit: &str) -> String {
    let rule = |name| format!("  - {{ name: {name}, key_by: user_id, limit: {{ {limit} }} }}\n");
    format!("rules:\n{}{}", rule("left"), rule("right"))
}

/// Looks at every decision where it is made.
#[derive(Default)]
struct Witness {
    offences: Mutex<Vec<String>>,
    generations: Mutex<HashSet<u64>>,
}

impl Observer for &'static Witness {
    fn decided(&self, _: &[Request<'_>], decision: &Decision, _: &[Charge]) {
        thread_local! { static LAST: std::cell::Cell<u64> = const { std::cell::Cell::new(0) }; }
        let generation = decision.generation();
        let last = LAST.replace(generation);
        if generation < last {
            self.offences.lock().push(format!("generation {generation} after {last}"));
        }
        if generation > last {
            self.generations.lock().insert(generation);
        }
        let mut limits = decision.rulings().iter().map(|ruling| {
            let rule = decision.rule(ruling).expect("a ruling has its rule");
            let capacity = ruling.outcome.map(|outcome| outcome.limit);
            (rule.limit, capacity == rule.limit.map(|limit| limit.capacity()))
        });
        if let Some(first) = limits.next()
            && (!first.1 || limits.any(|other| other != first))
        {
            self.offences.lock().push(format!("mixed: {decision:?}"));
        }
    }
}

struct Rig {
    engine: Arc<Engine<Memory>>,
    reloader: Reloader,
}

impl Rig {
    fn new(path: &Path, witness: &'static Witness) -> Rig {
        let source = RulesFileSource { path: path.to_owned(), options: CompileOptions::reproducible() };
        let loaded = source.load().expect("the rules load");
        let clock = ManualClock::at(Time::from_secs(1_800_000_000));
        let engine = Arc::new(Engine::on_clock(loaded.written.rules, clock.clone()).with_observer(witness));
        let swapped = engine.clone();
        let reloader = Reloader::start(WatchConfig {
            source,
            pace: PACE,
            clock: Arc::new(clock),
            apply: Arc::new(move |written| Ok(swapped.swap_rules(written.rules))),
            in_force: Some((loaded.mark, 1)),
        });
        Rig { engine, reloader }
    }

    async fn put(&self, path: &Path, text: &str) {
        let mut state = self.reloader.state();
        let reloads = state.borrow().reloads;
        let new = path.with_extension("new");
        fs::write(&new, text).expect("a folder to write to");
        fs::rename(&new, path).expect("a file to replace");
        let found =
            tokio::time::timeout(Duration::from_secs(20), state.wait_for(|state| state.reloads > reloads)).await;
        found.expect("a reload").expect("the feed lives");
    }

    /// What a user has used of the first rule.
    fn used(&self, user: &str) -> Option<u64> {
        let decision = self.engine.decide_now(&Request::new().with(Attribute::UserId, user).peek());
        decision.rulings().first()?.outcome.map(|outcome| outcome.used)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f47_limits_windows_and_algorithms_change_and_rules_go_under_load() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.yaml");
    fs::write(&path, twins("requests: 1000000, window: 1h, algorithm: fixed_window")).unwrap();
    let witness: &'static Witness = Box::leak(Box::default());
    let rig = Rig::new(&path, witness);
    for _ in 0..7 {
        assert!(rig.engine.decide_now(&Request::new().with(Attribute::UserId, "quiet")).is_allowed());
    }

    let (stop, decided) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let (engine, stop, decided) = (rig.engine.clone(), stop.clone(), decided.clone());
            std::thread::spawn(move || {
                let user = format!("user-{number}");
                while !stop.load(Ordering::Relaxed) {
                    let _ = engine.decide_now(&Request::new().with(Attribute::UserId, &user));
                    decided.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();

    rig.put(&path, &twins("requests: 2000000, window: 1h, algorithm: fixed_window")).await;
    assert_eq!(rig.used("quiet"), Some(7), "a raised limit keeps the usage");
    rig.put(&path, &twins("requests: 5, window: 1h, algorithm: fixed_window")).await;
    assert_eq!(rig.used("quiet"), Some(7), "a lowered limit keeps the usage");
    rig.put(&path, &twins("requests: 1000000, window: 2h, algorithm: fixed_window")).await;
    assert_eq!(rig.used("quiet"), Some(0), "another window starts anew");
    rig.put(&path, &twins("requests: 1000000, window: 1h, algorithm: token_bucket")).await;
    assert_eq!(rig.used("quiet"), Some(0), "another algorithm starts anew");
    rig.put(&path, "rules:\n  - { name: left, match: { org: acme }, limit: { requests: 1, window: 1h } }\n").await;
    assert_eq!(rig.used("quiet"), None, "a deleted rule decides nothing");
    rig.put(&path, &twins("requests: 1000000, window: 1h, algorithm: fixed_window")).await;
    assert_eq!(rig.used("quiet"), Some(7), "back to a window and an algorithm, back to its usage");
    for round in 1..=20 {
        rig.put(&path, &twins(&format!("requests: {}, window: 1h, algorithm: fixed_window", 1_000_000 + round))).await;
    }

    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panicked"));
    assert_eq!(*witness.offences.lock(), Vec::<String>::new());
    assert!(decided.load(Ordering::Relaxed) > 1000);
    assert!(witness.generations.lock().len() > 10, "the load saw the rules change");
}
