//! Every published vector of the algorithms, on every store.

use std::path::Path;
use std::process::{Command, Output};

use tollgate_lab::redis::{Flavour, RedisServer};
use tollgate_testkit::SubjectKind;
use tollgate_testkit::vectors::{self, VectorFile, VectorReport};

fn report(name: &str, store: SubjectKind) -> VectorReport {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name);
    let text = std::fs::read_to_string(&path).expect("the vectors are part of the repository");
    vectors::run(&VectorFile::parse(&text).expect("a file of vectors"), || store.open())
}

#[track_caller]
fn agrees(name: &str) {
    SubjectKind::ALL.into_iter().for_each(|store| agrees_on(name, store));
}

#[track_caller]
fn agrees_on(name: &str, store: SubjectKind) {
    let VectorReport { passed, failed, differences } = report(name, store);
    let shown: Vec<String> = differences.iter().take(10).map(ToString::to_string).collect();
    assert!(failed == 0, "{name} on {}: {failed} of {} failed\n{}", store.name(), passed + failed, shown.join("\n"));
    assert!(passed > 0, "{name} holds no step");
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
fn quota_agrees_with_its_vectors() {
    agrees("quota.json");
}

#[test]
fn several_rules_agree_with_their_vectors() {
    agrees("multi_rule.json");
}

const FILES: [&str; 9] = [
    "gcra.json",
    "token_bucket.json",
    "leaky_queue.json",
    "fixed_window.json",
    "sliding_log.json",
    "sliding_counter.json",
    "concurrency.json",
    "quota.json",
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
    let server = RedisServer::start();
    let run = vectors(&server.url());
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.ends_with("340 passed, 0 failed\n"), "{out}{err}");
}

/// Valkey runs the scripts in another build of Lua, and a cluster refuses keys that a call does not declare.
#[test]
fn the_scripts_agree_with_all_vectors_in_valkey_and_in_a_cluster() {
    for server in [RedisServer::of(Flavour::Valkey), RedisServer::alone_in_a_cluster()] {
        FILES.into_iter().for_each(|name| agrees_on(name, SubjectKind::Redis(server.port())));
    }
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
    let report = vectors::run(&VectorFile::parse(text).expect("readable"), || SubjectKind::Reference.open());
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
    let error = VectorFile::parse(text).expect_err("not for this runner");
    assert!(error.to_string().starts_with("case c: unknown algorithm \"vegas\"; known are: gcra, "), "{error}");
}

/// A case of concurrency whose slots are held when it begins.
const LOWERED: &str = r#"{"algorithm": "concurrency", "time_unit": "ns", "cases": [{"name": "limit_lowered_below_use",
    "config": {"limit": 1, "ttl_ns": 60000000000, "leases": {"a": 1000000000000, "b": 1040000000000,
        "c": 1050000000000, "gone": 990000000000, "late": 9999000000000}},
    "steps": [
        {"op": "acquire", "now_ns": 995000000000, "id": "d", "expect": {"allowed": false, "limit": 1, "in_use": 4,
            "remaining": 0, "retry_after_ns": 60000000000, "reset_after_ns": 60000000000, "renewed": false}},
        {"op": "acquire", "now_ns": 1005000000000, "id": "b", "expect": {"allowed": true, "in_use": 3, "renewed": true}},
        {"op": "release", "now_ns": 1005000000000, "id": "late", "expect": {"ok": true, "in_use": 2}},
        {"op": "acquire", "now_ns": 1050000000000, "id": "d",
            "expect": {"allowed": false, "in_use": 1, "retry_after_ns": 15000000000}},
        {"op": "acquire", "now_ns": 1065000000000, "id": "d",
            "expect": {"allowed": true, "in_use": 1, "renewed": false}}]}]}"#;

#[test]
fn a_case_begins_with_its_leases() {
    let file = VectorFile::parse(LOWERED).expect("readable");
    let server = RedisServer::start();
    for store in [SubjectKind::Memory, SubjectKind::Reference, SubjectKind::Redis(server.port())] {
        let report = vectors::run(&file, || store.open());
        assert_eq!((report.passed, report.differences), (5, vec![]), "{}", store.name());
    }
}

#[test]
fn a_field_that_the_runner_does_not_know_is_refused() {
    let steps = r#""steps": [{"now_ns": 5, "cost": 1, "expect": {}}]"#;
    let numbers = r#""count": 1, "period_ns": 10, "burst": 1"#;
    let refused = [
        (r#"{"algorithm": "gcra", "cases": [], "colour": 1}"#.to_owned(), "unknown field \"colour\"; known are: "),
        (
            format!(
                r#"{{"algorithm": "gcra", "cases": [{{"name": "c", "config": {{{numbers}}}, "tat": 7, {steps}}}]}}"#
            ),
            "case c: unknown field \"tat\"; known are: ",
        ),
        (
            format!(
                r#"{{"algorithm": "gcra", "cases": [{{"name": "c", "config": {{{numbers}, "tat": 7}}, {steps}}}]}}"#
            ),
            "case c: config: unknown field \"tat\"; known are: count, period_ns, burst, max_debt, clamp, count_denied",
        ),
        (
            format!(
                r#"{{"cases": [{{"name": "c", "rules": [{{"algorithm": "gcra", "config": {{{numbers}}}, "key": 1}}], {steps}}}]}}"#
            ),
            "case c: unknown field \"key\"; known are: ",
        ),
        (
            LOWERED.replace("\"id\"", "\"holder\""),
            "case limit_lowered_below_use: step 0: unknown field \"holder\"; known",
        ),
        (
            LOWERED.replace("\"op\"", "\"reconfigure\": {\"slots\": 3}, \"op\""),
            "case limit_lowered_below_use: step 0: reconfigure: unknown field \"slots\"; known are: limit, ttl_ns",
        ),
        (LOWERED.replace("\"ns\"", "\"s\""), "times in \"s\"; this runner reads nanoseconds"),
        (
            r#"{"algorithm": "gcra", "cases": [], "config_errors": [{"config": {"rate": 0}}]}"#.to_owned(),
            "config_errors[0]: config: unknown field \"rate\"; known are: ",
        ),
    ];
    for (text, problem) in refused {
        let error = VectorFile::parse(&text).expect_err(&text);
        assert!(error.to_string().starts_with(problem), "{error}\n{problem}");
    }
}
