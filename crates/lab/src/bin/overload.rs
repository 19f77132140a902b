//! Measures a gateway under overload: `cargo run -p tollgate-lab --bin overload -- --tollgate PATH`

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tollgate_lab::overload::{self, OverloadPlan, goals, plots, table};

const HELP: &str = "\
Offers up to ten times what a server carries, through a gateway with shedding and without, and compares.

usage: overload --tollgate PATH [--seconds N] [--picture FILE]

  --tollgate PATH  the gateway
  --seconds N      measured time of a row; 30 without it
  --picture FILE   where the plot goes, as SVG
  --help           this text

Prints tables as Markdown; progress goes to standard error. Exit code: 0 if all goals are reached, 1 if one is missed, 2 if
an argument is wrong.
";

fn main() -> io::Result<ExitCode> {
    let (mut tollgate, mut picture, mut seconds) = (None, None, 30);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next();
        match (word.as_str(), value) {
            ("--tollgate", Some(path)) => tollgate = Some(PathBuf::from(path)),
            ("--picture", Some(path)) => picture = Some(PathBuf::from(path)),
            ("--seconds", Some(number)) if number.parse::<u64>().is_ok_and(|number| number > 0) => {
                seconds = number.parse().unwrap_or(seconds);
            }
            ("--help", _) => return write!(io::stdout(), "{HELP}").map(|()| ExitCode::SUCCESS),
            _ => return write!(io::stderr(), "overload: cannot read {word}\n\n{HELP}").map(|()| ExitCode::from(2)),
        }
    }
    let Some(tollgate) = tollgate else {
        return write!(io::stderr(), "overload: --tollgate is missing\n\n{HELP}").map(|()| ExitCode::from(2));
    };
    let knee = std::env::current_exe()?.with_file_name("knee");
    run(&OverloadPlan { tollgate, knee, measured: Duration::from_secs(seconds) }, picture.as_deref())
}

fn run(plan: &OverloadPlan, picture: Option<&std::path::Path>) -> io::Result<ExitCode> {
    let (peak, rows) = overload::run(plan, &mut |line| {
        let _ = writeln!(io::stderr(), "{line}"); // progress that cannot be shown is no failure
    })?;
    let (goals, is_reached) = goals(&peak, &rows);
    let mut out = io::stdout().lock();
    writeln!(out, "Peak without shedding: {:.0}/s offered, {}.\n", peak.rate, peak.outcome)?;
    writeln!(out, "{}\n{goals}", table(&peak, &rows))?;
    if let Some(picture) = picture {
        std::fs::write(picture, plots(&peak, &rows))?;
    }
    Ok(if is_reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
