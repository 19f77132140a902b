//! Every published vector of the algorithms, on every store.

use std::path::Path;

use tollgate_testkit::subject::Store;
use tollgate_testkit::vectors::{self, File, Report};

fn report(name: &str, store: Store) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name);
    let text = std::fs::read_to_string(&path).expect("the vectors are part of the repository");
    vectors::run(&File::parse(&text).expect("a file of vectors"), || store.open())
}

#[track_caller]
fn agrees(name: &str) {
    for store in Store::ALL {
        let Report { passed, failed, differences } = report(name, store);
        let shown: Vec<String> = differences.iter().take(10).map(ToString::to_string).collect();
        assert!(
            failed == 0,
            "{name} on {}: {failed} of {} failed\n{}",
            store.name(),
            passed + failed,
            shown.join("\n")
        );
        assert!(passed > 0, "{name} holds no step");
    }
}

#[test]
fn gcra_agrees_with_its_vectors() {
    agrees("gcra.json");
}

#[test]
fn token_bucket_agrees_with_its_vectors() {
    agrees("token_bucket.json");
}

#[test]
fn leaky_queue_agrees_with_its_vectors() {
    agrees("leaky_queue.json");
}

#[test]
fn fixed_window_agrees_with_its_vectors() {
    agrees("fixed_window.json");
}

#[test]
fn sliding_log_agrees_with_its_vectors() {
    agrees("sliding_log.json");
}

#[test]
fn sliding_counter_agrees_with_its_vectors() {
    agrees("sliding_counter.json");
}

#[test]
fn concurrency_agrees_with_its_vectors() {
    agrees("concurrency.json");
}

#[test]
fn several_rules_agree_with_their_vectors() {
    agrees("multi_rule.json");
}

#[test]
fn a_wrong_answer_is_a_difference() {
    let text = r#"{"algorithm": "gcra", "cases": [{"name": "c", "config": {"count": 1, "period_ns": 10, "burst": 1},
        "steps": [{"now_ns": 5, "cost": 1, "expect": {"allowed": false, "remaining": 0, "colour": 1}}]}],
        "config_errors": [{"config": {"count": 1, "period_ns": 10, "burst": 1}}]}"#;
    let report = vectors::run(&File::parse(text).expect("readable"), || Store::Reference.open());
    let shown: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
    assert_eq!((report.passed, report.failed), (0, 2));
    assert_eq!(
        shown,
        [
            "case c, step 0, allowed: expected false, got true",
            "case c, step 0, colour: expected 1, got \"no such field\"",
            "case config_errors, step 0, config: expected \"an error\", got {\"burst\":1,\"count\":1,\"period_ns\":10}",
        ]
    );
}

#[test]
fn a_file_for_another_runner_is_unreadable() {
    let text = r#"{"algorithm": "vegas", "cases": [{"name": "c", "config": {}, "steps": []}]}"#;
    let error = File::parse(text).expect_err("not for this runner");
    assert!(error.to_string().starts_with("unknown algorithm \"vegas\"; known are: gcra, "), "{error}");
}
