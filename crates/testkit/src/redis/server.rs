//! One server process.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tollgate_store_redis::resp::Value;

use super::Client;

/// How often a server that is starting is asked whether it is there.
const PATIENCE: Duration = Duration::from_millis(10);
const ATTEMPTS: usize = 1000;

/// A Redis server on a free port, without persistence. Killed when dropped.
pub struct Server {
    child: Child,
    port: u16,
    directory: TempDir,
}

impl Server {
    /// Starts a server with nothing in it.
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// Starts a server with more arguments, such as `["--maxmemory", "10mb"]`.
    pub fn start_with(arguments: &[&str]) -> Server {
        let directory = tempfile::tempdir().expect("a directory for the server");
        let port = free_port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(directory.path())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                panic!("redis-server is not on the PATH: script/setup installs it")
            }
            Err(error) => panic!("redis-server does not start: {error}"),
        };
        let server = Server { child, port, directory };
        server.wait();
        server
    }

    /// Waits until the server answers.
    #[expect(clippy::disallowed_methods, reason = "a process that starts tells nobody when it is done")]
    fn wait(&self) {
        for _ in 0..ATTEMPTS {
            if let Ok(mut client) = Client::connect(self.port) {
                if client.call(&["PING"]) == Value::Text("PONG".into()) {
                    return;
                }
            }
            std::thread::sleep(PATIENCE);
        }
        panic!("redis-server on port {} does not answer", self.port);
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection to it.
    pub fn client(&self) -> Client {
        Client::connect(self.port).expect("the server is there")
    }

    /// Where it keeps its files.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on at the moment.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}
