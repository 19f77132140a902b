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
/// How many ports are tried: each is free when it is drawn, but others draw as well.
const PORTS: usize = 5;

/// As a real one, but small. `fsync` stays on, because what is durable is tested; memory that outlives a killed server
/// is kept in its files.
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

/// How a server is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Cuts its connections, and writes down where it stands.
    Fast,
    /// Drops everything; the next start recovers.
    Immediate,
}

/// A server on a free port, with nothing in it. Ended when dropped, and when the test ends in any other way.
#[derive(Debug)]
pub struct PostgresServer {
    process: Process,
    port: u16,
    settings: Vec<String>,
    databases: AtomicUsize,
    directory: TempDir,
}

impl PostgresServer {
    /// Starts a server with nothing in it.
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

    /// Waits until it takes connections; false if it ended instead.
    fn is_up(&mut self) -> bool {
        let mut is_ready = false;
        patience::try_until(PATIENCE, || {
            is_ready = self.is_ready();
            is_ready || self.process.ended().is_some()
        });
        is_ready
    }

    fn is_ready(&self) -> bool {
        let note = self.note();
        let mut lines = note.lines();
        lines.next() == Some(self.pid().to_string().as_str())
            && lines.nth(6).is_some_and(|state| state.trim() == "ready")
    }

    /// What it notes of itself: its number in the first line, its memory in the seventh, how it is in the eighth.
    fn note(&self) -> String {
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

    /// Cuts all connections of clients, in every database, and answers how many there were.
    pub fn terminate_backends(&self) -> usize {
        let cut = self.run_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
        cut.lines().filter(|line| *line == "t").count()
    }

    /// The process that starts all others.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Where it keeps its data.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(log_file(self.directory.path())).unwrap_or_default()
    }

    /// Halts it, with all its children: it keeps its connections and says nothing.
    pub fn stop(&self) {
        self.process.halt(); // first, so that no child is born meanwhile
        children::signal(&children::children(self.pid()), Signal::STOP);
    }

    /// Lets it go on.
    pub fn cont(&self) {
        children::signal(&children::children(self.pid()), Signal::CONT);
        self.process.signal(Signal::CONT);
    }

    /// Tells it to end, and waits until it has; [`restart`](PostgresServer::restart) brings it back.
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

    /// Kills it with all its children, without a word; [`restart`](PostgresServer::restart) brings it back.
    pub fn kill(&mut self) {
        if self.process.ended().is_some() {
            return;
        }
        self.process.halt();
        let children = children::children(self.pid());
        children::signal(&children, Signal::KILL);
        self.process.kill();
        patience::until("the children of a killed server are gone", PATIENCE, || children::are_gone(&children));
        self.give_back_memory();
    }

    /// Frees the memory by which two servers on the same files would notice each other, and that outlives a killed one:
    /// nobody would ever do it for a server that is not started again. It stands in the server's note.
    fn give_back_memory(&self) {
        let segment = self.note().lines().nth(6).and_then(|line| line.split_whitespace().nth(1)?.parse::<u32>().ok());
        if let Some(segment) = segment {
            let _ = Command::new("ipcrm").args(["-m", &segment.to_string()]).stderr(Stdio::null()).status();
        }
    }

    /// Starts it again on its port, with what it has committed; it is told to end, fast, if it has not.
    pub fn restart(&mut self) {
        self.shut_down(Shutdown::Fast);
        self.process = launch(self.port, &self.settings, self.directory.path());
        assert!(self.is_up(), "postgres does not come back on port {}: {}", self.port, self.log());
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.process.ended().is_none() {
            self.cont(); // who is halted does not hear that it is to end
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
    started.unwrap_or_else(|error| panic!("postgres does not start: {error}")).with_farewell()
}

fn log_file(directory: &Path) -> PathBuf {
    directory.join("log")
}
