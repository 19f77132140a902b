//! Growth of the time per check with keys, rules and threads; draws the charts of the documents.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tollgate_lab::plot::{Plot, Scale};

use crate::field;
use crate::options::Options;
use crate::peers::Decides;
use crate::race::{Course, LimiterSet, RacePlan, Standings, race};
use crate::report::{BenchReport, short};
use crate::workload::Workload;

const KEYS: [usize; 9] = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000];
const QUICK_KEYS_MOST: usize = 1_000_000;
/// How many rules, and the names of the engines that have so many, of which one or three match.
const RULES: [(usize, &str, &str); 4] = [
    (10, "1 of 10", "3 of 10"),
    (100, "1 of 100", "3 of 100"),
    (1_000, "1 of 1,000", "3 of 1,000"),
    (10_000, "1 of 10,000", "3 of 10,000"),
];
const THREADS_KEYS: [(usize, &str); 3] = [(1, "1 hot key"), (100_000, "100 k keys"), (1_000_000, "1 M keys")];

/// One measured curve.
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// Measures all three, and writes a picture and its figures for each.
pub fn run(options: &Options, report: &mut BenchReport) -> anyhow::Result<()> {
    let plan = RacePlan { rounds: options.rounds, heats: 1, threads: &[1] };
    let lines = by_keys(options, &plan);
    let plot = Plot::new("Time per check by number of keys").x("keys", Scale::Log10).y("ns per check", Scale::Log10);
    keep("growth-keys", "keys", plot, &lines, report)?;
    let lines = by_rules(options, &plan)?;
    let plot =
        Plot::new("Time per decision by number of rules").x("rules", Scale::Log10).y("ns per decision", Scale::Linear);
    keep("growth-rules", "rules", plot, &lines, report)?;
    let lines = by_threads(options);
    let plot =
        Plot::new("Throughput by number of threads").x("threads", Scale::Log10).y("million checks/s", Scale::Linear);
    keep("growth-threads", "threads", plot, &lines, report)
}

fn by_keys(options: &Options, plan: &RacePlan) -> Vec<Line> {
    let sizes = KEYS.into_iter().filter(|keys| !options.quick || *keys <= QUICK_KEYS_MOST);
    let measured: Vec<(usize, Standings)> =
        sizes.map(|keys| (keys, race(&field::growing, &Course::new(keys, 500_000, 1), plan))).collect();
    let names = measured.first().map(|(_, standings)| standings.on(1).map(|times| times.name).collect::<Vec<_>>());
    let point = |name: &str, (keys, standings): &(usize, Standings)| (*keys as f64, standings.of(name, 1).cpu.median());
    let line = |name: &str| Line {
        name: name.to_owned(),
        points: measured.iter().map(|standings| point(name, standings)).collect(),
    };
    names.unwrap_or_default().into_iter().map(line).collect()
}

fn by_rules(options: &Options, plan: &RacePlan) -> anyhow::Result<Vec<Line>> {
    let checks = if options.quick { 100_000 } else { 300_000 };
    let workload = |rules: usize, matching: usize| Workload { rules, matching, overrides: 0 };
    for (rules, _, _) in RULES {
        workload(rules, 3).compile()?; // a mistake is told here; below it could only panic
    }
    let build = || -> LimiterSet {
        let engine = |rules, matching| Decides::new(workload(rules, matching).compile().expect("compiled before"));
        RULES
            .iter()
            .flat_map(|(rules, one, three)| [(*one, engine(*rules, 1)), (*three, engine(*rules, 3))])
            .map(|(name, engine)| (name, Box::new(engine) as _))
            .collect()
    };
    let standings = race(&build, &Course::new(10_000, checks, 1), plan);
    let time = |name: &str| standings.of(name, 1).cpu.median();
    Ok(vec![
        Line {
            name: "1 rule matches".to_owned(),
            points: RULES.map(|(rules, one, _)| (rules as f64, time(one))).to_vec(),
        },
        Line {
            name: "3 rules match".to_owned(),
            points: RULES.map(|(rules, _, three)| (rules as f64, time(three))).to_vec(),
        },
    ])
}

fn by_threads(options: &Options) -> Vec<Line> {
    let plan = RacePlan { rounds: options.rounds, heats: 1, threads: &[1, 2] };
    let mut lines = Vec::new();
    for (keys, title) in THREADS_KEYS {
        let standings = race(&field::growing, &Course::new(keys, 500_000, 2), &plan);
        for name in [field::TOLLGATE, field::GOVERNOR] {
            let points = [1, 2].map(|threads| (threads as f64, standings.of(name, threads).throughput.median()));
            lines.push(Line { name: format!("{name}, {title}"), points: points.to_vec() });
        }
    }
    lines
}

/// Writes `docs/img/NAME.csv` and `NAME.svg`, and the figures into the report.
fn keep(name: &str, over: &str, mut plot: Plot, lines: &[Line], report: &mut BenchReport) -> anyhow::Result<()> {
    let mut csv = format!("line,{over},value\n");
    for line in lines {
        plot = plot.line(&line.name, line.points.iter().copied());
        for (x, y) in &line.points {
            let _ = writeln!(csv, "\"{}\",{x},{y:.2}", line.name);
        }
    }
    let folder = images();
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(format!("{name}.csv")), csv)?;
    std::fs::write(folder.join(format!("{name}.svg")), plot.to_svg())?;
    report.section(&format!("Growth with {over}"), &format!("Drawn in `docs/img/{name}.svg`."));
    let xs: Vec<f64> = lines.first().map(|line| line.points.iter().map(|(x, _)| *x).collect()).unwrap_or_default();
    let heads: Vec<String> = std::iter::once(over.to_owned()).chain(xs.iter().map(|x| short(*x as usize))).collect();
    let row = |line: &Line| {
        let values = line.points.iter().map(|(_, y)| format!("{y:.1}"));
        std::iter::once(line.name.clone()).chain(values).collect()
    };
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    report.table(&heads, &lines.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/img")
}
