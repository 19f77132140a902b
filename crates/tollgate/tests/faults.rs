//! The fast rows of the fault matrix, each test named after its row; `script/faults` runs all rows.
//!
//! Every row has its own fleet, servers and load. Most rows mostly wait, and run in parallel; rows with much load or
//! tight timing run alone, so that the load of one row does not slow the store of another.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use std::path::Path;
use std::sync::{PoisonError, RwLock};

use tollgate_lab::faults::{self, Lab, RowResult};
use tollgate_testkit::LimitConfig;

static QUIET: RwLock<()> = RwLock::new(());

/// Rows that run alone.
const ALONE: &[&str] = &["F4", "F4-late", "F22", "F36", "F57", "F60", "fleet-short"];

fn tollgate() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tollgate"))
}

/// Runs a row, and fails with all its findings.
#[expect(clippy::print_stdout, reason = "with --nocapture it tells how near to its bound a row came")]
#[track_caller]
fn holds(id: &str) {
    let row = faults::find(id).unwrap();
    let (outcome, took) = match ALONE.contains(&id) {
        true => {
            let _alone = QUIET.write().unwrap_or_else(PoisonError::into_inner);
            faults::run(row, tollgate())
        }
        false => {
            let _beside_others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
            faults::run(row, tollgate())
        }
    };
    let RowResult { admitted, bound, broken, remarks, .. } = outcome;
    println!("{id}: {admitted} of {bound} in {took:?}; {}", remarks.join("; "));
    assert!(broken.is_empty(), "{id}, {}:\n  {}", row.title, broken.join("\n  "));
}

/// Defines one test per row.
macro_rules! rows {
    ($($name:ident $id:literal)*) => {
        $(#[test]
        fn $name() {
            holds($id);
        })*

        #[test]
        fn every_fast_row_is_a_test() {
            let tested = [$($id),*];
            let fast = faults::ROWS.iter().filter(|row| row.speed == faults::Speed::Fast);
            let missing: Vec<&str> = fast.map(|row| row.id).filter(|id| !tested.contains(id)).collect();
            assert_eq!(missing, [""; 0]);
        }
    };
}

rows! {
    f01_redis_kill "F1"
    f02_redis_back_empty "F2"
    f03_redis_sigstop "F3"
    f04_latency "F4"
    f04_late "F4-late"
    f05_jitter "F5"
    f06_reply_lost "F6"
    f07_black_hole "F7"
    f08_reset_mid_reply "F8"
    f09_trickle "F9"
    f10_connection_refused "F10"
    f12_node_kill "F12"
    f21_flushall "F21"
    f22_script_flush "F22"
    f23_out_of_memory "F23"
    f24_evicting_policy "F24"
    f26_no_replicas "F26"
    f27_busy "F27"
    f28_loading "F28"
    f29_password_changed "F29"
    f30_too_many_clients "F30"
    f34_store_clock_ahead "F34"
    f36_node_clocks "F36"
    f57_key_flood "F57"
    f60_rolling_restart "F60"
    r01_reservations_reconcile "R1"
    r02_reservations_redis_sigstop "R2"
    r03_reservations_redis_kill "R3"
    r04_reservations_node_kill "R4"
    r06_reservations_month_ends "R6"
    fleet_of_five "fleet-short"
}

/// A lab with nodes that do not share a store.
fn apart(nodes: usize) -> Lab {
    let mut lab = Lab::new(tollgate());
    for number in 1..=nodes {
        lab.start_node(&format!("n{number}"), "memory");
    }
    let load = lab.load(4);
    lab.pause(1500);
    lab.stop(load);
    lab
}

#[test]
fn the_lab_accepts_a_correct_node() {
    let mut lab = apart(1);
    lab.expect_alive();
    let outcome = lab.conclude();
    assert_eq!(outcome.broken, [""; 0]);
    assert!(outcome.admitted > 0 && outcome.admitted <= outcome.bound && outcome.decisions > 500, "{outcome:?}");
}

#[test]
fn the_lab_detects_nodes_that_share_nothing() {
    let outcome = apart(2).conclude();
    let found = |promise: &str| outcome.broken.iter().any(|broken| broken.contains(promise));
    assert!(found("P2: ") && found("P3: ") && found("P4: "), "{:?}", outcome.broken);
}

#[test]
fn the_lab_detects_one_admission_too_many() {
    let mut lab = apart(1);
    let limit = LimitConfig::FixedWindow { limit: 49, window: 2_000_000_000, offset: 0 };
    assert_eq!(lab.promises[0].rule, "window");
    lab.promises[0].limit = limit;
    let broken = lab.conclude().broken;
    assert!(broken.iter().any(|broken| broken.contains("50 admitted, at most 49 (P1: aligned window)")), "{broken:?}");
}
