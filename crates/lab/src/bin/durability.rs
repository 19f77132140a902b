//! Kills a node under load and measures what is lost: `cargo run -p tollgate-lab --bin durability -- --tollgate PATH`

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tollgate_lab::durability::{DurableNode, KillCost};

const HELP: &str = "\
Kills a node under load with SIGKILL, restarts it, and compares the usage of quotas with what callers were told.

usage: durability --tollgate PATH [--kills N]

  --tollgate PATH  the binary to test
  --kills N        how often; 100 without it
  --help           this text

Prints a table as Markdown. Exit code: 0 if no kill lost more than a second of usage and SIGTERM lost nothing, 1 if one
did, 2 if an argument is wrong.
";

/// What a kill may cost.
const LOST_MAX: Duration = Duration::from_secs(1);

fn main() -> io::Result<ExitCode> {
    let (mut tollgate, mut kills) = (None, 100_u64);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next();
        match (word.as_str(), value) {
            ("--tollgate", Some(path)) => tollgate = Some(PathBuf::from(path)),
            ("--kills", Some(number)) if number.parse::<u64>().is_ok() => kills = number.parse().unwrap_or(kills),
            ("--help", _) => return write!(io::stdout(), "{HELP}").map(|()| ExitCode::SUCCESS),
            _ => return write!(io::stderr(), "durability: cannot read {word}\n\n{HELP}").map(|()| ExitCode::from(2)),
        }
    }
    match tollgate {
        Some(tollgate) => run(&tollgate, kills, &mut io::stdout().lock()),
        None => write!(io::stderr(), "durability: --tollgate is missing\n\n{HELP}").map(|()| ExitCode::from(2)),
    }
}

fn run(tollgate: &std::path::Path, kills: u64, out: &mut impl Write) -> io::Result<ExitCode> {
    let mut node = DurableNode::start(tollgate, &[])?;
    let mut costs = Vec::new();
    writeln!(out, "| kill | load before it, ms | charges acknowledged | units lost | time lost, ms |")?;
    writeln!(out, "|--:|--:|--:|--:|--:|")?;
    for number in 1..=kills {
        // Spread over the phases of a flush: 300 to 1,299 ms.
        let load = Duration::from_millis(300 + number * 617 % 1000);
        let cost = node.kill(load)?;
        let KillCost { acknowledged, lost, lost_time, .. } = cost;
        writeln!(out, "| {number} | {} | {acknowledged} | {lost} | {} |", load.as_millis(), lost_time.as_millis())?;
        out.flush()?;
        costs.push(cost);
    }
    let ended = node.terminate(Duration::from_millis(700))?;
    let mut times: Vec<Duration> = costs.iter().map(|cost| cost.lost_time).collect();
    times.sort();
    let (median, most) = (times.get(times.len() / 2).copied(), times.last().copied());
    let ms = |time: Option<Duration>| time.unwrap_or_default().as_millis();
    let all: u64 = costs.iter().map(|cost| cost.acknowledged).sum();
    writeln!(
        out,
        "\n{kills} kills, {all} charges acknowledged: a kill cost {} ms of usage in the median and {} ms at most \
         (allowed: {}). SIGTERM after {} charges: {} lost.",
        ms(median),
        ms(most),
        LOST_MAX.as_millis(),
        ended.acknowledged,
        ended.lost,
    )?;
    let is_kept = most.is_none_or(|most| most <= LOST_MAX) && ended.lost == 0;
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
