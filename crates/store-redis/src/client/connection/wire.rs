//! Requests out, as many replies in, and closed as soon as the two could be out of step.

use std::io;
use std::net::SocketAddr;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tollgate_resp::{ProtocolVersion, ReplyLimits, RespValue, decode, write_request};

use super::error::{ConnectError, ConnectionLost};
use super::stream::ClientStream;
use crate::client::address::HostPort;
use crate::client::context::RedisContext;

/// Read at a time; replies of a usual call fit.
const READ_BYTES: usize = 16 << 10;

/// What a reply may be longer than was asked for: no server makes a node take more memory than that.
const UNASKED_BYTES_MAX: usize = 64 << 10;
/// The map of a cluster whose every slot lives apart from its neighbours.
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

    /// Writes; `written` tells how much of it is out, also if that fails or is given up.
    pub(crate) async fn write(&mut self, bytes: &[u8], written: &mut usize) -> io::Result<()> {
        while let Some(rest @ [_, ..]) = bytes.get(*written..) {
            match self.stream.write(rest).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                length => *written += length,
            }
        }
        self.stream.flush().await
    }

    /// The next reply, which is short.
    pub(crate) async fn reply(&mut self) -> Result<RespValue, ConnectionLost> {
        self.reply_of(0).await
    }

    /// The next reply, of about so many bytes.
    pub(crate) async fn reply_of(&mut self, expected: usize) -> Result<RespValue, ConnectionLost> {
        let limits = ReplyLimits { bytes: expected.saturating_add(UNASKED_BYTES_MAX), version: ProtocolVersion::Resp2 };
        loop {
            match decode(&mut self.input, limits) {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => self.read().await?,
                Err(_) => return Err(ConnectionLost::OutOfStep("this is no reply of Redis")),
            }
        }
    }

    /// Sends one command and waits for its reply, which is short.
    pub(crate) async fn call(&mut self, parts: &[&[u8]]) -> Result<RespValue, ConnectionLost> {
        self.call_for(parts, 0).await
    }

    /// Sends one command and waits for its reply, of about so many bytes.
    pub(crate) async fn call_for(&mut self, parts: &[&[u8]], expected: usize) -> Result<RespValue, ConnectionLost> {
        let mut out = Vec::new();
        write_request(&mut out, parts);
        self.write(&out, &mut 0).await?;
        self.reply_of(expected).await
    }

    /// Waits, with nothing asked, until the connection is of no use any more.
    pub(crate) async fn idle(&mut self) -> ConnectionLost {
        if !self.input.is_empty() {
            return ConnectionLost::OutOfStep("there is more than was asked for");
        }
        match self.read().await {
            Ok(()) => ConnectionLost::OutOfStep("it speaks without being asked"),
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
