//! A node of the fleet: `tollgate serve` as a process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use super::Caller;
use crate::process::Process;
use crate::wall_clock::WallClock;

/// How long a node may take to end after SIGTERM: it completes requests and returns its leases.
const DRAIN: Duration = Duration::from_secs(15);

/// Options of a node.
#[derive(Debug)]
pub struct NodeOptions<'a> {
    /// The binary.
    pub tollgate: &'a Path,
    /// The directory for its files.
    pub directory: &'a Path,
    /// Its name.
    pub name: &'a str,
    /// The port of its HTTP listener.
    pub port: u16,
    /// `--store`.
    pub store: &'a str,
    /// More arguments.
    pub arguments: &'a [String],
    /// Its wall clock, if it has its own.
    pub clock: Option<&'a WallClock>,
}

/// A running node.
#[derive(Debug)]
pub struct TestNode {
    /// Its name, also in its log.
    pub name: String,
    /// The address of its HTTP listener.
    pub at: SocketAddr,
    /// The path of its decision log.
    pub log: PathBuf,
    admin: SocketAddr,
    process: Process,
    errors: PathBuf,
}

impl TestNode {
    /// Starts it, and waits until it listens.
    pub fn start(start: &NodeOptions<'_>) -> TestNode {
        let file = |ending: &str| start.directory.join(format!("{}.{ending}", start.name));
        let (log, errors) = (file("decisions"), file("log"));
        let mut process = Process::start(start.tollgate, |command| {
            command.arg("serve").args(["--admin", "127.0.0.1:0", "--debug-keys", "--log-level", "info"]);
            command.args(["--http", &format!("127.0.0.1:{}", start.port), "--node", start.name]);
            command.args(["--max-connections-per-address", "100000", "--drain-delay", "0s"]);
            // Do not use a database of the user who runs the test.
            if !start.arguments.iter().any(|argument| argument == "--db") {
                command.args(["--db", "off"]);
            }
            command.arg("--state-dir").arg(file("state"));
            if start.store != "memory" {
                command.args(["--store", start.store]);
            }
            command.arg("--rules").arg(start.directory.join("rules.yaml")).arg("--decision-log").arg(&log);
            command.args(start.arguments);
            command.stdout(Stdio::piped()).stderr(File::create(&errors).expect("a file for the log"));
            if let Some(clock) = start.clock {
                clock.apply(command);
            }
        })
        .unwrap_or_else(|error| panic!("{} does not start: {error}", start.tollgate.display()));
        let lines = BufReader::new(process.stdout().expect("a pipe")).lines().map_while(Result::ok);
        let printed: Vec<String> = lines.take_while(|line| !line.starts_with("try: ")).collect();
        let address = |words: &str| -> SocketAddr {
            let line = printed.iter().find_map(|line| line.strip_prefix(words));
            let address = line.and_then(|line| line.split([',', '/']).find_map(|part| part.parse().ok()));
            let complaint = || std::fs::read_to_string(&errors).unwrap_or_default();
            address.unwrap_or_else(|| panic!("{} did not start: {printed:?}\n{}", start.name, complaint()))
        };
        let (at, admin) = (address("listening on http://"), address("admin on http://"));
        TestNode { name: start.name.to_owned(), at, log, admin, process, errors }
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends SIGTERM; returns whether it shut down cleanly.
    pub fn end(&mut self) -> bool {
        if self.process.ended().is_some() {
            return false;
        }
        self.process.signal(Signal::TERM);
        self.process.wait(DRAIN).is_some_and(|status| status.success())
    }

    /// Whether it runs.
    pub fn is_alive(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// A metric, summed over all labels; zero if there is none.
    pub fn metric(&self, name: &str) -> u64 {
        self.metric_lines(name).iter().map(|(_, value)| value).sum()
    }

    /// The non-zero values of a metric, by the value of a label.
    pub fn metric_by_label(&self, name: &str, label: &str) -> BTreeMap<String, u64> {
        let start = format!("{label}=\"");
        let class = |line: &String| Some(line.split_once(&start)?.1.split_once('"')?.0.to_owned());
        let figures = self.metric_lines(name).into_iter().filter(|(_, value)| *value > 0);
        figures.filter_map(|(line, value)| Some((class(&line)?, value))).collect()
    }

    /// The lines of a metric, and their values.
    fn metric_lines(&self, name: &str) -> Vec<(String, u64)> {
        let page = Caller::connect(self.admin).and_then(|mut caller| caller.get("/metrics")).unwrap_or_default();
        let lines = page.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.trim_start_matches("_total").starts_with(['{', ' ']))
        });
        let value = |line: &str| Some(line.rsplit(' ').next()?.parse::<f64>().ok()? as u64);
        lines.filter_map(|line| Some((line.to_owned(), value(line)?))).collect()
    }

    /// A page of the admin API, or its refusal; empty without an answer.
    pub fn admin_get(&self, path: &str, token: &str) -> String {
        let fields = format!("Authorization: Bearer {token}\r\n");
        Caller::connect(self.admin).and_then(|mut caller| caller.get_with(path, &fields)).unwrap_or_default()
    }

    /// Whether `/ready` reports ready.
    pub fn is_ready(&self) -> bool {
        Caller::connect(self.at)
            .and_then(|mut caller| caller.get("/ready"))
            .is_ok_and(|page| !page.contains("not ready"))
    }

    /// Resident memory, in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    }

    /// The number of its open files and sockets.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.process.id())).map_or(0, Iterator::count)
    }

    /// Its log.
    pub fn server_log(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }
}
