//! A blocking connection to a server, to inspect it and to change it behind the nodes' backs.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::BytesMut;
use tollgate_resp::{ReplyLimits, RespValue, decode, write_request};

/// One connection. Panics when the server does not answer: a test without its server has nothing to say.
pub struct RedisClient {
    stream: TcpStream,
    buffer: BytesMut,
}

impl RedisClient {
    /// Connects to a port of this machine.
    pub fn connect(port: u16) -> std::io::Result<RedisClient> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(RedisClient { stream, buffer: BytesMut::new() })
    }

    /// How long a reply may take; ten seconds unless told.
    pub fn patience(self, within: Duration) -> RedisClient {
        self.stream.set_read_timeout(Some(within)).expect("a span above zero");
        self
    }

    /// Sends a command and waits for its reply.
    pub fn call(&mut self, parts: &[&str]) -> RespValue {
        self.try_call(parts).unwrap_or_else(|error| panic!("no reply to {parts:?}: {error}"))
    }

    /// Sends a command and waits for its reply, which must be no error.
    pub fn succeed(&mut self, parts: &[&str]) -> RespValue {
        match self.call(parts) {
            RespValue::Error(error) => panic!("{parts:?}: {}", String::from_utf8_lossy(&error)),
            value => value,
        }
    }

    /// Sends a command and waits for its reply, if there is one.
    pub fn try_call(&mut self, parts: &[&str]) -> std::io::Result<RespValue> {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        let mut out = Vec::new();
        write_request(&mut out, &parts);
        self.exchange(&out)
    }

    /// Sends a command and waits for nothing.
    pub fn send(&mut self, parts: &[&str]) {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        let mut out = Vec::new();
        write_request(&mut out, &parts);
        self.stream.write_all(&out).expect("the server listens");
    }

    /// Sends bytes that are one command, and waits for its reply.
    pub fn exchange(&mut self, command: &[u8]) -> std::io::Result<RespValue> {
        self.stream.write_all(command)?;
        loop {
            if let Some(value) = decode(&mut self.buffer, ReplyLimits::default()).map_err(std::io::Error::other)? {
                return Ok(value);
            }
            let mut chunk = [0; 16 << 10];
            let length = self.stream.read(&mut chunk)?;
            if length == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.buffer.extend_from_slice(&chunk[..length]);
        }
    }

    /// A command whose reply is text.
    pub fn text(&mut self, parts: &[&str]) -> String {
        match self.succeed(parts) {
            RespValue::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            other => panic!("{parts:?} answers {other:?}"),
        }
    }

    /// A command whose reply is a number.
    pub fn number(&mut self, parts: &[&str]) -> i64 {
        match self.succeed(parts) {
            RespValue::Integer(number) => number,
            other => panic!("{parts:?} answers {other:?}"),
        }
    }

    /// `INFO section`, or any other reply of lines `name:value`.
    pub fn fields(&mut self, parts: &[&str]) -> BTreeMap<String, String> {
        let text = self.text(parts);
        let pairs = text.lines().filter_map(|line| line.trim_end().split_once(':'));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// One field of `INFO`, as a number; zero if it is not there.
    pub fn figure(&mut self, section: &str, name: &str) -> u64 {
        self.fields(&["INFO", section]).get(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }
}
