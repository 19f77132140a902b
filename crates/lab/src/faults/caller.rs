//! A minimal client of one node: HTTP/1.1 over one kept-alive connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to a node.
#[derive(Debug)]
pub struct Caller {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Caller {
    /// Connects to a node.
    pub fn connect(node: SocketAddr) -> io::Result<Caller> {
        let stream = TcpStream::connect_timeout(&node, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Caller { stream, buffer: Vec::new() })
    }

    /// Posts a JSON object, and returns the JSON of the response.
    pub fn post(&mut self, path: &str, body: &str) -> io::Result<Value> {
        let request =
            format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        self.stream.write_all(request.as_bytes())?;
        let answer = self.answer()?;
        serde_json::from_slice(&answer).map_err(io::Error::other)
    }

    /// Gets a page.
    pub fn get(&mut self, path: &str) -> io::Result<String> {
        self.get_with(path, "")
    }

    /// Gets a page, with header lines of the caller.
    pub fn get_with(&mut self, path: &str, fields: &str) -> io::Result<String> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").as_bytes())?;
        Ok(String::from_utf8_lossy(&self.answer()?).into_owned())
    }

    /// The body of the next response.
    fn answer(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some((head, length)) = self.head()?
                && self.buffer.len() >= head + length
            {
                let body = self.buffer[head..head + length].to_vec();
                self.buffer.drain(..head + length);
                return Ok(body);
            }
            let mut chunk = [0; 16 << 10];
            let length = self.stream.read(&mut chunk)?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.buffer.extend_from_slice(&chunk[..length]);
        }
    }

    /// The start and length of the body, once the head has arrived.
    fn head(&self) -> io::Result<Option<(usize, usize)>> {
        let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let head = String::from_utf8_lossy(&self.buffer[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.and_then(|text| text.trim().parse().ok());
        length.map(|length| Some((end + 4, length))).ok_or_else(|| io::Error::other(format!("no length in {head:?}")))
    }
}
