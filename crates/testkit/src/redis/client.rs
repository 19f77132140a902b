//! A blocking connection to a server, for looking at it and for doing things to it behind everybody's back.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::BytesMut;
use tollgate_store_redis::resp::{self, Value};

/// One connection. Panics when the server does not answer: a test without its server has nothing to say.
pub struct Client {
    stream: TcpStream,
    buffer: BytesMut,
}

impl Client {
    /// Connects to a port of this machine.
    pub fn connect(port: u16) -> std::io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Client { stream, buffer: BytesMut::new() })
    }

    /// Sends a command and waits for its reply.
    pub fn call(&mut self, parts: &[&str]) -> Value {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        let mut out = Vec::new();
        resp::command(&mut out, &parts);
        self.exchange(&out).expect("the server answers")
    }

    /// Sends bytes that are one command, and waits for its reply.
    pub fn exchange(&mut self, command: &[u8]) -> std::io::Result<Value> {
        self.stream.write_all(command)?;
        loop {
            if let Some(value) = resp::decode(&mut self.buffer).map_err(std::io::Error::other)? {
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
}
