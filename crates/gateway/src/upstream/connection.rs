//! Opens connections to servers: TCP, then TLS where the URL says so, then the handshake of HTTP/1.1 or HTTP/2.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::UpstreamError;
use super::sent_body::SentRequestBody;
use crate::spec::{ServerScheme, UpstreamUrl};

/// Longest head of a response.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// What hyper has for a connection of HTTP/1.1: it reads and writes when it is polled.
pub(super) type ConnectionDriver = http1::Connection<TokioIo<UpstreamStream>, SentRequestBody>;

/// An open connection.
pub(crate) enum Opened {
    Http1(http1::SendRequest<SentRequestBody>, Box<ConnectionDriver>),
    Http2(http2::SendRequest<SentRequestBody>),
}

/// Opens a connection. The caller bounds the time.
pub(crate) async fn open(url: &UpstreamUrl, tls: Option<&Arc<ClientConfig>>) -> Result<Opened, UpstreamError> {
    let tcp = TcpStream::connect((url.host.as_str(), url.port)).await.map_err(UpstreamError::Connect)?;
    tcp.set_nodelay(true).map_err(UpstreamError::Connect)?;
    match (url.scheme, tls) {
        (ServerScheme::Http, _) | (ServerScheme::Https, None) => http1(UpstreamStream::Tcp(tcp)).await,
        (ServerScheme::H2c, _) => http2(UpstreamStream::Tcp(tcp)).await,
        (ServerScheme::Https, Some(config)) => {
            let name = ServerName::try_from(url.host.clone()).map_err(|_| {
                UpstreamError::Connect(io::Error::other("the host cannot be the name of a certificate"))
            })?;
            let connector = TlsConnector::from(config.clone());
            let tls = connector.connect(name, tcp).await.map_err(UpstreamError::Connect)?;
            let is_http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
            let stream = UpstreamStream::Tls(Box::new(tls));
            if is_http2 { http2(stream).await } else { http1(stream).await }
        }
    }
}

async fn http1(stream: UpstreamStream) -> Result<Opened, UpstreamError> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX); // and at most 100 fields: told a number, hyper allocates for every response
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(UpstreamError::of)?;
    Ok(Opened::Http1(sender, Box::new(connection)))
}

async fn http2(stream: UpstreamStream) -> Result<Opened, UpstreamError> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .initial_stream_window_size(256 << 10)
        .initial_connection_window_size(1 << 20)
        .max_send_buf_size(64 << 10)
        .keep_alive_interval(std::time::Duration::from_secs(20))
        .keep_alive_timeout(std::time::Duration::from_secs(10));
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(UpstreamError::of)?;
    tokio::spawn(async move {
        let _ = connection.await; // its requests have the error
    });
    Ok(Opened::Http2(sender))
}

/// A connection to a server.
pub(crate) enum UpstreamStream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

macro_rules! on {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            UpstreamStream::Tcp($stream) => $call,
            UpstreamStream::Tls($stream) => $call,
        }
    };
}

impl AsyncRead for UpstreamStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        on!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on!(self, stream => Pin::new(stream).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            UpstreamStream::Tcp(stream) => stream.is_write_vectored(),
            UpstreamStream::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
