//! Every published vector of the algorithms, on every store.

use std::path::Path;
use std::process::{Command, Output};

use tollgate_testkit::redis::Server;
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

const FILES: [&str; 8] = [
    "gcra.json",
    "token_bucket.json",
    "leaky_queue.json",
    "fixed_window.json",
    "sliding_log.json",
    "sliding_counter.json",
    "concurrency.json",
    "multi_rule.json",
];

/// The program itself, as people call it, on a real server.
fn vectors(store: &str) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vectors"));
    command.args(["--store", store]).args(FILES.map(|name| folder.join(name)));
    command.output().expect("the program runs")
}

#[test]
fn the_scripts_agree_with_all_vectors_in_a_real_server() {
    let server = Server::start();
    let run = vectors(&server.url());
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.ends_with("259 passed, 0 failed\n"), "{out}{err}");
}

#[test]
fn a_server_that_is_not_there_is_said_so() {
    let run = vectors("redis://127.0.0.1:1");
    let err = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2));
    assert!(err.starts_with("vectors: redis://127.0.0.1:1: "), "{err}");
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
