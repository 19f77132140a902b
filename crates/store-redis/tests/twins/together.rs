//! Random sequences of requests over all algorithms, with clocks that step back, changed limits, forced usage, refunds
//! and releases: every answer equals the reference's.

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};
use tollgate_core::LimitKind;
use tollgate_lab::redis::{Flavour, RedisServer};
use tollgate_testkit::SubjectKind;
use tollgate_testkit::oracle::{CalendarRun, Scenario, TimeStep, play_calendar, play_together};
use tollgate_testkit::{LimitConfig as Numbers, oracle};

const KINDS: [LimitKind; 7] = [
    LimitKind::Gcra,
    LimitKind::FixedWindow,
    LimitKind::SlidingCounter,
    LimitKind::SlidingLog,
    LimitKind::Queue,
    LimitKind::Concurrency,
    LimitKind::Quota,
];

fn cases() -> u32 {
    let asked = std::env::var("TOLLGATE_CASES").ok();
    asked.map_or(300, |cases| cases.parse().expect("TOLLGATE_CASES is a number"))
}

#[track_caller]
fn holds<S: Strategy>(seeds: &'static str, strategy: S, property: impl Fn(S::Value) -> Result<(), String>) {
    let config = Config {
        cases: cases(),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(seeds))),
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&strategy, |input| property(input).map_err(TestCaseError::fail));
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

#[test]
fn several_limits_at_once_decide_as_the_core_does() {
    let server = RedisServer::start();
    let limits = vec((any::<u8>(), any::<[u8; 8]>()), 1..=4);
    let rows = vec(any::<[u32; 4]>(), 0..=100);
    holds("proptest-regressions/together.txt", (limits, rows, any::<u8>()), |(limits, rows, shadow)| {
        let scripts = limits.iter().enumerate().map(|(place, (kind, head))| {
            let words: Vec<u32> = rows.iter().map(|row| row[place]).collect();
            Scenario::decode(KINDS[usize::from(*kind) % KINDS.len()], *head, &words)
        });
        let shadow = if shadow % 4 == 3 { shadow / 4 } else { 0 };
        play(scripts.collect(), shadow, &server)
    });
}

fn one_limit(seeds: &'static str, kind: LimitKind) {
    let server = RedisServer::start();
    holds(seeds, (any::<[u8; 8]>(), vec(any::<u32>(), 0..=100)), |(head, words)| {
        play(vec![Scenario::decode(kind, head, &words)], 0, &server)
    });
}

#[test]
fn gcra_decides_as_the_core_does() {
    one_limit("proptest-regressions/gcra.txt", LimitKind::Gcra);
}

#[test]
fn queue_decides_as_the_core_does() {
    one_limit("proptest-regressions/queue.txt", LimitKind::Queue);
}

#[test]
fn fixed_window_decides_as_the_core_does() {
    one_limit("proptest-regressions/fixed_window.txt", LimitKind::FixedWindow);
}

#[test]
fn sliding_counter_decides_as_the_core_does() {
    one_limit("proptest-regressions/sliding_counter.txt", LimitKind::SlidingCounter);
}

#[test]
fn sliding_log_decides_as_the_core_does() {
    one_limit("proptest-regressions/sliding_log.txt", LimitKind::SlidingLog);
}

#[test]
fn concurrency_decides_as_the_core_does() {
    one_limit("proptest-regressions/concurrency.txt", LimitKind::Concurrency);
}

#[test]
fn quota_decides_as_the_core_does() {
    one_limit("proptest-regressions/quota.txt", LimitKind::Quota);
}

fn nodes_share_one_calendar(server: &RedisServer) {
    let runs = (any::<[u8; 3]>(), any::<[u8; 5]>(), vec(any::<[u8; 4]>(), 0..=100));
    holds("proptest-regressions/calendar.txt", runs, |(numbers, lengths, steps)| {
        let run = CalendarRun { numbers, lengths, steps };
        play_calendar(&run, &mut *SubjectKind::Redis(server.port()).open())
    });
}

#[test]
fn nodes_whose_clocks_differ_share_one_calendar_on_redis() {
    nodes_share_one_calendar(&RedisServer::start());
}

#[test]
fn nodes_whose_clocks_differ_share_one_calendar_on_valkey() {
    nodes_share_one_calendar(&RedisServer::of(Flavour::Valkey));
}

fn play(mut scripts: Vec<Scenario>, shadow: u8, server: &RedisServer) -> Result<(), String> {
    let has_slots = scripts.iter().any(|script| matches!(script.configs[0], Numbers::Concurrency { .. }));
    if has_slots {
        scripts.iter_mut().for_each(in_whole_microseconds);
    }
    play_together(&scripts, shadow, &mut [SubjectKind::Redis(server.port()).open()])
}

/// The expiry of a slot is kept in microseconds, in which the server's clock ticks: here the test's ticks so, too. And it
/// ticks slower, because a score cannot tell microseconds after the year 2255.
fn in_whole_microseconds(script: &mut oracle::Scenario) {
    let whole = |nanos: u64| nanos - nanos % 1000;
    script.start = whole(script.start.min(1 << 62));
    for config in &mut script.configs {
        if let Numbers::Concurrency { ttl, .. } = config {
            *ttl = whole(ttl.saturating_mul(1000).min(1 << 61));
        }
    }
    for (pass, _) in &mut script.steps {
        *pass = match *pass {
            TimeStep::On(nanos) if nanos < 1 << 40 => TimeStep::On(nanos * 1000),
            TimeStep::On(nanos) => TimeStep::On(whole(nanos.min(1 << 52))),
            TimeStep::Back(nanos) if nanos < 1 << 40 => TimeStep::Back(nanos * 1000),
            TimeStep::Back(nanos) => TimeStep::Back(whole(nanos)),
            TimeStep::Retry => TimeStep::On(20_000),
            TimeStep::AlmostRetry => TimeStep::On(19_000),
            TimeStep::NextUnit => TimeStep::On(1_000),
            TimeStep::Reset => TimeStep::On(40_000),
        };
    }
}
