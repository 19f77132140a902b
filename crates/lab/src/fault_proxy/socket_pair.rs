//! The two sockets of one connection.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use super::Direction;

/// A client and the server it talks to.
#[derive(Debug)]
pub(super) struct SocketPair {
    client: TcpStream,
    server: TcpStream,
    is_over: AtomicBool,
}

impl SocketPair {
    pub(super) fn new(client: TcpStream, server: TcpStream) -> SocketPair {
        SocketPair { client, server, is_over: AtomicBool::new(false) }
    }

    /// The socket that a direction reads from.
    pub(super) fn source(&self, direction: Direction) -> &TcpStream {
        match direction {
            Direction::Requests => &self.client,
            Direction::Replies => &self.server,
        }
    }

    /// The socket that a direction writes to.
    pub(super) fn target(&self, direction: Direction) -> &TcpStream {
        match direction {
            Direction::Requests => &self.server,
            Direction::Replies => &self.client,
        }
    }

    /// Resets both connections. The reset is sent when the last thread drops the sockets: shutting down the read half wakes
    /// the reading threads, and the peer does not notice.
    pub(super) fn abort(&self) {
        self.is_over.store(true, Ordering::Release);
        for socket in [&self.client, &self.server] {
            let _ = set_socket_linger(socket, Some(Duration::ZERO));
            let _ = socket.shutdown(Shutdown::Read);
        }
    }

    /// Closes both connections.
    pub(super) fn close(&self) {
        self.is_over.store(true, Ordering::Release);
        for socket in [&self.client, &self.server] {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}
