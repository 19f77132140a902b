//! The command line.

use std::path::PathBuf;

use anyhow::{Context as _, bail};

use crate::machine::today;

/// What `--help` prints.
pub const HELP: &str = "\
Measures Tollgate beside its peers and prints ratios with their targets.

Usage: script/bench [QUESTION...] [OPTIONS]

Questions (all of them, if none is named):
  store    One GCRA bucket per check, from the &str key on, hash and clock included: Tollgate, governor,
           throttlecrab, a sharded map of strings, and a bare table of fingerprints as the floor;
           1, 100 k, 1 M and 10 M keys, on one thread and on two.
  memory   Bytes per key between 1 M and 2 M keys, peak of the resident set, growth included.
  rules    From request to charges, without a store: 10, 1,000 and 10,000 rules, 1,000,000 overrides; then 10 and
           10,000 rules for every kind of pattern (globs, suffixes, templates, networks, negations, hosts, lists);
           then one rule changed among 50,000.
  directory  Clients and overrides, a million of each: bytes per entry, time to build, to change one, to fold changes in.
  engine   Engine::decide: 1,000 rules of which one matches, three matching rules, 1,000,000 overrides.
  growth   Time per check by number of keys, rules and threads; writes docs/img/growth-*.csv and .svg.
  http     Servers over loopback: a bare hyper echo, Tollgate, throttlecrab-server (installed into target/peers
           if missing: minutes, once), and limitador-server and nginx limit_req if they are on PATH. Checks per
           second, CPU per check, latency, denials, batches, many rules, half of the peak, overload, memory.
  redis    A fleet's store: the same load straight to redis-server as a one-key script (the floor), exact, leased and
           async mode, Redis memory, the store down, a cluster; and servers on the same Redis: Tollgate,
           envoyproxy/ratelimit (built into target/peers where Go is), limitador-server if it is on PATH.
  wire     RESP, gRPC and Envoy's rate limit service over loopback, beside echo servers on the same libraries (the
           floors): Tollgate, throttlecrab-server, redis-server; envoyproxy/ratelimit and gubernator (built into
           target/peers where Go is); limitador-server and libredis_cell.so if they are on PATH or in the folder that
           TOLLGATE_PEERS names. Pipelined and not, few streams and many, and half of the peak.
  gateway  The gateway in front of an API, beside a reverse proxy of bare hyper (the floor), nginx limit_req, HAProxy with
           a stick table and Envoy with its local rate limit: requests forwarded and refused, half of the peak, 10,000
           idle connections, bodies of 1 GB.

Options:
  --quick       Fewer rounds and no 10 M keys: minutes instead of a quarter of an hour.
  --rounds N    Timed rounds per candidate and heat (default 5). Each heat builds all stores anew,
                because two stores with the same content may lie in memory differently well.
  --heats N     Heats (default 3; one at 10 M keys).
  --tollgate FILE  For http, redis, wire and gateway: measure this program instead of building one, an older one for example.
  --only PART   For redis: exact, hot, fleet, memory, servers, down or cluster; for wire: resp or grpc; may be given
                several times.
  --save        Keep the report as bench/results/DATE-QUESTIONS.md.
  --out FILE    Keep the report as FILE.
  --help        Print this.

How to read it: times are CPU time of the measured thread, and throughput leaves out the time in which a thread
was ready and had no core, so that other processes do not count; \"by the wall\" has it in. Figures are medians, and
± is the distance between the quartiles. Candidates take turns (A B C A B C ...), ratios are taken round by round.
A round in which a thread waited for its core more than a tenth of the time is counted as noisy, and stays in.
A shared machine still shows through caches and memory: repeat what surprises you.
";

/// The command.
#[derive(Debug)]
pub enum Command {
    /// Print the help.
    Help,
    /// Measure.
    Run(Options),
    /// In a child process: fill one store and print how its memory grows.
    Fill(String),
}

/// One benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// Time per check of a bare store.
    Store,
    /// Bytes per key.
    Memory,
    /// From request to charges.
    Rules,
    /// A million clients and overrides.
    Directory,
    /// From request to decision.
    Engine,
    /// Growth with keys, rules and threads.
    Growth,
    /// Servers over loopback.
    Http,
    /// The store of a fleet.
    Redis,
    /// RESP and gRPC over loopback.
    Wire,
    /// Proxies with limits in front of an API.
    Gateway,
}

const QUESTIONS: [(&str, Benchmark); 10] = [
    ("store", Benchmark::Store),
    ("memory", Benchmark::Memory),
    ("rules", Benchmark::Rules),
    ("directory", Benchmark::Directory),
    ("engine", Benchmark::Engine),
    ("growth", Benchmark::Growth),
    ("http", Benchmark::Http),
    ("redis", Benchmark::Redis),
    ("wire", Benchmark::Wire),
    ("gateway", Benchmark::Gateway),
];

/// What to measure, and how thoroughly.
#[derive(Debug, Default)]
pub struct Options {
    /// In the order they are answered.
    pub questions: Vec<Benchmark>,
    /// Fewer rounds, smaller sizes.
    pub quick: bool,
    /// Timed rounds per heat.
    pub rounds: usize,
    /// How often all stores are built anew.
    pub heats: usize,
    /// The server to be measured, instead of the one built from here.
    pub tollgate: Option<PathBuf>,
    /// Parts of a question to be answered alone; all of them, if none is named.
    pub only: Vec<String>,
    save: bool,
    out: Option<PathBuf>,
}

/// Reads the arguments after the program's name.
pub fn parse(arguments: impl Iterator<Item = String>) -> anyhow::Result<Command> {
    let mut options = Options::default();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value; see --help"));
        match argument.as_str() {
            "--help" | "-h" | "help" => return Ok(Command::Help),
            "--fill" => return Ok(Command::Fill(value()?)),
            "--quick" => options.quick = true,
            "--save" => options.save = true,
            "--rounds" => options.rounds = number(&value()?)?,
            "--heats" => options.heats = number(&value()?)?,
            "--tollgate" => options.tollgate = Some(PathBuf::from(value()?)),
            "--only" => options.only.push(value()?),
            "--out" => options.out = Some(PathBuf::from(value()?)),
            "all" => options.questions.extend(QUESTIONS.map(|(_, question)| question)),
            name => match QUESTIONS.iter().find(|(known, _)| *known == name) {
                Some((_, question)) => options.questions.push(*question),
                None => bail!("no question or option {name:?}; see --help"),
            },
        }
    }
    if options.questions.is_empty() {
        options.questions.extend(QUESTIONS.map(|(_, question)| question));
    }
    let (rounds, heats) = if options.quick { (3, 2) } else { (5, 3) };
    options.rounds = if options.rounds == 0 { rounds } else { options.rounds };
    options.heats = if options.heats == 0 { heats } else { options.heats };
    Ok(Command::Run(options))
}

fn number(text: &str) -> anyhow::Result<usize> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => bail!("{text:?} is not a number above 0"),
    }
}

impl Options {
    /// The questions by name.
    pub fn title(&self) -> String {
        let names: Vec<&str> =
            QUESTIONS.iter().filter(|(_, question)| self.questions.contains(question)).map(|(name, _)| *name).collect();
        match names.len() == QUESTIONS.len() {
            true => "all".to_owned(),
            false => names.join("-"),
        }
    }

    /// True if this part of a question is to be answered.
    pub fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|named| named == part)
    }

    /// Where the report is kept, if it is.
    pub fn file(&self) -> Option<PathBuf> {
        let saved = || {
            let name = format!("{}-{}.md", today(), self.title());
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("results").join(name)
        };
        self.out.clone().or_else(|| self.save.then(saved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        match parse(line.split_whitespace().map(str::to_owned)) {
            Ok(Command::Run(options)) => options,
            other => panic!("{line:?} reads as {other:?}"),
        }
    }

    #[test]
    fn everything_is_asked_unless_something_is_named() {
        assert_eq!(options("").title(), "all");
        assert_eq!(options("store --rounds 7").questions, [Benchmark::Store]);
        assert_eq!(options("memory store").title(), "store-memory");
    }

    #[test]
    fn a_wrong_word_is_refused() {
        assert!(parse(["stroe".to_owned()].into_iter()).is_err());
        assert!(parse(["--rounds".to_owned(), "0".to_owned()].into_iter()).is_err());
    }
}
