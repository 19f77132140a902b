//! The cost of a whole decision, and its growth with the number of rules.

use crate::field::GOVERNOR;
use crate::options::Options;
use crate::peers::{Decides, Governor};
use crate::race::{Course, LimiterSet, RacePlan, Times, race};
use crate::report::{BenchReport, Bound, short};
use crate::workload::Workload;

const KEYS: usize = 100_000;

const ONE_OF_1000: &str = "1 of 1,000 rules";
const THREE_OF_10: &str = "3 of 10 rules";
const THREE_OF_1000: &str = "3 of 1,000 rules";
const THREE_OF_10000: &str = "3 of 10,000 rules";
const WITH_ADDRESS: &str = "1 of 1,000 rules, with an address";
const WITH_OVERRIDES: &str = "1 of 1,000 rules, 1,000,000 overrides";

const ONE: Workload = Workload { rules: 1_000, matching: 1, overrides: 0 };

const WORKLOADS: [(&str, Workload); 5] = [
    (ONE_OF_1000, ONE),
    (THREE_OF_10, Workload { rules: 10, matching: 3, overrides: 0 }),
    (THREE_OF_1000, Workload { rules: 1_000, matching: 3, overrides: 0 }),
    (THREE_OF_10000, Workload { rules: 10_000, matching: 3, overrides: 0 }),
    (WITH_OVERRIDES, Workload { rules: 1_000, matching: 1, overrides: 1_000_000 }),
];

/// Races engines with different rules, and governor beside them.
pub fn run(options: &Options, report: &mut BenchReport) -> anyhow::Result<()> {
    report.section(
        &format!("Engine::decide, {} keys, one thread", short(KEYS)),
        "From the request on: `GET /orders/items/17` of a free user; every user has a bucket per rule that matches. \
         governor beside it makes its bare check of one bucket. All checks pass.",
    );
    for (_, workload) in WORKLOADS {
        workload.compile()?; // a mistake in the rules is told here; below it could only panic
    }
    let build = || {
        let mut field: LimiterSet = vec![(GOVERNOR, Box::new(Governor::new()))];
        for (name, workload) in WORKLOADS {
            let rules = workload.compile().expect("compiled before");
            field.push((name, Box::new(Decides::new(rules))));
        }
        let rules = ONE.compile().expect("compiled before");
        field.push((WITH_ADDRESS, Box::new(Decides::with_address(rules))));
        field
    };
    let plan = RacePlan { rounds: options.rounds, heats: options.heats, threads: &[1] };
    let checks = if options.quick { 200_000 } else { 500_000 };
    let standings = race(&build, &Course::new(KEYS, checks, 1), &plan);
    let rows: Vec<Vec<String>> = standings.on(1).map(Times::row).collect();
    report.table(&Times::HEADS, &rows);
    let mut goal = |what: &str, most: f64, ours: &str, theirs: &str| {
        let ratios = standings.of(ours, 1).cpu.over(&standings.of(theirs, 1).cpu);
        report.ratio(what, Bound::AtMost(most), &ratios);
    };
    goal("decide, 1 of 1,000 rules, of governor's bare check", 2.0, ONE_OF_1000, GOVERNOR);
    goal("decide, 3 matching rules, of 1", 2.2, THREE_OF_1000, ONE_OF_1000);
    goal("decide, 10,000 rules, of 10 with the same three matching", 2.0, THREE_OF_10000, THREE_OF_10);
    Ok(())
}
