//! A TCP proxy between a client and a server of this machine; its faults are set while it runs.
//!
//! Threads and blocking sockets: a proxy for tests has few connections, and its timing must not depend on the runtime of
//! the code under test.

mod mode;
mod pump;
mod socket_pair;
mod state;

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

pub use mode::{Direction, LinkMode};

use crate::ports;
use socket_pair::SocketPair;
use state::ProxyState;

/// A proxy in front of one port; closes all connections when dropped.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    shared: Arc<ProxyState>,
    accepting: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// A proxy in front of `upstream`, a port of this machine. Passes everything on until a mode is set.
    pub fn start(upstream: u16) -> FaultProxy {
        let (port, listener) = loop {
            let port = ports::free();
            if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
                break (port, listener);
            }
        };
        let shared = Arc::new(ProxyState::new(upstream));
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(port, Some(listener), &shared)
        });
        FaultProxy { port, shared, accepting: Some(accepting) }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a Redis behind it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sets the mode of both directions.
    pub fn set(&self, mode: LinkMode) {
        self.shared.set(&[Direction::Requests, Direction::Replies], mode);
    }

    /// Sets the mode of one direction.
    pub fn set_only(&self, direction: Direction, mode: LinkMode) {
        self.shared.set(&[direction], mode);
    }

    /// As if the server were gone: resets all connections, and refuses new ones, until [`admit`](FaultProxy::admit).
    pub fn refuse(&self) {
        self.shared.refuse(true);
        self.nudge();
        self.shared.wait_until_listening(false);
        self.shared.abort_all();
    }

    /// Accepts connections again.
    pub fn admit(&self) {
        self.shared.refuse(false);
        self.shared.wait_until_listening(true);
    }

    /// Connections accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        self.shared.open()
    }

    /// Bytes that have arrived in a direction since the start.
    pub fn bytes(&self, direction: Direction) -> u64 {
        self.shared.bytes(direction).load(Ordering::Relaxed)
    }

    /// Wakes the thread that accepts connections.
    fn nudge(&self) {
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.close();
        self.nudge();
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
        self.shared.abort_all();
        self.shared.join_all();
    }
}

/// Accepts connections until the proxy closes; has no socket while it refuses.
fn accept(port: u16, mut listener: Option<TcpListener>, shared: &Arc<ProxyState>) {
    loop {
        let Some(listening) = &listener else {
            if !shared.wait_until_admitted() {
                return;
            }
            listener = TcpListener::bind(("127.0.0.1", port)).ok();
            shared.set_listening(listener.is_some());
            continue;
        };
        let taken = listening.accept();
        if shared.is_closed() {
            return;
        }
        if shared.refuses() {
            listener = None;
            shared.set_listening(false);
        } else if let Ok((client, _)) = taken {
            serve(client, shared);
        }
    }
}

/// Connects a client with the server; closes the connection if the server is unreachable.
fn serve(client: TcpStream, shared: &Arc<ProxyState>) {
    shared.accepted.fetch_add(1, Ordering::Relaxed);
    let upstream = TcpStream::connect(("127.0.0.1", shared.upstream));
    let (Ok(upstream), Ok(())) = (upstream, client.set_nodelay(true)) else { return };
    let _ = upstream.set_nodelay(true);
    let pair = Arc::new(SocketPair::new(client, upstream));
    shared.add(&pair);
    for direction in [Direction::Requests, Direction::Replies] {
        shared.keep(pump::start(Arc::clone(&pair), direction, Arc::clone(shared)));
    }
}
