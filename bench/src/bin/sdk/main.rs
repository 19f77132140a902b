//! What Tollgate costs in a Rust application: the layer, beside axum alone and tower_governor; a call of the client, beside a
//! bare keep-alive call; units taken in advance. Rows of other languages come from the programs of `bench/sdk`. Run by
//! `script/bench sdk`.
//!
//! | command | what it does |
//! |---|---|
//! | `sdk layers REQUESTS` | rows of the layer: CPU time in one process, without sockets |
//! | `sdk one CANDIDATE REQUESTS` | one candidate in a function `measured`, for counting instructions |
//! | `sdk calls URL METRICS CALLS` | rows of the client against a running server |
//!
//! A row is `name<TAB>nanoseconds`; candidates take turns, and figures are medians over rounds.

#![allow(clippy::print_stdout, reason = "a program for people")]

mod calls;
mod layers;

use rustix::time::{ClockId, clock_gettime};

type AnyError = Box<dyn std::error::Error>;

const USAGE: &str = "usage: sdk layers REQUESTS | sdk one CANDIDATE REQUESTS | sdk calls URL METRICS CALLS";

fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match words.as_slice() {
        ["layers", requests] => layers::compare(&runtime, requests.parse()?),
        ["one", candidate, requests] => layers::measured(&runtime, candidate, requests.parse()?),
        ["calls", url, metrics, calls] => runtime.block_on(calls::compare(url, metrics, calls.parse()?)),
        _ => Err(USAGE.into()),
    }
}

/// Nanoseconds of CPU of this thread.
fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
