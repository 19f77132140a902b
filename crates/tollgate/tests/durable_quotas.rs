//! Usage of quotas survives the process: kills under load, an orderly end, and what prevents a start.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tollgate_lab::durability::DurableNode;

/// What a kill may cost.
const LOST_MAX: Duration = Duration::from_secs(1);

/// Longer than the interval of flushes.
const LOAD: Duration = Duration::from_millis(700);

fn start(arguments: &[&str]) -> DurableNode {
    DurableNode::start(Path::new(env!("CARGO_BIN_EXE_tollgate")), arguments).unwrap()
}

/// `script/durability` does the same 100 times.
#[test]
fn a_kill_under_load_costs_at_most_a_second_of_usage() {
    let mut node = start(&[]);
    node.terminate(LOAD).unwrap(); // makes the files: several syncs
    for number in 0..3 {
        let cost = node.kill(LOAD + Duration::from_millis(number * 90)).unwrap();
        let most = LOST_MAX + cost.slowest_sync;
        assert!(cost.acknowledged > 0 && cost.lost_time <= most, "{cost:?}\n{}", node.log());
        assert!(cost.lost < cost.acknowledged || cost.slowest_sync > LOAD / 4, "most is kept: {cost:?}");
    }
    for file in ["tollgate.quotas", "tollgate.secret"] {
        let mode = fs::metadata(node.directory().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn an_orderly_end_loses_nothing_with_and_without_a_database() {
    for arguments in [&[][..], &["--db", "off"]] {
        let mut node = start(arguments);
        for _ in 0..2 {
            let cost = node.terminate(LOAD).unwrap();
            assert!(cost.acknowledged > 0, "{cost:?}");
            assert_eq!((cost.lost, cost.unacknowledged), (0, 0), "{cost:?}\n{}", node.log());
        }
    }
}

#[test]
fn durable_off_forgets_and_leaves_no_files() {
    let mut node = start(&["--durable", "off"]);
    let cost = node.terminate(LOAD).unwrap();
    assert_eq!(cost.lost, cost.acknowledged);
    assert!(!node.directory().join("tollgate.quotas").exists() && !node.directory().join("tollgate.secret").exists());
}

#[test]
fn a_start_with_another_secret_is_refused() {
    let mut node = start(&[]);
    node.terminate(LOAD).unwrap();
    let replace = |dir: &Path| fs::write(dir.join("tollgate.secret"), "another secret of some length").unwrap();
    let refused = node.restart(replace).unwrap_err().to_string();
    assert!(refused.contains("tollgate.quotas was written with another secret"), "{refused}");
}

#[test]
fn a_second_process_in_an_unused_directory_is_refused() {
    for arguments in [&[][..], &["--db", "off"]] {
        let node = start(arguments);
        let refused = node.start_second().unwrap_err().to_string();
        assert!(refused.contains("tollgate.quotas is in use by another process"), "{refused}");
    }
}

#[test]
fn an_emptied_journal_ends_the_start() {
    let mut node = start(&["--db", "off"]);
    node.terminate(LOAD).unwrap();
    let empty = |dir: &Path| fs::write(dir.join("tollgate.quotas"), "").unwrap();
    let refused = node.restart(empty).unwrap_err().to_string();
    assert!(refused.contains("tollgate.quotas was emptied: restore the file from a backup, or remove it"), "{refused}");
}

#[test]
fn a_removed_journal_is_reported() {
    let mut node = start(&["--db", "off"]);
    node.terminate(LOAD).unwrap();
    node.restart(|dir| fs::remove_file(dir.join("tollgate.quotas")).unwrap()).unwrap();
    assert!(node.log().contains("the journal is not: quotas start unused"), "{}", node.log());
}

#[test]
fn a_torn_and_damaged_journal_is_reported_and_the_rest_is_kept() {
    let mut node = start(&["--db", "off"]);
    node.terminate(LOAD).unwrap();
    let before = node.usage().unwrap();
    let damage = |dir: &Path| {
        let mut bytes = fs::read(dir.join("tollgate.quotas")).unwrap();
        bytes[70] ^= 1; // in the first record, which later flushes have outdated
        bytes.extend([0; 20]);
        fs::write(dir.join("tollgate.quotas"), bytes).unwrap();
    };
    node.restart(damage).unwrap();
    let log = node.log();
    assert!(log.contains("restored the usage of quotas"), "{log}");
    assert!(log.contains("was cut short") && log.contains("are damaged"), "{log}");
    assert_eq!(node.usage().unwrap(), before);
}
