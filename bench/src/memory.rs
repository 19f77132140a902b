//! Memory per key, at its worst between one and two million keys.
//!
//! Every candidate is filled in a process of its own, which reports the peak of its resident set as it goes: that
//! counts everything, the old table beside the new one while it grows and what the allocator keeps back.

use anyhow::{bail, ensure};

use crate::keys;
use crate::peers::{FloorTable, Governor, KeyedLimiter, ShardedMap, Throttlecrab, Tollgate, sliding_counter};
use crate::report::{BenchReport, Bound, progress, short};
use crate::resident::{measure_child, peak};

const FROM: usize = 1_000_000;
const TO: usize = 2_000_000;
/// How often the resident set is read.
const STEP: usize = 10_000;
/// How often the table has a row.
const ROW: usize = 100_000;

/// Name on the command line, name in the table, and what the project asks of itself.
const CANDIDATES: [(&str, &str, Option<f64>); 6] = [
    ("gcra", "Tollgate, GCRA", Some(64.0)),
    ("counter", "Tollgate, sliding counter", Some(96.0)),
    ("governor", "governor", None),
    ("throttlecrab", "throttlecrab", None),
    ("sharded", "sharded map", None),
    ("floor", "floor", None),
];

/// One reading of a child: at `keys` keys the peak was `resident` bytes above the start, of which the store itself
/// knew `known`.
#[derive(Clone, Copy, Debug)]
struct Reading {
    keys: usize,
    resident: usize,
    known: usize,
}

/// Fills every candidate in a process of its own.
pub fn run(report: &mut BenchReport) -> anyhow::Result<()> {
    report.section(
        "Bytes per key",
        "Peak of the resident set above that of the empty process, per key, the worst of each 100 k keys; read every \
         10 k keys in a process of its own. In brackets what the store itself counts.",
    );
    let all: Vec<Vec<Reading>> = CANDIDATES.iter().map(|(name, _, _)| measure(name)).collect::<Result<_, _>>()?;
    let mut heads = vec!["keys"];
    heads.extend(CANDIDATES.map(|(_, title, _)| title));
    let cell = |readings: &Vec<Reading>, end: usize| {
        let within = readings.iter().filter(|reading| reading.keys > end - ROW && reading.keys <= end);
        let known = readings.iter().find(|reading| reading.keys == end).map_or(0, |reading| reading.known);
        let worst = worst(within);
        if known > 0 { format!("{worst:.1} ({:.1})", known as f64 / end as f64) } else { format!("{worst:.1}") }
    };
    let rows: Vec<Vec<String>> = (FROM..=TO)
        .step_by(ROW)
        .map(|end| std::iter::once(short(end)).chain(all.iter().map(|readings| cell(readings, end))).collect())
        .collect();
    report.table(&heads, &rows);
    for ((_, title, most), readings) in CANDIDATES.iter().zip(&all) {
        if let Some(most) = most {
            let worst = worst(readings.iter().filter(|reading| reading.keys >= FROM));
            report.number(
                &format!("bytes per key at the worst, 1 M to 2 M keys, {title}"),
                Bound::AtMost(*most),
                worst,
            );
        }
    }
    Ok(())
}

fn worst<'a>(readings: impl Iterator<Item = &'a Reading>) -> f64 {
    readings.map(|reading| reading.resident as f64 / reading.keys as f64).fold(0.0, f64::max)
}

fn measure(name: &str) -> anyhow::Result<Vec<Reading>> {
    progress(&format!("  filling {name}"));
    measure_child(name)?.lines().map(reading).collect()
}

fn reading(line: &str) -> anyhow::Result<Reading> {
    let numbers: Vec<usize> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    match *numbers.as_slice() {
        [keys, resident, known] => Ok(Reading { keys, resident, known }),
        _ => bail!("not a reading: {line:?}"),
    }
}

/// Whether there is a candidate of this name.
pub fn has(name: &str) -> bool {
    CANDIDATES.iter().any(|(known, _, _)| *known == name)
}

/// In the child: fills one candidate and prints a line per reading. `start` is the peak before.
pub fn fill(name: &str, start: usize) -> anyhow::Result<()> {
    match name {
        "gcra" => fill_up(&Tollgate::new(), start, |peer| peer.stats().bytes),
        "counter" => fill_up(&sliding_counter(), start, |peer| peer.stats().bytes),
        "governor" => fill_up(&Governor::new(), start, |_| 0),
        "throttlecrab" => fill_up(&Throttlecrab::new(), start, |_| 0),
        "sharded" => fill_up(&ShardedMap::new(), start, |_| 0),
        "floor" => fill_up(&FloorTable::new(), start, |_| 0),
        _ => bail!("no candidate {name:?}"),
    }
}

fn fill_up<P: KeyedLimiter>(peer: &P, start: usize, known: impl Fn(&P) -> usize) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut hand = P::Hand::default();
    let mut out = std::io::stdout().lock();
    for number in 1..=TO {
        ensure!(peer.check(&mut hand, &keys::key(number)), "a fresh key passes");
        if number % STEP == 0 {
            writeln!(out, "{number} {} {}", peak()?.saturating_sub(start), known(peer))?;
        }
    }
    Ok(())
}
