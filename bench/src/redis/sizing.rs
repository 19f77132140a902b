//! The sizing table of the guide, from the measurements.

use super::exact::{EXACT, EXACT_MANY, EXACT_THREE};
use super::leased::Mixed;
use super::round::{StoreRound, StoreStandings};
use super::servers::TOLLGATE;
use crate::report::BenchReport;
use crate::servers;

/// Everything that the table is made of, as far as it was measured.
pub struct Measured {
    pub exact: Option<StoreStandings>,
    pub servers: Option<servers::round::ServerStandings>,
    pub mixed: Option<Mixed>,
    /// Bytes of Redis memory per bucket.
    pub bucket: Option<f64>,
}

/// Prints it as Markdown.
pub fn run(measured: &Measured, report: &mut BenchReport) {
    report.section(
        "Sizing",
        "From the medians above. A node is one core of Tollgate: the library (`Engine::decide` in a process), or a whole \
         server over HTTP. A core of Redis is what one primary has. Bandwidth is between node and Redis, both ways, \
         without the heads of packets. Plan with half of it.",
    );
    let mut rows = Vec::new();
    if let Some(exact) = &measured.exact {
        rows.push(library("exact, 64 at once, library", exact, EXACT));
        rows.push(library("exact, 256 at once, library", exact, EXACT_MANY));
        rows.push(library("exact, 3 rules, library", exact, EXACT_THREE));
    }
    if let Some(servers) = measured.servers.as_ref().filter(|servers| servers.has(TOLLGATE)) {
        let median = |figure: fn(&servers::round::ServerRound) -> f64| servers.sample(TOLLGATE, figure).median();
        let (own, redis) = (median(|round| round.cpu), median(|round| round.backend));
        rows.push(line("exact, over HTTP", own, redis, f64::NAN, f64::NAN));
    }
    if let Some(Mixed { own, redis, commands, bytes }) = measured.mixed {
        rows.push(line("leased, mixed load, library", own, redis, commands, bytes));
    }
    let heads = [
        "mode",
        "k checks/s per node core",
        "k checks/s per Redis core",
        "nodes per Redis",
        "calls per check",
        "bytes per check",
        "Mbit/s at 10 k checks/s",
    ];
    report.table(&heads, &rows);
    if let Some(bucket) = measured.bucket {
        let gigabytes = |users: f64| users * bucket / 1e9;
        report.note(&format!(
            "A bucket takes {bucket:.0} bytes of Redis: {:.2} GB for 1 M active clients with one rule each, {:.1} GB for 10 M.",
            gigabytes(1e6),
            gigabytes(1e7)
        ));
    }
}

fn library(name: &str, standings: &StoreStandings, candidate: &str) -> Vec<String> {
    let median = |figure: fn(&StoreRound) -> f64| standings.sample(candidate, figure).median();
    let bytes = median(|round| round.bytes_in + round.bytes_out);
    line(name, median(|round| round.own), median(|round| round.redis), median(|round| round.calls), bytes)
}

fn line(name: &str, own: f64, redis: f64, calls: f64, bytes: f64) -> Vec<String> {
    let number = |figure: f64, digits: usize| match figure.is_finite() {
        true => format!("{figure:.digits$}"),
        false => "–".to_owned(),
    };
    vec![
        name.to_owned(),
        number(1e3 / own, 0),
        number(1e3 / redis, 0),
        number(own / redis, 1),
        number(calls, 3),
        number(bytes, 0),
        number(bytes * 8.0 * 10_000.0 / 1e6, 1),
    ]
}
