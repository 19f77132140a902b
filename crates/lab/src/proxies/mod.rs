//! nginx, Caddy, HAProxy, Envoy and Traefik, each a child process on free ports that ends with the test.
//!
//! They run whole configurations with ordinary ports, as users copy them; [`ProxyOptions`] maps these ports to free ones.

mod fill;
mod kind;

pub use kind::ProxyKind;

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{self, Process};
use crate::{patience, ports};
use fill::fill;

/// How long a proxy may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many times ports are drawn: another process may take one first.
const DRAWS: usize = 5;

/// Options of a proxy.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    kind: ProxyKind,
    config: String,
    own: Vec<u16>,
    others: Vec<(u16, u16)>,
    files: Vec<(String, String)>,
}

/// A running proxy; killed when dropped.
#[derive(Debug)]
pub struct ProxyServer {
    kind: ProxyKind,
    process: Process,
    /// Its ports: in the configuration, and really.
    ports: Vec<(u16, u16)>,
    directory: TempDir,
}

impl ProxyOptions {
    /// A proxy with this configuration.
    pub fn new(kind: ProxyKind, config: &str) -> ProxyOptions {
        ProxyOptions { kind, config: config.to_owned(), own: Vec::new(), others: Vec::new(), files: Vec::new() }
    }

    /// Maps a port that it listens on to a free one.
    #[must_use]
    pub fn listens(mut self, port: u16) -> ProxyOptions {
        self.own.push(port);
        self
    }

    /// Maps the port of another server in its configuration to the real one.
    #[must_use]
    pub fn finds(mut self, port: u16, really: u16) -> ProxyOptions {
        self.others.push((port, really));
        self
    }

    /// A file beside its configuration.
    #[must_use]
    pub fn file(mut self, name: &str, text: &str) -> ProxyOptions {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Starts it, and waits until it accepts connections.
    pub fn start(&self) -> ProxyServer {
        let mut said = String::new();
        for _ in 0..DRAWS {
            match self.try_start() {
                Ok(proxy) => return proxy,
                Err(log) => said = log,
            }
        }
        panic!("{} does not start: {said}", self.kind.name())
    }

    fn try_start(&self) -> Result<ProxyServer, String> {
        let directory = process::directory();
        let own: Vec<(u16, u16)> = self.own.iter().map(|port| (*port, ports::free())).collect();
        let all: Vec<(u16, u16)> = own.iter().chain(&self.others).copied().collect();
        for (name, text) in &self.files {
            fs::write(directory.path().join(name), text).expect("a file of a proxy");
        }
        let config = directory.path().join(self.kind.config_name());
        fs::write(&config, self.kind.adapt(&fill(&self.config, &all), directory.path())).expect("a file of a proxy");
        let log = File::create(directory.path().join("log")).expect("a file for the log");
        let process = Process::start(&self.kind.program(), |command| {
            self.kind.arguments(command, &config);
            command.current_dir(directory.path()).env("HOME", directory.path());
            command.stdout(log.try_clone().expect("one more handle")).stderr(Stdio::from(log));
        });
        let process = process.unwrap_or_else(|error| panic!("{} does not start: {error}", self.kind.name()));
        let mut proxy = ProxyServer { kind: self.kind, process, ports: own, directory };
        if proxy.is_up() { Ok(proxy) } else { Err(proxy.log()) }
    }
}

impl ProxyServer {
    /// Waits until it listens; false if it ended instead.
    fn is_up(&mut self) -> bool {
        let mut listens = false;
        patience::try_until(PATIENCE, || {
            listens = self.ports.iter().all(|(_, port)| TcpStream::connect(("127.0.0.1", *port)).is_ok());
            listens || self.process.ended().is_some()
        });
        listens && self.process.ended().is_none()
    }

    /// Which proxy it is.
    pub fn kind(&self) -> ProxyKind {
        self.kind
    }

    /// The address of its first port.
    pub fn address(&self) -> SocketAddr {
        let (_, port) = self.ports.first().expect("a proxy listens somewhere");
        SocketAddr::from(([127, 0, 0, 1], *port))
    }

    /// The real port for a port of its configuration.
    pub fn port(&self, written: u16) -> u16 {
        let found = self.ports.iter().find(|(port, _)| *port == written);
        found.map(|(_, port)| *port).unwrap_or_else(|| panic!("{written} is not a port of the options"))
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Its output.
    pub fn log(&self) -> String {
        self.file("log")
    }

    /// A file that it writes beside its configuration; empty if there is none yet.
    pub fn file(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap_or_default()
    }
}
