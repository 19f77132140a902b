//! Histories that keep a bound exactly, and the same with one unit more: a checker that misses one of these misses all.

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_800_000_000 * SECOND;

const BUCKET: LimitConfig = LimitConfig::Gcra { count: 10, period: SECOND, burst: 5, max_debt: 0, clamp: true };
const WINDOW: LimitConfig = LimitConfig::FixedWindow { limit: 5, window: SECOND, offset: 0 };
const LOG: LimitConfig = LimitConfig::SlidingLog { limit: 5, window: SECOND };
const COUNTER: LimitConfig = LimitConfig::SlidingCounter { limit: 10, window: SECOND, offset: 0 };

/// A line of a log: one unit at a time after the start, in milliseconds.
fn line(node: &str, key: &str, mode: &str, at_ms: u64, units: u64) -> LoggedDecision {
    let time = START + at_ms * 1_000_000;
    read_line(&format!(
        r#"{{"time":"2027-01-15T08:00:00.000Z","node":"{node}","namespace":"default","rule":"r","key":"{key}","cost":1,"allowed":true,"mode":"{mode}","generation":1,"retry_after_ms":0,"time_ns":{time},"charged":[{{"rule":"r","mode":"{mode}","units":{units}}}]}}"#
    ))
    .unwrap()
}

fn in_store(times: &[u64]) -> Vec<LoggedDecision> {
    times.iter().map(|at| line("a", "k", "store", *at, 1)).collect()
}

fn promise(limit: LimitConfig) -> Promise {
    Promise { nodes: 2, ..Promise::new("r", limit) }
}

fn violations(promise: &Promise, entries: &[LoggedDecision]) -> Vec<String> {
    check_log(std::slice::from_ref(promise), entries).violations.into_iter().map(|found| found.promise).collect()
}

/// The history passes, and does not with one more of its last unit.
#[track_caller]
fn caught_by_one(promise: &Promise, entries: &[LoggedDecision], name: &str) {
    assert_eq!(violations(promise, entries), [""; 0], "the bound itself is allowed");
    let one_more: Vec<LoggedDecision> = entries.iter().chain(entries.last()).cloned().collect();
    let found = violations(promise, &one_more);
    assert!(found.iter().any(|found| found.starts_with(name)), "one more than {name} allows: {found:?}");
}

#[test]
fn p1_aligned_windows() {
    caught_by_one(&promise(WINDOW), &in_store(&[990, 991, 992, 993, 994]), "P1: aligned");
    let across = in_store(&[990, 991, 992, 993, 994, 1000, 1001, 1002, 1003, 1004]);
    assert_eq!(violations(&promise(WINDOW), &across), [""; 0], "two windows, twice the limit");
    caught_by_one(&promise(WINDOW), &across, "P1: aligned");
}

#[test]
fn p1_windows_with_an_offset() {
    let config = LimitConfig::FixedWindow { limit: 1, window: SECOND, offset: SECOND / 2 };
    assert_eq!(violations(&promise(config), &in_store(&[499, 500])), [""; 0]);
    assert_ne!(violations(&promise(config), &in_store(&[500, 1499])), [""; 0]);
}

#[test]
fn p2_sliding_logs() {
    caught_by_one(&promise(LOG), &in_store(&[500, 501, 502, 503, 1499]), "P2");
    assert_eq!(violations(&promise(LOG), &in_store(&[500, 501, 502, 503, 504, 1500])), [""; 0], "half-open");
}

#[test]
fn p3_token_buckets_in_any_interval() {
    caught_by_one(&promise(BUCKET), &in_store(&[0, 0, 0, 0, 0]), "P3");
    caught_by_one(&promise(BUCKET), &in_store(&[0, 0, 0, 0, 0, 100, 200, 300]), "P3");
    assert_ne!(violations(&promise(BUCKET), &in_store(&[0, 0, 0, 0, 0, 99])), [""; 0], "a millisecond early");
    // The burst may come late, but not before it is earned and after it is spent.
    assert_ne!(violations(&promise(BUCKET), &in_store(&[0, 1000, 1000, 1000, 1000, 1000, 1000])), [""; 0]);
}

#[test]
fn p4_sliding_counters() {
    let times = |count: usize| -> Vec<u64> { (0..10).chain((0..count).map(|_| 500)).collect() };
    caught_by_one(&promise(COUNTER), &in_store(&times(5)), "P4");
}

#[test]
fn p5_leases_add_what_is_outstanding() {
    let leased = Promise { leased: 3, ..promise(BUCKET) };
    let mut history = in_store(&[0, 0, 0, 0, 0]);
    history.extend([0, 0, 0].map(|at| line("b", "k", "lease", at, 1)));
    caught_by_one(&leased, &history, "P5");
    assert_ne!(violations(&leased, &in_store(&[0, 0, 0, 0, 0, 0])), [""; 0], "who leases nothing gets nothing more");
}

#[test]
fn p6_leases_add_nothing_to_windows() {
    let leased = Promise { leased: 3, ..promise(WINDOW) };
    let mut history = in_store(&[0, 0, 0]);
    history.extend([0, 0].map(|at| line("b", "k", "lease", at, 1)));
    caught_by_one(&leased, &history, "P1: aligned");
}

#[test]
fn p13_every_node_has_its_share() {
    for config in [WINDOW, LOG, BUCKET] {
        let mut history = in_store(&[0, 0, 0, 0, 0]);
        history.extend([0, 0, 0].map(|at| line("a", "k", "fallback", at, 1)));
        history.extend([0, 0, 0].map(|at| line("b", "k", "fallback", at, 1)));
        caught_by_one(&promise(config), &history, "P");
    }
    let local: Vec<LoggedDecision> = [0, 0, 0].map(|at| line("a", "k", "local", at, 1)).into();
    caught_by_one(&promise(WINDOW), &local, "P1: aligned");
}

#[test]
fn p14_closed_admits_nothing_and_open_everything() {
    assert_eq!(violations(&promise(WINDOW), &[line("a", "k", "closed", 0, 1)]), ["P14: admitted in mode closed"]);
    let open: Vec<LoggedDecision> = (0..100).map(|_| line("a", "k", "open", 0, 1)).collect();
    assert_eq!(violations(&promise(WINDOW), &open), [""; 0]);
    assert_eq!(check_log(&[promise(WINDOW)], &open).in_mode(AdmissionMode::Open), 100, "but it is counted");
}

#[test]
fn p17_a_loss_buys_one_more_limit() {
    for config in [WINDOW, LOG, BUCKET] {
        let at = |ms: u64| START + ms * 1_000_000;
        let lossy = Promise { losses: vec![Loss { from: at(10), to: at(20), units: 5 }], ..promise(config) };
        caught_by_one(&lossy, &in_store(&[0, 0, 0, 0, 0, 20, 20, 20, 20, 20]), "P");
        let before = in_store(&[0, 0, 0, 0, 0, 9]);
        assert_ne!(violations(&lossy, &before), [""; 0], "nothing was lost yet");
        let after = in_store(&[21, 21, 21, 21, 21, 21]);
        assert_ne!(violations(&lossy, &after), [""; 0], "what was lost before does not count later");
    }
}

#[test]
fn p23_overflow_is_one_bucket_for_all_keys() {
    let history: Vec<LoggedDecision> = (0..50).map(|index| line("a", &format!("k{index}"), "overflow", 0, 1)).collect();
    caught_by_one(&promise(WINDOW), &history, "P1: aligned");
}

#[test]
fn buckets_are_told_apart_and_joined() {
    let mut history = in_store(&[0, 0, 0, 0, 0]);
    history.push(line("b", "other", "store", 0, 1));
    assert_eq!(violations(&promise(WINDOW), &history), [""; 0], "another key, another bucket");
    let joined = Promise { keyed: Keyed::Everyone, ..promise(WINDOW) };
    assert_ne!(violations(&joined, &history), [""; 0], "one bucket for all");
    let stranger = Promise { rule: "another".to_owned(), ..promise(WINDOW) };
    assert_eq!(violations(&stranger, &in_store(&[0; 9])), [""; 0]);
}

#[test]
fn units_count_and_refusals_do_not() {
    assert_ne!(violations(&promise(WINDOW), &[line("a", "k", "store", 0, 6)]), [""; 0]);
    let refused = LoggedDecision { allowed: false, ..line("a", "k", "store", 0, 6) };
    assert_eq!(violations(&promise(WINDOW), &[refused]), [""; 0]);
}

fn observation(node: &str, mode: AdmissionMode, asked_ms: u64, heard_ms: u64) -> ClientObservation {
    let [asked, heard] = [asked_ms, heard_ms].map(|ms| START + ms * 1_000_000);
    let (rule, key, node) = ("r".to_owned(), "k".to_owned(), node.to_owned());
    ClientObservation { rule, key, node, mode: Some(mode), allowed: true, cost: 1, asked, heard }
}

#[test]
fn clients_know_only_what_lies_between_asking_and_hearing() {
    let bucket = promise(BUCKET);
    let found = |observations: &[ClientObservation]| {
        !check_observations(std::slice::from_ref(&bucket), observations).violations.is_empty()
    };
    let burst = vec![observation("a", AdmissionMode::Store, 0, 10); 5];
    let with = |last: ClientObservation| burst.iter().cloned().chain([last]).collect::<Vec<_>>();
    assert!(!found(&burst));
    assert!(found(&with(observation("a", AdmissionMode::Store, 0, 99))), "all six lie within 99 ms");
    assert!(
        !found(&with(observation("a", AdmissionMode::Store, 0, 100))),
        "the sixth may have come when it was earned"
    );
    assert!(found(&with(observation("a", AdmissionMode::Store, 50, 60))));
    assert!(!found(&with(observation("a", AdmissionMode::Fallback, 50, 60))), "of its own share");
}

#[test]
fn windows_of_clients_are_not_aligned() {
    let window = promise(WINDOW);
    let observations = |count: usize| vec![observation("a", AdmissionMode::Store, 0, 10); count];
    let found = |observations: &[ClientObservation]| {
        check_observations(std::slice::from_ref(&window), observations).violations.len()
    };
    assert_eq!((found(&observations(10)), found(&observations(11))), (0, 1), "twice the limit around a boundary");
}

#[test]
fn p11_slots_held_at_once() {
    let held = [HeldSlot { from: 0, to: 10 }, HeldSlot { from: 5, to: 15 }, HeldSlot { from: 10, to: 20 }];
    assert_eq!(inflight(&held), 2, "one ends when the third begins");
    assert_eq!(inflight(&[held[0], held[1], HeldSlot { from: 9, to: 20 }]), 3);
    assert_eq!(inflight(&[]), 0);
}

#[test]
fn a_line_cut_off_by_a_crash_is_left_out_and_others_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let whole = r#"{"node":"a","key":"k","allowed":true,"generation":1,"time_ns":1,"charged":[]}"#;
    std::fs::write(&path, format!("{whole}\n{}", &whole[..20])).unwrap();
    assert_eq!(read(&path).unwrap().len(), 1);
    std::fs::write(&path, format!("{}\n{whole}\n", &whole[..20])).unwrap();
    assert!(read(&path).unwrap_err().starts_with("line 1: "));
}

/// The same by trying every interval.
fn brute(pieces: &[Piece], flow: &Flow, losses: &[Loss]) -> bool {
    let ends = pieces.iter().map(|piece| piece.to);
    ends.into_iter().any(|end| {
        pieces.iter().map(|piece| piece.from).filter(|start| *start <= end).any(|start| {
            let inside = |from: u64, to: u64| start <= from && to <= end;
            let sum: u64 = pieces.iter().filter(|piece| inside(piece.from, piece.to)).map(|piece| piece.units).sum();
            let touched = losses.iter().filter(|loss| start <= loss.to && loss.from <= end);
            let lost: u64 = touched.map(|loss| loss.units).sum();
            let is_short = flow.window.is_none_or(|window| end - start < window);
            is_short && sum * flow.weight > (flow.capacity + lost) * flow.weight + flow.drain * (end - start)
        })
    })
}

proptest! {
    #[test]
    fn the_sweep_finds_what_trying_everything_finds(
        raw in prop::collection::vec((0_u64..60, 0_u64..6, 1_u64..4), 1..25),
        losses in prop::collection::vec((0_u64..60, 0_u64..6, 1_u64..4), 0..3),
        (weight, drain, capacity) in (1_u64..8, 0_u64..3, 1_u64..12),
        window in prop::option::of(1_u64..40),
    ) {
        let flow = Flow { weight, drain, capacity, window };
        let mut pieces: Vec<Piece> =
            raw.iter().map(|&(from, length, units)| Piece { from, to: from + length, units, leased: false }).collect();
        let losses: Vec<Loss> =
            losses.iter().map(|&(from, length, units)| Loss { from, to: from + length, units }).collect();
        prop_assert_eq!(sweep(&mut pieces, &flow, &losses).is_some(), brute(&pieces, &flow, &losses));
    }
}
