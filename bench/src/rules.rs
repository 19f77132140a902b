//! The cost of matching rules, without a store.

use crate::options::Options;
use crate::peers::Matches;
use crate::race::{Course, LimiterSet, RacePlan, Times, race};
use crate::report::{BenchReport, Bound};
use crate::workload::Workload;
use crate::{changes, kinds};

const TEN: &str = "3 of 10 rules";
const TEN_THOUSAND: &str = "3 of 10,000 rules";

const WORKLOADS: [(&str, Workload); 4] = [
    (TEN, Workload { rules: 10, matching: 3, overrides: 0 }),
    ("3 of 1,000 rules", Workload { rules: 1_000, matching: 3, overrides: 0 }),
    (TEN_THOUSAND, Workload { rules: 10_000, matching: 3, overrides: 0 }),
    ("3 of 10 rules, 1,000,000 overrides", Workload { rules: 10, matching: 3, overrides: 1_000_000 }),
];

/// Races rule sets of different size over the same requests.
pub fn run(options: &Options, report: &mut BenchReport) -> anyhow::Result<()> {
    report.section(
        "RuleSet::charges, one thread",
        "From request to charges: canonical path and address, index, conditions, keys hashed. The overrides are of the \
         very clients that ask, so every look-up finds one, and misses the cache.",
    );
    for (_, workload) in WORKLOADS {
        workload.compile()?;
    }
    let build = || -> LimiterSet {
        let compiled = |workload: Workload| Matches(workload.compile().expect("compiled before"));
        WORKLOADS.into_iter().map(|(name, workload)| (name, Box::new(compiled(workload)) as _)).collect()
    };
    let plan = RacePlan { rounds: options.rounds, heats: options.heats, threads: &[1] };
    let checks = if options.quick { 200_000 } else { 500_000 };
    let standings = race(&build, &Course::new(1_000_000, checks, 1), &plan);
    let rows: Vec<Vec<String>> = standings.on(1).map(Times::row).collect();
    report.table(&Times::HEADS, &rows);
    let ratios = standings.of(TEN_THOUSAND, 1).cpu.over(&standings.of(TEN, 1).cpu);
    report.ratio("charges, 10,000 rules, of 10 with the same three matching", Bound::AtMost(2.0), &ratios);
    kinds::run(options, report)?;
    changes::run(report)
}
