//! The transport of a connection: plain TCP or TLS.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::client::TlsStream;

use super::error::ConnectError;
use crate::client::address::HostPort;
use crate::client::context::RedisContext;

/// A connected stream.
#[derive(Debug)]
pub(crate) enum ClientStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl ClientStream {
    /// Connects to the first address that accepts, and performs the TLS handshake if the URL requires it.
    pub(super) async fn open(
        context: &RedisContext,
        at: &HostPort,
        places: &[SocketAddr],
    ) -> Result<ClientStream, ConnectError> {
        let stream = connect(places).await.map_err(|error| ConnectError::Unreachable(error.to_string()))?;
        if !context.config.url.tls {
            return Ok(ClientStream::Plain(stream));
        }
        let untrusted = |why: &dyn std::fmt::Display| ConnectError::Untrusted(why.to_string());
        let connector = context.tls().await.map_err(|why| untrusted(&why))?;
        let name = ServerName::try_from(at.host.clone()).map_err(|error| untrusted(&error))?;
        match connector.connect(name, stream).await {
            Ok(stream) => Ok(ClientStream::Tls(Box::new(stream))),
            Err(error) => {
                context.forget_tls();
                Err(untrusted(&error))
            }
        }
    }
}

async fn connect(places: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for place in places {
        let socket = if place.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_nodelay(true)?;
        socket.set_keepalive(true)?;
        match socket.connect(*place).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl AsyncRead for ClientStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            ClientStream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            ClientStream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            ClientStream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            ClientStream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
