//! A byte stream over TCP, a Unix domain socket or TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::PeerCertificate;

/// How long, and how much, is read after the last response.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 << 10;

/// An accepted connection.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix domain socket.
    Unix(UnixStream),
    /// TLS over either.
    Tls(Box<TlsStream<Stream>>),
}

impl Stream {
    /// The names of the client certificate; `None` without TLS, or without one.
    pub fn client_certificate(&self) -> Option<PeerCertificate> {
        match self {
            Stream::Tls(stream) => {
                stream.get_ref().1.peer_certificates().and_then(<[_]>::first).map(PeerCertificate::of)
            }
            Stream::Tcp(_) | Stream::Unix(_) => None,
        }
    }

    /// Closes the sending side, and reads what is still in transit: closing with unread bytes resets the connection, and
    /// the client may lose the last response.
    pub async fn linger(mut self) {
        let drained = async {
            self.shutdown().await?;
            let mut rest = [0; 4096];
            let mut read = 0;
            while read < LINGER_BYTES {
                match self.read(&mut rest).await? {
                    0 => break,
                    some => read += some,
                }
            }
            io::Result::Ok(())
        };
        let _ = timeout(LINGER, drained).await; // best effort
    }
}

macro_rules! on {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => $call,
            Stream::Unix($stream) => $call,
            Stream::Tls($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        on!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

/// A connection with bytes put back in front: they are read first.
#[derive(Debug)]
pub struct Rewound {
    read: Vec<u8>,
    stream: Stream,
}

impl Rewound {
    /// `stream`, as if `read` had not been read.
    pub fn new(read: Vec<u8>, stream: Stream) -> Rewound {
        Rewound { read, stream }
    }
}

impl AsyncRead for Rewound {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let some = self.read.len().min(buf.remaining());
        self.read.drain(..some).for_each(|byte| buf.put_slice(&[byte])); // a preface, not a body
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
