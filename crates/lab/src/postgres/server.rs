//! One server: a process, its children and its files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use super::{children, program, template};
use crate::process::{self, Process};
use crate::{patience, ports};

/// How long a server may take to start, or to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many ports are tried: another process may take one first.
const PORTS: usize = 5;

/// A small server. `fsync` stays on, because tests check durability (not on the shared server); dynamic shared memory is
/// in files, which do not outlive a killed server.
const SETTINGS: [&str; 9] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=200",
    "shared_buffers=16MB",
    "max_wal_size=64MB",
    "max_wal_senders=0",
    "wal_level=minimal",
    "dynamic_shared_memory_type=mmap",
    "log_line_prefix=%m [%p] %u@%d ",
];

/// How a server shuts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Closes its connections, and writes a checkpoint.
    Fast,
    /// Stops at once; the next start recovers.
    Immediate,
}

/// An empty server on a free port. Stopped when dropped, and when the test ends in any other way.
#[derive(Debug)]
pub struct PostgresServer {
    process: Process,
    port: u16,
    settings: Vec<String>,
    databases: AtomicUsize,
    directory: TempDir,
}

impl PostgresServer {
    /// Starts an empty server.
    pub fn start() -> PostgresServer {
        PostgresServer::start_with(&[])
    }

    /// Starts a server with more settings, such as `["max_connections=10"]`.
    pub fn start_with(settings: &[&str]) -> PostgresServer {
        let directory = process::directory();
        program::hand_over(directory.path()).expect("a directory can be handed over");
        template::copy_to(&directory.path().join("data"));
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let port = ports::free();
        let process = launch(port, &settings, directory.path());
        let mut server = PostgresServer { process, port, settings, databases: AtomicUsize::new(0), directory };
        for _ in 1..PORTS {
            if server.is_up() {
                return server;
            }
            server.port = ports::free();
            server.process = launch(server.port, &server.settings, server.directory.path());
        }
        assert!(server.is_up(), "postgres does not start: {}", server.log());
        server
    }

    /// Waits until it accepts connections; false if it ended instead.
    fn is_up(&mut self) -> bool {
        let mut is_ready = false;
        patience::try_until(PATIENCE, || {
            is_ready = self.is_ready();
            is_ready || self.process.ended().is_some()
        });
        is_ready
    }

    fn is_ready(&self) -> bool {
        let pid_file = self.pid_file();
        let mut lines = pid_file.lines();
        lines.next() == Some(self.pid().to_string().as_str())
            && lines.nth(6).is_some_and(|state| state.trim() == "ready")
    }

    /// Its `postmaster.pid`: process id in the first line, shared memory in the seventh, state in the eighth.
    fn pid_file(&self) -> String {
        fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default()
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The URL of its first database, as the superuser.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://{}@127.0.0.1:{}/{database}", template::USER, self.port)
    }

    /// Creates an empty database: its URL, as the superuser.
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run_sql(&format!("CREATE DATABASE {name}"));
        self.url_of(&name)
    }

    /// Runs SQL in its first database; see [`run_sql`](super::run_sql).
    pub fn run_sql(&self, text: &str) -> String {
        super::run_sql(&self.url(), text)
    }

    /// Terminates all client connections, in every database, and returns how many there were.
    pub fn terminate_backends(&self) -> usize {
        let cut = self.run_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
        cut.lines().filter(|line| *line == "t").count()
    }

    /// The process id of the postmaster.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Its log.
    pub fn log(&self) -> String {
        fs::read_to_string(log_file(self.directory.path())).unwrap_or_default()
    }

    /// Stops it and its children with SIGSTOP: it keeps its connections and does not answer.
    pub fn stop(&self) {
        self.process.halt(); // first, so that it starts no further child
        children::signal(&children::children(self.pid()), Signal::STOP);
    }

    /// Resumes it.
    pub fn cont(&self) {
        children::signal(&children::children(self.pid()), Signal::CONT);
        self.process.signal(Signal::CONT);
    }

    /// Shuts it down, and waits until it has ended; [`restart`](PostgresServer::restart) brings it back.
    pub fn shut_down(&mut self, how: Shutdown) {
        if self.process.ended().is_some() {
            return;
        }
        self.process.signal(match how {
            Shutdown::Fast => Signal::INT,
            Shutdown::Immediate => Signal::QUIT,
        });
        assert!(self.process.wait(PATIENCE).is_some(), "postgres does not end: {}", self.log());
    }

    /// Kills it and its children; [`restart`](PostgresServer::restart) brings it back.
    pub fn kill(&mut self) {
        if self.process.ended().is_some() {
            return;
        }
        self.process.halt();
        let children = children::children(self.pid());
        children::signal(&children, Signal::KILL);
        self.process.kill();
        patience::until("the children of a killed server are gone", PATIENCE, || children::are_gone(&children));
        self.free_shared_memory();
    }

    /// Frees the shared memory segment by which two servers on the same files detect each other. It outlives a killed
    /// server, and only a restart would free it. `postmaster.pid` names it.
    fn free_shared_memory(&self) {
        let segment =
            self.pid_file().lines().nth(6).and_then(|line| line.split_whitespace().nth(1)?.parse::<u32>().ok());
        if let Some(segment) = segment {
            let _ = Command::new("ipcrm").args(["-m", &segment.to_string()]).stderr(Stdio::null()).status();
        }
    }

    /// Starts it again on its port, with what it has committed; shuts it down first if it runs.
    pub fn restart(&mut self) {
        self.shut_down(Shutdown::Fast);
        self.process = launch(self.port, &self.settings, self.directory.path());
        assert!(self.is_up(), "postgres does not come back on port {}: {}", self.port, self.log());
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.process.ended().is_none() {
            self.cont(); // a stopped process does not handle the signal to end
        }
    }
}

fn launch(port: u16, settings: &[String], directory: &Path) -> Process {
    let log = File::options().create(true).append(true).open(log_file(directory)).expect("a file for the log");
    let started = Process::start(&program::named("postgres"), |command| {
        command.arg("-D").arg(directory.join("data")).args(["-p", &port.to_string()]);
        for setting in SETTINGS.into_iter().chain(settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        program::unprivileged(command).stdout(Stdio::null()).stderr(log).current_dir("/");
    });
    started.unwrap_or_else(|error| panic!("postgres does not start: {error}")).with_graceful_stop()
}

fn log_file(directory: &Path) -> PathBuf {
    directory.join("log")
}
