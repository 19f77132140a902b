//! The cost of one check of one bucket, beside other limiters.

use crate::field::{self, FLOOR, GOVERNOR, TOLLGATE};
use crate::options::Options;
use crate::peers::{BURST, PERIOD};
use crate::race::{Course, RacePlan, Standings, Times, race};
use crate::report::{BenchReport, Bound, short};

/// The targets at one number of keys.
struct Goal {
    keys: usize,
    /// Of governor's time, on one thread.
    time: f64,
    /// Of governor's throughput, on two threads.
    throughput: Option<f64>,
}

const GOALS: [Goal; 4] = [
    Goal { keys: 1, time: 1.1, throughput: None },
    Goal { keys: 100_000, time: 0.7, throughput: Some(1.3) },
    Goal { keys: 1_000_000, time: 0.7, throughput: Some(1.3) },
    Goal { keys: 10_000_000, time: 0.85, throughput: Some(1.1) },
];

/// Of the floor's time, at every number of keys.
const FLOOR_MOST: f64 = 1.3;

/// From where on a store is too large to be built several times over.
const LARGE: usize = 10_000_000;

/// Races all stores at every number of keys.
pub fn run(options: &Options, report: &mut BenchReport) {
    for goal in GOALS.iter().filter(|goal| !options.quick || goal.keys < LARGE) {
        let heats = if goal.keys >= LARGE { 1 } else { options.heats };
        let checks = if options.quick { 400_000 } else { 1_000_000 };
        let plan = RacePlan { rounds: options.rounds, heats, threads: &[1, 2] };
        let standings = race(&field::stores, &Course::new(goal.keys, checks, 2), &plan);
        tell(goal, &standings, report);
    }
}

fn tell(goal: &Goal, standings: &Standings, report: &mut BenchReport) {
    let keys = if goal.keys == 1 { "1 hot key".to_owned() } else { format!("{} keys", short(goal.keys)) };
    report.section(
        &format!("GCRA, one bucket per check, {keys}"),
        &format!(
            "Keys of 16 bytes in random order, timed from the `&str` on. All have the same limit: one unit per {} s, \
             {BURST} at once, so that everything passes and no bucket ever equals an unused one.",
            PERIOD.as_secs()
        ),
    );
    for threads in [1, 2] {
        let mut heads = Times::HEADS;
        let head = format!("candidate, {threads} thread{}", if threads == 1 { "" } else { "s" });
        let [first, ..] = &mut heads;
        *first = &head;
        let rows: Vec<Vec<String>> = standings.on(threads).map(Times::row).collect();
        report.table(&heads, &rows);
    }
    let times = |name: &str, threads: usize| standings.of(name, threads);
    let ours = times(TOLLGATE, 1).cpu;
    report.ratio(&format!("time, {keys}, of governor"), Bound::AtMost(goal.time), &ours.over(&times(GOVERNOR, 1).cpu));
    report.ratio(&format!("time, {keys}, of the floor"), Bound::AtMost(FLOOR_MOST), &ours.over(&times(FLOOR, 1).cpu));
    if let Some(least) = goal.throughput {
        let ratios = times(TOLLGATE, 2).throughput.over(&times(GOVERNOR, 2).throughput);
        report.ratio(&format!("throughput on 2 threads, {keys}, of governor"), Bound::AtLeast(least), &ratios);
    }
}
