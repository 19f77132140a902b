//! A non-blocking socket: TCP or Unix domain.

use std::io::{self, Read, Write};
use std::time::Duration;

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use crate::error::LoadError;
use crate::target::TargetAddress;

/// The socket of a connection.
#[derive(Debug)]
pub enum ClientSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl ClientSocket {
    /// Starts to connect; [`ClientSocket::is_connected`] tells when it is done.
    pub fn open(address: &TargetAddress, registry: &Registry, token: Token) -> io::Result<ClientSocket> {
        let both = Interest::READABLE | Interest::WRITABLE;
        match address {
            TargetAddress::Tcp(address) => {
                let mut stream = TcpStream::connect(*address)?;
                registry.register(&mut stream, token, both)?;
                Ok(ClientSocket::Tcp(stream))
            }
            TargetAddress::Unix(path) => {
                let mut stream = UnixStream::connect(path)?;
                registry.register(&mut stream, token, both)?;
                Ok(ClientSocket::Unix(stream))
            }
        }
    }

    /// True if the connection is established; an error if it failed.
    pub fn is_connected(&self) -> io::Result<bool> {
        let peer = match self {
            ClientSocket::Tcp(stream) => {
                stream.take_error()?.map_or(Ok(()), Err)?;
                stream.peer_addr().map(drop)
            }
            ClientSocket::Unix(stream) => {
                stream.take_error()?.map_or(Ok(()), Err)?;
                stream.peer_addr().map(drop)
            }
        };
        match peer {
            Ok(()) => {
                if let ClientSocket::Tcp(stream) = self {
                    stream.set_nodelay(true)?;
                }
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads available bytes.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            ClientSocket::Tcp(stream) => stream.read(buffer),
            ClientSocket::Unix(stream) => stream.read(buffer),
        }
    }

    /// Writes as many bytes as fit.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ClientSocket::Tcp(stream) => stream.write(bytes),
            ClientSocket::Unix(stream) => stream.write(bytes),
        }
    }
}

/// Connects once and closes: a target that does not listen is reported before the run starts.
pub fn probe(address: &TargetAddress, timeout: Duration) -> Result<(), LoadError> {
    let connected = match address {
        TargetAddress::Tcp(address) => std::net::TcpStream::connect_timeout(address, timeout).map(drop),
        TargetAddress::Unix(path) => std::os::unix::net::UnixStream::connect(path).map(drop),
    };
    connected.map_err(|error| LoadError::connect(format!("cannot connect to {address}: {error}")))
}
