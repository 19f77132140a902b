//! Requests out, as many replies in; closed as soon as the two could be out of step.

use std::io;
use std::net::SocketAddr;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tollgate_resp::{ProtocolVersion, ReplyLimits, RespValue, decode, write_request};

use super::error::{ConnectError, ConnectionLost};
use super::stream::ClientStream;
use crate::client::address::HostPort;
use crate::client::context::RedisContext;

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
