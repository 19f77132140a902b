//! A connection's socket, of either kind, not blocking.

use std::io::{self, Read, Write};
use std::time::Duration;

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use crate::error::Error;
use crate::target::Address;

/// TCP or a socket in the file system.
#[derive(Debug)]
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Begins to connect; [`Stream::is_connected`] tells when it is done.
    pub fn open(address: &Address, registry: &Registry, token: Token) -> io::Result<Stream> {
        let both = Interest::READABLE | Interest::WRITABLE;
        match address {
            Address::Tcp(address) => {
                let mut stream = TcpStream::connect(*address)?;
                registry.register(&mut stream, token, both)?;
                Ok(Stream::Tcp(stream))
            }
            Address::Unix(path) => {
                let mut stream = UnixStream::connect(path)?;
                registry.register(&mut stream, token, both)?;
                Ok(Stream::Unix(stream))
            }
        }
    }

    /// Whether the connection stands by now. An error if it never will.
    pub fn is_connected(&self) -> io::Result<bool> {
        let peer = match self {
            Stream::Tcp(stream) => {
                stream.take_error()?.map_or(Ok(()), Err)?;
                stream.peer_addr().map(drop)
            }
            Stream::Unix(stream) => {
                stream.take_error()?.map_or(Ok(()), Err)?;
                stream.peer_addr().map(drop)
            }
        };
        match peer {
            Ok(()) => {
                if let Stream::Tcp(stream) = self {
                    stream.set_nodelay(true)?;
                }
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads what is there.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }

    /// Writes what fits.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }
}

/// Connects once and hangs up: a place where nobody listens is told before the load begins.
pub fn probe(address: &Address, timeout: Duration) -> Result<(), Error> {
    let connected = match address {
        Address::Tcp(address) => std::net::TcpStream::connect_timeout(address, timeout).map(drop),
        Address::Unix(path) => std::os::unix::net::UnixStream::connect(path).map(drop),
    };
    connected.map_err(|error| Error::connect(format!("cannot connect to {address}: {error}")))
}
