//! P22 under load: many edits per minute, and every decision belongs to one generation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tollgate_lab::patience::{Watch, pause};
use tollgate_lab::postgres;

use super::rig::{Place, call, rule};

/// A thousand edits per minute, for a limited time.
const EDITS: u64 = 170;
const EVERY: Duration = Duration::from_millis(60);
/// Time by which a database may be late, for each edit.
const PATIENCE: Duration = Duration::from_secs(120);

/// Each edit creates a generation with its own limit. Every response and every line of the decision log has a
/// generation and the limit of that generation, and generations only grow.
fn every_decision_is_of_one_generation(place: Place) {
    let log = place.dir.path().join("decisions");
    let place = place.with(&["--decision-log", log.to_str().unwrap()]);
    let node = place.start(None);
    let first = node.admin("POST", "/v1/rules", Some(rule("hot", "/hot", 1_000_000)));
    assert_eq!(first.status, 201, "{first:?}");
    node.serves("/hot", 1_000_000, Duration::from_secs(5));
    let mut limits = BTreeMap::from([(first.body["version"].as_u64().unwrap(), 1_000_000)]);

    let stop = AtomicBool::new(false);
    let answers: Vec<Vec<(u64, u64)>> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..3)
            .map(|number| {
                let (node, stop) = (&node, &stop);
                scope.spawn(move || {
                    let mut seen = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let request = json!({"client_key": format!("user:{number}"), "endpoint": "/hot"}).to_string();
                        let answer = call(&node.data, "POST", "/v1/check", &[], Some(&request)).expect("an answer");
                        assert_eq!((answer.status, &answer.body["allowed"]), (200, &Value::Bool(true)), "{answer:?}");
                        let number = |name: &str| answer.body[name].as_u64().expect("a number");
                        seen.push((number("generation"), number("limit")));
                    }
                    seen
                })
            })
            .collect();
        // A failure below must stop the clients too: the scope waits for them.
        let _ending = Ending(&stop);
        let watch = Watch::start();
        for edit in 1..=EDITS {
            let limit = 1_000_000 + edit;
            let to = json!({"limit": {"requests": limit, "window": "1h", "algorithm": "fixed_window"}});
            let fields = [("If-Match", "*")];
            let patch = || node.try_admin(&node.admin, "PATCH", "/v1/rules/hot", &fields, Some(to.clone()));
            let begun = watch.elapsed();
            let mut edited = patch().expect("an answer");
            while edited.status == 503 && watch.elapsed() - begun < PATIENCE {
                // On a busy machine the database is late, and a call without a response may have been executed.
                let found = node.admin("GET", "/v1/rules/hot", None);
                if let (Some(version), Some(limit)) =
                    (found.body["version"].as_u64(), found.body["limit"]["requests"].as_u64())
                {
                    limits.insert(version, limit);
                }
                edited = patch().expect("an answer");
            }
            assert_eq!(edited.status, 200, "{edited:?}");
            limits.insert(edited.body["version"].as_u64().unwrap(), limit);
            pause(EVERY.saturating_mul(u32::try_from(edit).unwrap()).saturating_sub(watch.elapsed()));
        }
        node.serves("/hot", 1_000_000 + EDITS, Duration::from_secs(5));
        stop.store(true, Ordering::Relaxed);
        callers.into_iter().map(|caller| caller.join().expect("callers do not panic")).collect()
    });
    let mut seen = 0;
    for answers in &answers {
        assert!(answers.is_sorted_by_key(|(generation, _)| *generation), "generations only grow");
        for (generation, limit) in answers {
            assert_eq!(limits.get(generation), Some(limit), "generation {generation} says {limit}");
            seen += 1;
        }
    }
    let distinct: std::collections::BTreeSet<u64> =
        answers.iter().flatten().map(|(generation, _)| *generation).collect();
    assert!(distinct.len() as u64 > EDITS / 4, "the load saw {} of {EDITS} generations", distinct.len());
    let lines = std::fs::read_to_string(&log).unwrap();
    let logged = lines.lines().filter(|line| line.contains("\"hot\"")).count();
    assert!(logged >= seen, "{seen} answers, {logged} lines: none was dropped");
}

/// Stops the clients when it is dropped.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn p22_a_thousand_edits_a_minute_in_sqlite() {
    every_decision_is_of_one_generation(Place::embedded());
}

#[test]
fn p22_a_thousand_edits_a_minute_in_postgres() {
    every_decision_is_of_one_generation(Place::on(&postgres::database()));
}
