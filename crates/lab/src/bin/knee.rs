//! A server with a knee, for `script/overload` and for trying out `tollgate measure`: `cargo run -p tollgate-lab --bin knee`

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use tollgate_lab::knee::{KneeConfig, KneeServer};

const HELP: &str = "\
Serves HTTP/1.1 on a free port: eight workers that wait for 40 ms on average, and a queue without bound. So it carries 200
requests per second. Prints its address, and runs until it is killed.

usage: knee [--workers N]
";

fn main() -> io::Result<ExitCode> {
    let mut config = KneeConfig::DEFAULT;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match (word.as_str(), words.next().and_then(|number| number.parse().ok())) {
            ("--workers", Some(workers @ 1..)) => config.workers = workers,
            ("--help", _) => return write!(io::stdout(), "{HELP}").map(|()| ExitCode::SUCCESS),
            _ => return write!(io::stderr(), "knee: cannot read {word}\n\n{HELP}").map(|()| ExitCode::from(2)),
        }
    }
    let server = KneeServer::start(config)?;
    writeln!(io::stdout(), "listening on http://{}, carries {:.0}/s", server.address(), config.capacity())?;
    loop {
        thread::park(); // until it is killed
    }
}
