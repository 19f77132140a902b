//! A server process: start, wait, measure, stop.

use std::fs::{File, read_to_string};
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::cores::{CoreRole, Cores};
use crate::process;

/// How long a server may take to listen, with ten thousand rules to read.
const START: Duration = Duration::from_secs(20);
/// How often this is checked.
const LOOK: Duration = Duration::from_millis(20);

/// How a server reports that it listens, and where.
#[derive(Clone, Copy, Debug)]
pub enum Ready {
    /// It prints a line with `http://ADDRESS`.
    Says,
    /// Its address is given, and connections succeed.
    Listens(SocketAddr),
}

/// A running server; stopped when dropped.
#[derive(Debug)]
pub struct PeerServer {
    child: Child,
    address: String,
    /// Resident bytes just after it began to listen.
    pub resident_at_start: u64,
}

impl PeerServer {
    /// Starts it on the core of its role and waits until it listens. What it says on standard error goes to `log`.
    pub fn start(
        mut command: Command,
        ready: Ready,
        (cores, role): (&Cores, CoreRole),
        log: &Path,
    ) -> anyhow::Result<PeerServer> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(log)?);
        let mut child = cores.on(role, || command.spawn())?;
        let lines = child.stdout.take().map(follow).context("standard output is a pipe")?;
        let mut server = PeerServer { child, address: String::new(), resident_at_start: 0 };
        server.address = match server.wait(ready, &lines) {
            Ok(address) => address,
            Err(error) => bail!("{error}: {}", first_line(log)),
        };
        server.resident_at_start = server.resident();
        Ok(server)
    }

    /// `127.0.0.1:8080`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU nanoseconds of all its threads so far.
    pub fn cpu(&self) -> u64 {
        process::cpu(self.child.id())
    }

    /// Resident bytes now.
    pub fn resident(&self) -> u64 {
        process::resident(self.child.id())
    }

    fn wait(&mut self, ready: Ready, lines: &Receiver<String>) -> anyhow::Result<String> {
        for _ in 0..START.as_millis() / LOOK.as_millis() {
            if let Some(status) = self.child.try_wait()? {
                bail!("ended with {status}");
            }
            match (lines.recv_timeout(LOOK), ready) {
                (Ok(line), Ready::Says) => {
                    if let Some(address) = address_in(&line) {
                        return Ok(address);
                    }
                }
                (_, Ready::Listens(address)) if TcpStream::connect_timeout(&address, LOOK).is_ok() => {
                    return Ok(address.to_string());
                }
                // The pipe is closed: sleep instead of spinning.
                (Err(RecvTimeoutError::Disconnected), _) => std::thread::park_timeout(LOOK),
                _ => {}
            }
        }
        bail!("does not listen after {} s", START.as_secs())
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended by itself
        let _ = self.child.wait();
    }
}

/// The lines of a pipe, read to its end so that the writer never blocks.
fn follow(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let _ = sender.send(line); // the receiver is dropped once the server is ready
        }
    });
    receiver
}

/// A port that was free a moment ago, for those who cannot choose one themselves.
pub fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn address_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("http://")?;
    let end = rest.find(|letter: char| letter.is_whitespace() || matches!(letter, '/' | ',')).unwrap_or(rest.len());
    rest.get(..end).filter(|address| address.parse::<SocketAddr>().is_ok()).map(str::to_owned)
}

fn first_line(log: &Path) -> String {
    let text = read_to_string(log).unwrap_or_default();
    text.lines().next().unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_what_a_server_says() {
        let found = |line: &str| address_in(line);
        assert_eq!(found("listening on http://127.0.0.1:8080").as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(found("try: curl http://127.0.0.1:80/v1/check -d x").as_deref(), Some("127.0.0.1:80"));
        let gateway = "gateway on http://127.0.0.1:8000, to http://127.0.0.1:3000";
        assert_eq!(found(gateway).as_deref(), Some("127.0.0.1:8000"));
        assert_eq!(found("see http://example.com/"), None);
        assert_eq!(found("starting"), None);
    }
}
