//! The upstream of `script/bench gateway`: one thread that answers at once and never sleeps, so that no proxy pays for
//! waking it. It yields its core whenever nothing has arrived: on two cores it shares one with the load generator.
//!
//! `GET /bytes/N` is answered with N bytes, a request with a body with the number of its bytes, and any other with a small
//! document. Bodies have a `Content-Length`: a proxy that takes it away is not measured.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::process::parent_id;

use anyhow::Context as _;
use httparse::{EMPTY_HEADER, Request, Status};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncache-control: no-store\r\n\
    content-length: 119\r\n\r\n{\"id\":\"8a6f1e90\",\"status\":\"paid\",\"items\":[{\"sku\":\"A-1204\",\"quantity\":2}],\
    \"total\":\"48.90\",\"currency\":\"EUR\",\"version\":17}";
const LISTENER: Token = Token(usize::MAX);
/// Bytes of a read, and of a write of a large body.
const PIECE: usize = 64 << 10;
/// Longest head, and most fields of it.
const HEAD_MAX: usize = 16 << 10;
const FIELDS_MAX: usize = 64;
/// After so many rounds without an event it looks whether the benchmark is still there.
const PATIENCE: u32 = 1 << 14;

fn main() -> anyhow::Result<()> {
    let mut listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
    let mut out = io::stdout();
    writeln!(out, "listening on http://{}", listener.local_addr()?)?;
    out.flush()?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut upstream = Upstream { listener, exchanges: Vec::new(), buffer: vec![0; PIECE] };
    let (mut events, parent, mut quiet) = (Events::with_capacity(1024), parent_id(), 0_u32);
    loop {
        poll.poll(&mut events, Some(std::time::Duration::ZERO))?;
        if events.is_empty() {
            quiet = quiet.wrapping_add(1);
            if quiet.is_multiple_of(PATIENCE) && parent_id() != parent {
                return Ok(()); // the benchmark was killed
            }
            std::thread::yield_now();
        }
        for event in &events {
            match event.token() {
                LISTENER => upstream.accept(&poll)?,
                Token(at) => upstream.serve(at),
            }
        }
    }
}

struct Upstream {
    listener: TcpListener,
    /// By token; `None` once closed.
    exchanges: Vec<Option<Exchange>>,
    buffer: Vec<u8>,
}

impl Upstream {
    fn accept(&mut self, poll: &Poll) -> anyhow::Result<()> {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("a connection cannot be accepted"),
            };
            stream.set_nodelay(true)?;
            let at = self.exchanges.iter().position(Option::is_none).unwrap_or(self.exchanges.len());
            poll.registry().register(&mut stream, Token(at), Interest::READABLE | Interest::WRITABLE)?;
            let exchange = Exchange { stream, head: Vec::new(), coming: 0, received: 0, answer: Vec::new(), zeros: 0 };
            match self.exchanges.get_mut(at) {
                Some(place) => *place = Some(exchange),
                None => self.exchanges.push(Some(exchange)),
            }
            self.serve(at); // its first bytes may be there already
        }
    }

    fn serve(&mut self, at: usize) {
        let Some(place) = self.exchanges.get_mut(at) else { return };
        let Some(exchange) = place else { return };
        if exchange.serve(&mut self.buffer).is_err() {
            *place = None; // the proxy has closed the connection, or sends something else
        }
    }
}

/// One connection, and its request.
struct Exchange {
    stream: TcpStream,
    /// Of a request that is not all there.
    head: Vec<u8>,
    /// Bytes of the body that are to come.
    coming: u64,
    /// Length of the body.
    received: u64,
    /// What did not fit into the socket.
    answer: Vec<u8>,
    /// Bytes of a large body that are to be sent behind it.
    zeros: u64,
}

impl Exchange {
    fn serve(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.send()?;
        loop {
            let read = match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.take(buffer.get(..read).unwrap_or_default())?;
            self.send()?;
        }
    }

    fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.coming > 0 {
                let taken = self.coming.min(bytes.len() as u64);
                self.coming -= taken;
                bytes = bytes.get(taken as usize..).unwrap_or_default();
                if self.coming == 0 {
                    self.answer_with(format!("{{\"received\":{}}}", self.received).as_bytes());
                }
                continue;
            }
            let old = self.head.len();
            self.head.extend_from_slice(bytes);
            let Some(Asked { head, body, bytes: asked }) = parse(&self.head)? else { return Ok(()) };
            bytes = bytes.get(head.saturating_sub(old)..).unwrap_or_default();
            self.head.clear();
            self.begin(body, asked);
        }
        Ok(())
    }

    fn begin(&mut self, body: u64, asked: Option<u64>) {
        (self.coming, self.received) = (body, body);
        match asked {
            _ if body > 0 => {}
            Some(bytes) => {
                self.answer.extend_from_slice(head_of(bytes).as_bytes());
                self.zeros = bytes;
            }
            None => self.answer.extend_from_slice(ANSWER),
        }
    }

    fn answer_with(&mut self, body: &[u8]) {
        self.answer.extend_from_slice(head_of(body.len() as u64).as_bytes());
        self.answer.extend_from_slice(body);
    }

    /// Sends what fits into the socket.
    fn send(&mut self) -> io::Result<()> {
        static ZEROS: [u8; PIECE] = [0; PIECE];
        while !self.answer.is_empty() || self.zeros > 0 {
            let is_head = !self.answer.is_empty();
            let piece = match is_head {
                true => &self.answer,
                false => ZEROS.get(..self.zeros.min(PIECE as u64) as usize).unwrap_or_default(),
            };
            match self.stream.write(piece) {
                Ok(written) if is_head => _ = self.answer.drain(..written),
                Ok(written) => self.zeros -= written as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What a head asks for.
struct Asked {
    /// Its length.
    head: usize,
    /// Length of its body.
    body: u64,
    /// Bytes that the answer is to have.
    bytes: Option<u64>,
}

/// The head at the front, once it is all there.
fn parse(bytes: &[u8]) -> io::Result<Option<Asked>> {
    let mut fields = [EMPTY_HEADER; FIELDS_MAX];
    let mut request = Request::new(&mut fields);
    match request.parse(bytes).map_err(|_| io::Error::from(ErrorKind::InvalidData))? {
        Status::Complete(head) => {
            let bytes = request.path.and_then(|path| path.strip_prefix("/bytes/")?.parse().ok());
            let mut body = 0;
            for field in request.headers.iter() {
                if field.name.eq_ignore_ascii_case("transfer-encoding") {
                    return Err(ErrorKind::Unsupported.into());
                }
                if field.name.eq_ignore_ascii_case("content-length") {
                    let length = str::from_utf8(field.value).ok().and_then(|length| length.parse().ok());
                    body = length.ok_or(io::Error::from(ErrorKind::InvalidData))?;
                }
            }
            Ok(Some(Asked { head, body, bytes }))
        }
        Status::Partial if bytes.len() > HEAD_MAX => Err(ErrorKind::InvalidData.into()),
        Status::Partial => Ok(None),
    }
}

fn head_of(length: u64) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: {length}\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_answer_has_the_length_that_it_says() {
        let text = str::from_utf8(ANSWER).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
    }

    #[test]
    fn a_head_says_what_follows_it() {
        let Asked { head, body, bytes } =
            parse(b"POST /a HTTP/1.1\r\nContent-Length: 7\r\n\r\n1234567").unwrap().unwrap();
        assert_eq!((head, body, bytes), (39, 7, None));
        let asked = parse(b"GET /bytes/1000 HTTP/1.1\r\n\r\n").unwrap().unwrap();
        assert_eq!((asked.body, asked.bytes), (0, Some(1000)));
        assert!(parse(b"GET /bytes/1000 HTTP/1.1\r\nhost: a").unwrap().is_none());
        assert!(parse(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }
}
