//! One Redis or Valkey process.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tollgate_core::Clock;
use tollgate_resp::RespValue;
use tollgate_store::MonotonicClock;

use super::{Flavour, RedisClient};
use crate::process::{self, Process};
use crate::wall_clock::WallClock;
use crate::{patience, ports};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many ports are tried: another process may take one first.
const PORTS: usize = 5;

/// Options of a server; by default an empty Redis without persistence.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    /// Which program.
    pub flavour: Flavour,
    /// More arguments, such as `--maxmemory`, `10mb`.
    pub arguments: Vec<String>,
    /// Whether its wall clock can be stepped: [`RedisServer::step_clock`].
    pub own_clock: bool,
    /// Whether it is a member of a cluster.
    pub in_cluster: bool,
    /// The configuration of a Sentinel, without port and directory.
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
    /// Adds arguments.
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

    /// Starts the server; `None` if another process took its port.
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
    /// Starts an empty server.
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

    /// Waits until this process answers on the port; false if it ended instead.
    fn is_up(&mut self) -> bool {
        let mut answers = false;
        patience::try_until(PATIENCE, || {
            answers = self.answers();
            answers || self.process.ended().is_some()
        });
        answers
    }

    fn answers(&self) -> bool {
        let Ok(mut client) = RedisClient::connect(self.port) else { return false };
        let Ok(RespValue::Text(info)) = client.try_call(&["INFO", "server"]) else { return false };
        let ours = format!("process_id:{}\r", self.pid());
        String::from_utf8_lossy(&info).contains(&ours)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its port for the cluster bus.
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

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// A new connection.
    pub fn client(&self) -> RedisClient {
        RedisClient::connect(self.port).expect("the server is there")
    }

    /// Its data directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Sets its wall clock this many seconds ahead of the real time, or behind; needs `own_clock`. Returns when the server
    /// has noticed: Valkey caches the time.
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

    /// Stops it with SIGSTOP: it keeps its connections and does not answer.
    pub fn stop(&self) {
        self.process.halt();
    }

    /// Resumes it.
    pub fn cont(&self) {
        self.process.signal(Signal::CONT);
    }

    /// Kills it; [`restart`](RedisServer::restart) brings it back.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on its port, with the data it has saved; by default none.
    pub fn restart(&mut self) {
        self.start_again();
        assert!(self.is_up(), "{} does not come back on port {}", self.plan.flavour.name(), self.port);
    }

    /// [`restart`](RedisServer::restart) with other arguments, without waiting until it answers.
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

/// A Sentinel rewrites its configuration: a restart uses the file of the last run.
fn sentinel_file(configuration: &str, port: u16, directory: &Path) -> std::path::PathBuf {
    let path = directory.join("sentinel.conf");
    if !path.exists() {
        let text = format!("port {port}\nbind 127.0.0.1\ndir {}\n{configuration}", directory.display());
        std::fs::write(&path, text).expect("a file for the sentinel");
    }
    path
}
