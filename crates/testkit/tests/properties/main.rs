//! What must hold for every sequence of requests, checked on random ones.
//!
//! Each property runs 10,000 cases; `TOLLGATE_CASES` sets another number. A failing seed is written to
//! `proptest-regressions/`, is committed, and runs first from then on.

mod algorithms;
mod calendar;
mod equivalence;
mod liveness;
mod soft;
mod together;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};

/// Cases per property.
fn cases() -> u32 {
    let asked = std::env::var("TOLLGATE_CASES").ok();
    asked.map_or(10_000, |cases| cases.parse().expect("TOLLGATE_CASES is a number"))
}

/// Runs a property; `seeds` is its own file of seeds that once failed.
#[track_caller]
fn holds<S: Strategy>(seeds: &'static str, strategy: S, property: impl Fn(S::Value) -> Result<(), String>) {
    let config = Config {
        cases: cases(),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(seeds))),
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&strategy, |input| property(input).map_err(TestCaseError::fail));
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
