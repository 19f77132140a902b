//! A connection to a server: requests out, as many replies in; closed as soon as the two could be out of step.

mod handshake;

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::{fmt, io};

use bytes::BytesMut;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::client::TlsStream;
use tollgate_resp::{ProtocolVersion, ReplyLimits, RespValue, decode, write_request};
use tollgate_store::StoreErrorKind;

use crate::client::address::HostPort;
use crate::client::context::RedisContext;
use crate::client::failure::ErrorCode;

pub(crate) use self::handshake::{Handshake, resolve, time as parse_time};

/// Bytes read at a time; typical replies fit.
const READ_BYTES: usize = 16 << 10;

/// How much longer than expected a reply may be: bounds the memory that a server can make this node allocate.
const UNASKED_BYTES_MAX: usize = 64 << 10;
/// Bytes of a slot map in which no two neighbouring slots share a server.
pub(crate) const SLOT_MAP_BYTES: usize = 4 << 20;

/// An open connection.
#[derive(Debug)]
pub(crate) struct RedisConnection {
    stream: ClientStream,
    input: BytesMut,
}

impl RedisConnection {
    pub(super) async fn connect(
        context: &RedisContext,
        at: &HostPort,
        places: &[SocketAddr],
    ) -> Result<RedisConnection, ConnectError> {
        let stream = ClientStream::open(context, at, places).await?;
        Ok(RedisConnection { stream, input: BytesMut::with_capacity(READ_BYTES) })
    }

    /// Writes; `written` is how many bytes were sent, also after an error or a cancellation.
    pub(crate) async fn write(&mut self, bytes: &[u8], written: &mut usize) -> io::Result<()> {
        while let Some(rest @ [_, ..]) = bytes.get(*written..) {
            match self.stream.write(rest).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                length => *written += length,
            }
        }
        self.stream.flush().await
    }

    /// The next reply, which is expected to be short.
    pub(crate) async fn reply(&mut self) -> Result<RespValue, ConnectionLost> {
        self.reply_of(0).await
    }

    /// The next reply, of about `expected` bytes.
    pub(crate) async fn reply_of(&mut self, expected: usize) -> Result<RespValue, ConnectionLost> {
        let limits = ReplyLimits { bytes: expected.saturating_add(UNASKED_BYTES_MAX), version: ProtocolVersion::Resp2 };
        loop {
            match decode(&mut self.input, limits) {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => self.read().await?,
                Err(_) => return Err(ConnectionLost::OutOfStep("malformed reply")),
            }
        }
    }

    /// Sends one command and waits for its short reply.
    pub(crate) async fn call(&mut self, parts: &[&[u8]]) -> Result<RespValue, ConnectionLost> {
        self.call_for(parts, 0).await
    }

    /// Sends one command and waits for its reply of about `expected` bytes.
    pub(crate) async fn call_for(&mut self, parts: &[&[u8]], expected: usize) -> Result<RespValue, ConnectionLost> {
        let mut out = Vec::new();
        write_request(&mut out, parts);
        self.write(&out, &mut 0).await?;
        self.reply_of(expected).await
    }

    /// Waits, while no reply is due, until the connection ends.
    pub(crate) async fn idle(&mut self) -> ConnectionLost {
        if !self.input.is_empty() {
            return ConnectionLost::OutOfStep("unexpected reply");
        }
        match self.read().await {
            Ok(()) => ConnectionLost::OutOfStep("unexpected data"),
            Err(broken) => broken,
        }
    }

    async fn read(&mut self) -> Result<(), ConnectionLost> {
        self.input.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(ConnectionLost::Closed(io::ErrorKind::UnexpectedEof.into())),
            _ => Ok(()),
        }
    }
}

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

/// Why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// The server is unreachable.
    Unreachable(String),
    /// Not finished within the connect timeout.
    Late(String),
    /// The certificate of the server is not trusted.
    Untrusted(String),
    /// The server replied to this step with an error.
    ErrorReply(ErrorCode, &'static str),
    /// The reply is malformed or unexpected.
    Strange(String),
}

impl ConnectError {
    /// The kind of error that callers receive.
    pub(crate) fn kind(&self) -> StoreErrorKind {
        match self {
            ConnectError::ErrorReply(ErrorCode::Other, _) => StoreErrorKind::Refused,
            ConnectError::ErrorReply(code, _) => code.treatment().kind().unwrap_or(StoreErrorKind::Unavailable),
            _ => StoreErrorKind::Unavailable,
        }
    }

    /// The error code of the server, if it sent one.
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        if let ConnectError::ErrorReply(code, _) = self { Some(*code) } else { None }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Unreachable(why) | ConnectError::Late(why) => write!(f, "cannot connect: {why}"),
            ConnectError::Untrusted(why) => write!(f, "TLS: {why}"),
            ConnectError::ErrorReply(code, step) => write!(f, "{} ({step})", code.meaning()),
            ConnectError::Strange(what) => f.write_str(what),
        }
    }
}

/// Why a connection cannot be used any longer.
#[derive(Debug)]
pub(crate) enum ConnectionLost {
    /// The server closed it.
    Closed(io::Error),
    /// The server sent something that was not requested.
    OutOfStep(&'static str),
}

impl fmt::Display for ConnectionLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionLost::Closed(error) => write!(f, "the connection is gone: {error}"),
            ConnectionLost::OutOfStep(what) => write!(f, "the server is out of step: {what}"),
        }
    }
}

impl From<io::Error> for ConnectionLost {
    fn from(error: io::Error) -> ConnectionLost {
        ConnectionLost::Closed(error)
    }
}
