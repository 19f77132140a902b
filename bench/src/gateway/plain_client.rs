//! A client over blocking sockets that reads whole answers: for proofs, idle connections and large bodies.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, ensure};

/// Longest wait for the next byte. A gigabyte through a busy machine takes seconds, not minutes.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a read.
const PIECE: usize = 16 << 10;
/// Longest body that is kept.
const KEPT_MAX: u64 = 64 << 10;

/// One connection with keep-alive.
#[derive(Debug)]
pub struct PlainClient {
    stream: BufReader<TcpStream>,
    address: String,
}

/// An answer that was read to its end.
#[derive(Debug)]
pub struct PlainAnswer {
    pub status: u16,
    /// Its length.
    pub bytes: u64,
    /// All of it, if it is short.
    pub body: Vec<u8>,
}

impl PlainClient {
    /// Connects.
    pub fn open(address: &str) -> anyhow::Result<PlainClient> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(PlainClient { stream: BufReader::with_capacity(PIECE, stream), address: address.to_owned() })
    }

    /// Asks for a path.
    pub fn get(&mut self, path: &str) -> anyhow::Result<PlainAnswer> {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        self.stream.get_mut().write_all(head.as_bytes())?;
        self.read()
    }

    /// Sends a body of so many bytes.
    pub fn post(&mut self, path: &str, length: u64) -> anyhow::Result<PlainAnswer> {
        let head = format!("POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {length}\r\n\r\n", self.address);
        let socket = self.stream.get_mut();
        socket.write_all(head.as_bytes())?;
        let zeros = [0; PIECE];
        let mut left = length;
        while left > 0 {
            let piece = zeros.get(..left.min(PIECE as u64) as usize).unwrap_or_default();
            socket.write_all(piece)?;
            left -= piece.len() as u64;
        }
        self.read()
    }

    fn read(&mut self) -> anyhow::Result<PlainAnswer> {
        let (mut status, mut length, mut line) = (None, None, String::new());
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line)? > 0, "the connection was closed");
            let text = line.trim_end();
            match text.split_once(':') {
                _ if status.is_none() => {
                    status = Some(text.split(' ').nth(1).context("no status")?.parse()?);
                }
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = Some(value.trim().parse()?);
                }
                _ if text.is_empty() => break,
                _ => {}
            }
        }
        let (status, bytes) = (status.context("no status")?, length.context("an answer without a length")?);
        Ok(PlainAnswer { status, bytes, body: self.read_body(bytes)? })
    }

    fn read_body(&mut self, length: u64) -> anyhow::Result<Vec<u8>> {
        let (mut left, mut kept, mut piece) = (length, Vec::new(), [0; PIECE]);
        while left > 0 {
            let room = piece.get_mut(..left.min(PIECE as u64) as usize).unwrap_or_default();
            let read = self.stream.read(room)?;
            ensure!(read > 0, "the body ended {left} bytes early");
            left -= read as u64;
            if length <= KEPT_MAX {
                kept.extend_from_slice(room.get(..read).unwrap_or_default());
            }
        }
        Ok(kept)
    }
}
