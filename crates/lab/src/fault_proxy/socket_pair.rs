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

    /// Where the bytes of a direction come from.
    pub(super) fn source(&self, direction: Direction) -> &TcpStream {
        match direction {
            Direction::Requests => &self.client,
            Direction::Replies => &self.server,
        }
    }

    /// Where they go.
    pub(super) fn target(&self, direction: Direction) -> &TcpStream {
        match direction {
            Direction::Requests => &self.server,
            Direction::Replies => &self.client,
        }
    }

    /// Ends both connections with a reset. That is sent when the last thread lets go of the sockets: those who read are
    /// woken, which the other side does not notice.
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
