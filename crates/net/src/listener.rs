//! A bound TCP address or Unix domain socket.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::{Address, Stream};

/// Connections that may wait to be accepted. The kernel caps it.
const BACKLOG: i32 = 4096;

/// A bound address.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix domain socket, and its file, which is removed with it.
    Unix(UnixListener, SocketFile),
}

impl Listener {
    /// Binds the address; the file of a Unix domain socket gets `mode`, if any.
    pub fn bind(address: &Address, mode: Option<u32>) -> Result<Listener> {
        match address {
            Address::Tcp(address) => {
                let bind = || -> io::Result<TcpListener> {
                    let socket = Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
                    socket.set_reuse_address(true)?; // or a restart fails while old connections are in TIME_WAIT
                    socket.set_nonblocking(true)?;
                    socket.bind(&(*address).into())?;
                    socket.listen(BACKLOG)?;
                    TcpListener::from_std(socket.into())
                };
                bind().map(Listener::Tcp).with_context(|| format!("cannot listen on {address}"))
            }
            Address::Unix(path) => {
                remove_stale(path)?;
                let listener =
                    UnixListener::bind(path).with_context(|| format!("cannot listen on unix:{}", path.display()))?;
                let file = SocketFile::of(path)?;
                if let Some(mode) = mode {
                    fs::set_permissions(path, fs::Permissions::from_mode(mode))
                        .with_context(|| format!("cannot give unix:{} the mode {mode:03o}", path.display()))?;
                }
                Ok(Listener::Unix(listener, file))
            }
        }
    }

    /// The bound address, with the port that the system picked for port 0.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Listener::Tcp(listener) => Ok(Address::Tcp(listener.local_addr()?)),
            Listener::Unix(_, file) => Ok(Address::Unix(file.path.clone())),
        }
    }

    /// Accepts the next connection; with its address unless it is a Unix domain socket.
    pub async fn accept(&self) -> io::Result<(Stream, Option<IpAddr>)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok(tcp(stream, peer))
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok((Stream::Unix(stream), None))
            }
        }
    }

    /// Stops listening and returns the connections still in the backlog: the kernel has completed handshakes that the
    /// runtime has not seen yet, and closing the socket would reset them.
    pub fn close(self) -> Vec<(Stream, Option<IpAddr>)> {
        let waiting = |next: &mut dyn FnMut() -> io::Result<(Stream, Option<IpAddr>)>| {
            (0..BACKLOG).map_while(|_| next().ok()).collect()
        };
        match self {
            Listener::Tcp(listener) => {
                let Ok(listener) = listener.into_std() else { return Vec::new() };
                waiting(&mut || {
                    let (stream, peer) = listener.accept()?;
                    stream.set_nonblocking(true)?;
                    Ok(tcp(TcpStream::from_std(stream)?, peer))
                })
            }
            Listener::Unix(listener, _file) => {
                let Ok(listener) = listener.into_std() else { return Vec::new() };
                waiting(&mut || {
                    let (stream, _) = listener.accept()?;
                    stream.set_nonblocking(true)?;
                    Ok((Stream::Unix(UnixStream::from_std(stream)?), None))
                })
            }
        }
    }
}

fn tcp(stream: TcpStream, peer: SocketAddr) -> (Stream, Option<IpAddr>) {
    let _ = stream.set_nodelay(true); // fails only if the client is gone
    (Stream::Tcp(stream), Some(peer.ip().to_canonical()))
}

/// The file of a Unix domain socket, removed with the listener, unless another process has replaced it: a new server
/// may already listen there.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl SocketFile {
    fn of(path: &Path) -> Result<SocketFile> {
        let identity = identity(path).with_context(|| format!("cannot look at unix:{}", path.display()))?;
        Ok(SocketFile { path: path.to_owned(), identity })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|present| present == self.identity) {
            let _ = fs::remove_file(&self.path); // best effort
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Removes a socket that a killed process left behind; not one with a listener, and no other file.
fn remove_stale(path: &Path) -> Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        bail!("cannot listen on unix:{}: there is a file of that name that is no socket", path.display());
    }
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        bail!("cannot listen on unix:{}: another process listens there", path.display());
    }
    fs::remove_file(path).with_context(|| format!("cannot remove the stale socket {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_that_replaced_this_one_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let bind = || Listener::bind(&Address::Unix(path.clone()), None).unwrap();
        let first = bind();
        fs::remove_file(&path).unwrap();
        let second = bind();
        drop(first);
        assert!(path.exists(), "another listener is bound there");
        drop(second);
        assert!(!path.exists());
    }
}
