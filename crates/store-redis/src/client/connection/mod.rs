//! One connection: commands out, as many replies in, and closed as soon as the two could be out of step.

mod handshake;
mod stream;

use std::fmt;
use std::io;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tollgate_core::Time;
use tollgate_resp::{ProtocolVersion, ReplyLimits, RespValue, decode, write_request};
use tollgate_store::StoreErrorKind;

pub(crate) use self::handshake::time as told_time;
use self::stream::Stream;
use crate::client::address::HostPort;
use crate::client::context::Shared;
use crate::client::failure::Refusal;
use crate::client::url::Login;

/// Read at a time; replies of a usual call fit.
const READ_BYTES: usize = 16 << 10;

/// What a reply may be longer than was asked for: no server makes a node take more memory than that.
const UNASKED_BYTES_MAX: usize = 64 << 10;
/// The map of a cluster whose every slot lives apart from its neighbours.
pub(crate) const SLOT_MAP_BYTES: usize = 4 << 20;

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    input: BytesMut,
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// Nobody accepts, or nobody in time.
    Unreachable(String),
    /// Not done in the time there is for it.
    Late(String),
    /// Whoever accepted is not trusted.
    Untrusted(String),
    /// The server refused us, at this step.
    Refused(Refusal, &'static str),
    /// What came is no reply of Redis, or none to what was asked.
    Strange(String),
}

impl ConnectError {
    /// What it is to those who wait.
    pub(crate) fn kind(&self) -> StoreErrorKind {
        match self {
            ConnectError::Refused(Refusal::Other, _) => StoreErrorKind::Refused,
            ConnectError::Refused(refusal, _) => refusal.treatment().kind().unwrap_or(StoreErrorKind::Unavailable),
            _ => StoreErrorKind::Unavailable,
        }
    }

    /// The word of the server, if it said one.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        if let ConnectError::Refused(refusal, _) = self { Some(*refusal) } else { None }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Unreachable(why) | ConnectError::Late(why) => write!(f, "cannot connect: {why}"),
            ConnectError::Untrusted(why) => write!(f, "TLS: {why}"),
            ConnectError::Refused(refusal, step) => write!(f, "{} ({step})", refusal.meaning()),
            ConnectError::Strange(what) => f.write_str(what),
        }
    }
}

/// Why a connection cannot be used any longer.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The other side is gone.
    Closed(io::Error),
    /// It said what it could not have been asked for.
    OutOfStep(&'static str),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Closed(error) => write!(f, "the connection is gone: {error}"),
            Broken::OutOfStep(what) => write!(f, "the server is out of step: {what}"),
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Closed(error)
    }
}

/// What a server told when we introduced ourselves.
#[derive(Debug)]
pub(crate) struct Greeting {
    /// The hash of each script.
    pub(crate) hashes: Vec<Bytes>,
    /// When its time was asked, when that was answered, and what it was.
    pub(crate) clock: (Time, Time, Time),
}

impl Connection {
    /// Connects, logs in and loads the scripts, all within the time there is for it.
    pub(crate) async fn open(
        shared: &Shared,
        at: &HostPort,
        places: &[SocketAddr],
        scripts: &[&str],
    ) -> Result<(Connection, Greeting), ConnectError> {
        let opening = async {
            let mut connection = Connection::connect(shared, at, places).await?;
            let greeting = handshake::greet(&mut connection, shared, scripts).await?;
            Ok((connection, greeting))
        };
        timeout(shared.config.connect_timeout.into(), opening).await.unwrap_or_else(|_| Err(too_late(shared)))
    }

    /// Connects and logs in, and does nothing else: for Sentinels, and for looking around.
    pub(crate) async fn open_bare(
        shared: &Shared,
        at: &HostPort,
        login: Option<&Login>,
    ) -> Result<Connection, ConnectError> {
        let opening = async {
            let places = resolve(at).await?;
            let mut connection = Connection::connect(shared, at, &places).await?;
            handshake::log_in(&mut connection, login).await?;
            Ok(connection)
        };
        timeout(shared.config.connect_timeout.into(), opening).await.unwrap_or_else(|_| Err(too_late(shared)))
    }

    async fn connect(shared: &Shared, at: &HostPort, places: &[SocketAddr]) -> Result<Connection, ConnectError> {
        let stream = Stream::open(shared, at, places).await?;
        Ok(Connection { stream, input: BytesMut::with_capacity(READ_BYTES) })
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
    pub(crate) async fn reply(&mut self) -> Result<RespValue, Broken> {
        self.reply_of(0).await
    }

    /// The next reply, of about so many bytes.
    pub(crate) async fn reply_of(&mut self, expected: usize) -> Result<RespValue, Broken> {
        let limits = ReplyLimits { bytes: expected.saturating_add(UNASKED_BYTES_MAX), version: ProtocolVersion::Resp2 };
        loop {
            match decode(&mut self.input, limits) {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => self.read().await?,
                Err(_) => return Err(Broken::OutOfStep("this is no reply of Redis")),
            }
        }
    }

    /// Sends one command and waits for its reply, which is short.
    pub(crate) async fn call(&mut self, parts: &[&[u8]]) -> Result<RespValue, Broken> {
        self.call_for(parts, 0).await
    }

    /// Sends one command and waits for its reply, of about so many bytes.
    pub(crate) async fn call_for(&mut self, parts: &[&[u8]], expected: usize) -> Result<RespValue, Broken> {
        let mut out = Vec::new();
        write_request(&mut out, parts);
        self.write(&out, &mut 0).await?;
        self.reply_of(expected).await
    }

    /// Waits, with nothing asked, until the connection is of no use any more.
    pub(crate) async fn idle(&mut self) -> Broken {
        if !self.input.is_empty() {
            return Broken::OutOfStep("there is more than was asked for");
        }
        match self.read().await {
            Ok(()) => Broken::OutOfStep("it speaks without being asked"),
            Err(broken) => broken,
        }
    }

    async fn read(&mut self) -> Result<(), Broken> {
        self.input.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(Broken::Closed(io::ErrorKind::UnexpectedEof.into())),
            _ => Ok(()),
        }
    }
}

/// The addresses of a host.
pub(crate) async fn resolve(at: &HostPort) -> Result<Vec<SocketAddr>, ConnectError> {
    if let Ok(address) = at.host.parse() {
        return Ok(vec![SocketAddr::new(address, at.port)]);
    }
    let unknown = |error: io::Error| ConnectError::Unreachable(format!("{} has no address: {error}", at.host));
    Ok(tokio::net::lookup_host((at.host.as_str(), at.port)).await.map_err(unknown)?.collect())
}

fn too_late(shared: &Shared) -> ConnectError {
    ConnectError::Late(format!("nobody answered within {}", shared.config.connect_timeout))
}
