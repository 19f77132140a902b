//! One server process.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tollgate_core::Clock;
use tollgate_resp::RespValue;
use tollgate_store::MonotonicClock;

use super::{Client, Flavour};
use crate::process::{self, Process};
use crate::wall_clock::WallClock;
use crate::{patience, ports};

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many ports are tried: each is free when it is drawn, but others draw as well.
const PORTS: usize = 5;

/// What a server is to be, where it differs from an empty Redis without persistence.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    /// Which program.
    pub flavour: Flavour,
    /// More arguments, such as `--maxmemory`, `10mb`.
    pub arguments: Vec<String>,
    /// Whether its wall clock can be moved: [`RedisServer::step_clock`].
    pub own_clock: bool,
    /// Whether it is a member of a cluster.
    pub in_cluster: bool,
    /// Whether it is a Sentinel; its configuration is then in this text, but for port and directory.
    pub sentinel: Option<String>,
}

/// A server on a free port, without persistence. Killed when dropped, and when the test ends in any other way.
#[derive(Debug)]
pub struct RedisServer {
    plan: RedisOptions,
    process: Process,
    port: u16,
    bus: u16,
    clock: Option<WallClock>,
    directory: TempDir,
}

impl RedisOptions {
    /// The plan with more arguments.
    pub fn with(mut self, arguments: &[&str]) -> RedisOptions {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// Starts the server.
    pub fn start(self) -> RedisServer {
        for _ in 1..PORTS {
            if let Some(server) = self.clone().try_start() {
                return server;
            }
        }
        self.clone().try_start().unwrap_or_else(|| panic!("{} does not answer: {self:?}", self.flavour.name()))
    }

    /// Starts the server on a port that may have been taken in the meantime.
    fn try_start(self) -> Option<RedisServer> {
        let directory = process::directory();
        let clock = self.own_clock.then(|| WallClock::new(directory.path()));
        let (port, bus) = (ports::free(), if self.in_cluster { ports::free() } else { 0 });
        let process = launch(&self, port, bus, clock.as_ref(), directory.path());
        let mut server = RedisServer { plan: self, process, port, bus, clock, directory };
        server.is_up().then_some(server)
    }
}

impl RedisServer {
    /// Starts a server with nothing in it.
    pub fn start() -> RedisServer {
        RedisOptions::default().start()
    }

    /// Starts a server with more arguments, such as `["--maxmemory", "10mb"]`.
    pub fn start_with(arguments: &[&str]) -> RedisServer {
        RedisOptions::default().with(arguments).start()
    }

    /// Starts a server of this flavour.
    pub fn of(flavour: Flavour) -> RedisServer {
        RedisOptions { flavour, ..RedisOptions::default() }.start()
    }

    /// Waits until the server answers, and it is this one; false if it ended instead.
    fn is_up(&mut self) -> bool {
        let mut answers = false;
        patience::try_until(PATIENCE, || {
            answers = self.answers();
            answers || self.process.ended().is_some()
        });
        answers
    }

    fn answers(&self) -> bool {
        let Ok(mut client) = Client::connect(self.port) else { return false };
        let Ok(RespValue::Text(info)) = client.try_call(&["INFO", "server"]) else { return false };
        let ours = format!("process_id:{}\r", self.pid());
        String::from_utf8_lossy(&info).contains(&ours)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where other members of a cluster talk to it.
    pub(super) fn bus(&self) -> u16 {
        self.bus
    }

    /// Its address.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// A connection to it.
    pub fn client(&self) -> Client {
        Client::connect(self.port).expect("the server is there")
    }

    /// Where it keeps its files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Sets its wall clock this many seconds ahead of the real time, or behind; of a plan with a clock of its own.
    /// Returns when the server has noticed: Valkey looks at its clock only now and then.
    pub fn step_clock(&self, seconds: i64) {
        self.clock.as_ref().expect("a server with a clock of its own").set(seconds);
        let real = MonotonicClock::new();
        patience::until("the server notices that its clock was set", PATIENCE, || {
            let ahead = self.seconds() - (real.now().nanos() / 1_000_000_000) as i64;
            (ahead - seconds).abs() <= 1
        });
    }

    /// Its time, in seconds since 1970.
    pub fn seconds(&self) -> i64 {
        let time = self.client().succeed(&["TIME"]);
        time.array().and_then(|time| time.first()?.integer()).expect("TIME answers two numbers")
    }

    /// Halts it: it keeps its connections and says nothing.
    pub fn stop(&self) {
        self.process.halt();
    }

    /// Lets it go on.
    pub fn cont(&self) {
        self.process.signal(Signal::CONT);
    }

    /// Kills it without a word; [`restart`](RedisServer::restart) brings it back.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on its port, with what its files hold: nothing, unless it was told to save.
    pub fn restart(&mut self) {
        self.start_again();
        assert!(self.is_up(), "{} does not come back on port {}", self.plan.flavour.name(), self.port);
    }

    /// [`restart`](RedisServer::restart), with other arguments from now on, and without waiting until it answers.
    pub fn restart_with(&mut self, arguments: &[&str]) {
        self.plan.arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        self.start_again();
    }

    fn start_again(&mut self) {
        self.kill();
        self.process = launch(&self.plan, self.port, self.bus, self.clock.as_ref(), self.directory.path());
    }
}

fn launch(plan: &RedisOptions, port: u16, bus: u16, clock: Option<&WallClock>, directory: &Path) -> Process {
    let started = Process::start(&plan.flavour.program(), |command| {
        match &plan.sentinel {
            Some(configuration) => {
                command.arg(sentinel_file(configuration, port, directory)).arg("--sentinel");
            }
            None => {
                command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
                command.arg("--dir").arg(directory);
            }
        }
        if plan.in_cluster {
            command.args(["--cluster-enabled", "yes", "--cluster-port", &bus.to_string()]);
        }
        command.args(&plan.arguments).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(clock) = clock {
            clock.apply(command);
        }
    });
    started.unwrap_or_else(|error| panic!("{} does not start: {error}", plan.flavour.name()))
}

/// A Sentinel keeps what it learns in its configuration: that of its last run is the one it goes on with.
fn sentinel_file(configuration: &str, port: u16, directory: &Path) -> std::path::PathBuf {
    let path = directory.join("sentinel.conf");
    if !path.exists() {
        let text = format!("port {port}\nbind 127.0.0.1\ndir {}\n{configuration}", directory.display());
        std::fs::write(&path, text).expect("a file for the sentinel");
    }
    path
}
