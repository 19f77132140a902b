//! The strict reader in front of hyper: only messages that all readers understand alike reach hyper.
//!
//! hyper drops a `Content-Length` beside a `Transfer-Encoding` and accepts bare line feeds; both let two readers disagree
//! about where a request ends. So this stream checks each head and each chunk before hyper reads it, with the parser of the
//! check path, and passes on one message at a time. It also owns the deadlines: hyper has one for idle connections and heads
//! together, and none for writes.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Uri;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use tollgate_net::{Deadline, Drain, IDLE_GRACE, ListenerContext, NetLimits, Rewound, Stream};

use crate::body_gate::BodyGate;
use crate::h1::{BadChunk, BodyLength, Chunked, ParsedHead, parse};
use crate::h2::PREFACE;
use crate::head::HttpError;

/// Size of a read.
const READ_BYTES: usize = 8 << 10;
/// hyper reads this in place of a head that is refused. The service knows of the refusal and answers with it.
const REFUSED: &[u8] = b"GET / HTTP/1.1\r\nHost: refused\r\n\r\n";

/// The longest body that hyper can count.
const LENGTH_MAX: u64 = i64::MAX as u64;

/// An HTTP/1 connection that passes on checked messages only.
pub(crate) struct CheckedStream {
    stream: Stream,
    limits: NetLimits,
    drain: Drain,
    drain_begun: Pin<Box<dyn Future<Output = ()> + Send>>,
    gate: Arc<BodyGate>,
    /// For the wait for a head.
    read_deadline: Deadline,
    waits_for: Option<WaitsFor>,
    /// While a write waits for the client.
    write_deadline: Option<Deadline>,
    /// Interim responses that are being written.
    interim: Vec<u8>,
    /// hyper has had nothing to write since the current message began.
    is_flushed: bool,
    input: Vec<u8>,
    /// Length of the part of the input that hyper has.
    start: usize,
    /// Length of the part after it that is checked.
    checked: usize,
    expects: Expects,
    /// Bytes arrived that may complete a head or make it invalid.
    is_worth_parsing: bool,
}

/// What the next byte belongs to.
enum Expects {
    Head,
    /// A body, and how much of it is to come.
    Body(u64),
    Chunks(Chunked),
    /// Nothing: the last message was refused.
    End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitsFor {
    NextRequest,
    /// A request that may be on its way although the server drains.
    LastRequest,
    RestOfHead,
}

/// The protocol that the first bytes of a connection show.
pub(crate) enum FirstBytes {
    Http1(Box<CheckedStream>),
    /// The bytes start with the preface of HTTP/2.
    Http2(Vec<u8>, Stream),
    /// Nothing came in time.
    Nothing(Stream),
}

impl CheckedStream {
    pub(crate) fn new(stream: Stream, context: &ListenerContext) -> CheckedStream {
        let ListenerContext { limits, drain, .. } = context;
        CheckedStream {
            stream,
            limits: *limits,
            drain_begun: Box::pin(drain.begun_owned()),
            drain: drain.clone(),
            gate: Arc::default(),
            read_deadline: Deadline::new(Instant::now() + limits.idle_timeout),
            waits_for: None,
            write_deadline: None,
            interim: Vec::new(),
            is_flushed: false,
            input: Vec::new(),
            start: 0,
            checked: 0,
            expects: Expects::Head,
            is_worth_parsing: false,
        }
    }

    /// Waits until the first bytes tell HTTP/2 from HTTP/1.
    pub(crate) async fn first_bytes(mut self) -> FirstBytes {
        loop {
            if self.input.starts_with(PREFACE) {
                return FirstBytes::Http2(self.input, self.stream);
            }
            if !PREFACE.starts_with(&self.input) {
                self.is_worth_parsing = true;
                return FirstBytes::Http1(Box::new(self));
            }
            match poll_fn(|cx| self.poll_fill(cx)).await {
                Ok(true) => {}
                Ok(false) | Err(_) => return FirstBytes::Nothing(self.stream),
            }
        }
    }

    /// What the service of this connection has to know.
    pub(crate) fn gate(&self) -> Arc<BodyGate> {
        self.gate.clone()
    }

    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }

    /// The connection behind an upgrade; `read` is what hyper has read of it already.
    pub(crate) fn into_tunneled(mut self, read: &[u8]) -> Rewound {
        self.compact_input();
        Rewound::new([read, &self.input].concat(), self.stream)
    }

    /// Ready once checked bytes are there; false at the end.
    fn poll_checked(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.checked == 0 {
            if matches!(self.expects, Expects::Head) && self.gate.is_answering(cx) {
                return self.poll_closed(cx);
            }
            if matches!(self.expects, Expects::End) && self.gate.is_answering(cx) {
                return Poll::Pending; // an end would look like a client that is gone
            }
            let rest = self.input.get(self.start..).unwrap_or_default();
            match &mut self.expects {
                Expects::Head if self.is_worth_parsing && !rest.is_empty() => {
                    match check_head(rest, &self.limits) {
                        Ok(Some(ParsedHead { bytes, length, .. })) => {
                            self.gate.begin();
                            (self.waits_for, self.is_flushed) = (None, false);
                            self.checked = bytes;
                            self.expects = match length {
                                BodyLength::Known(0) => Expects::Head,
                                BodyLength::Known(length) => Expects::Body(length),
                                BodyLength::Chunked => Expects::Chunks(Chunked::default()),
                            };
                        }
                        Ok(None) => self.is_worth_parsing = false,
                        Err(error) => {
                            self.gate.begin();
                            self.gate.refuse(error);
                            (self.input, self.start) = (REFUSED.to_vec(), 0);
                            (self.checked, self.expects) = (REFUSED.len(), Expects::End);
                        }
                    }
                    continue;
                }
                Expects::Head => {}
                Expects::End => return Poll::Ready(Ok(false)),
                Expects::Body(left) => {
                    ready!(self.gate.poll_max_body(cx));
                    self.checked = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= self.checked as u64;
                    if *left == 0 {
                        (self.expects, self.is_worth_parsing) = (Expects::Head, true);
                    }
                }
                Expects::Chunks(chunked) => {
                    let max_body = ready!(self.gate.poll_max_body(cx));
                    match chunked.decode(rest, max_body, |_| {}) {
                        Ok(bytes) => self.checked = bytes,
                        Err(bad) => {
                            self.gate.refuse(refusal_of(bad));
                            self.expects = Expects::End;
                            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                        }
                    }
                    if chunked.is_done() {
                        (self.expects, self.is_worth_parsing) = (Expects::Head, true);
                    }
                }
            }
            if self.checked == 0 && !ready!(self.poll_fill(cx))? {
                return Poll::Ready(Ok(false));
            }
        }
        self.gate.set_more(self.input.len() > self.start + self.checked);
        Poll::Ready(Ok(true))
    }

    /// Ready once the client has closed the connection in the middle of its exchange. The next request is not looked at
    /// before the last one is answered: what is known of a message is known of one.
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        self.compact_input();
        while self.input.is_empty() {
            self.input.reserve(READ_BYTES);
            if ready!(pin!(self.stream.read_buf(&mut self.input)).poll(cx))? == 0 {
                return Poll::Ready(Ok(false));
            }
            self.is_worth_parsing = true;
        }
        Poll::Pending
    }

    /// Reads some bytes; false if the client has closed, or the head is not there in time.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        self.compact_input();
        let is_head = matches!(self.expects, Expects::Head);
        if is_head {
            self.start_deadline();
        }
        let old_len = self.input.len();
        self.input.reserve(READ_BYTES);
        if let Poll::Ready(read) = pin!(self.stream.read_buf(&mut self.input)).poll(cx) {
            let fresh = self.input.get(old_len..).unwrap_or_default();
            self.is_worth_parsing |= fresh.contains(&b'\n') || self.input.len() > self.limits.max_head;
            return Poll::Ready(read.map(|bytes| bytes > 0));
        }
        if self.input.is_empty() {
            self.input = Vec::new(); // an idle connection keeps no room for a read
        }
        if self.waits_for == Some(WaitsFor::NextRequest) && self.drain_begun.as_mut().poll(cx).is_ready() {
            self.start_deadline();
        }
        match is_head && self.read_deadline.poll(cx).is_ready() {
            true => Poll::Ready(Ok(false)),
            false => Poll::Pending,
        }
    }

    /// Starts the deadline of what is waited for, unless it runs. It is absolute: single bytes do not extend it.
    fn start_deadline(&mut self) {
        let (waits_for, limit) = match (self.input.is_empty(), self.drain.has_begun()) {
            (true, false) => (WaitsFor::NextRequest, self.limits.idle_timeout),
            (true, true) => (WaitsFor::LastRequest, IDLE_GRACE),
            (false, _) => (WaitsFor::RestOfHead, self.limits.head_timeout),
        };
        if self.waits_for != Some(waits_for) {
            self.waits_for = Some(waits_for);
            self.read_deadline.set(Instant::now() + limit);
        }
    }

    /// Moves the input that hyper does not have to the front.
    fn compact_input(&mut self) {
        if self.start == self.input.len() {
            self.input.clear();
        } else {
            self.input.drain(..self.start);
        }
        self.start = 0;
    }
}

/// Checks a head, also for what hyper would refuse without asking the service.
fn check_head<'a>(bytes: &'a [u8], limits: &NetLimits) -> Result<Option<ParsedHead<'a>>, HttpError> {
    let parsed = parse(bytes, limits.max_head, limits.max_headers)?;
    if parsed.is_some_and(|parsed| matches!(parsed.length, BodyLength::Known(length) if length > LENGTH_MAX)) {
        return Err(HttpError::BodyTooLarge);
    }
    let is_target =
        |target: &[u8]| is_plain_target(target) || (!target.contains(&b'#') && Uri::try_from(target).is_ok());
    match parsed.map(|parsed| is_target(target(bytes, &parsed))) {
        Some(false) => Err(HttpError::Malformed("the target is malformed")),
        _ => Ok(parsed),
    }
}

/// True for most targets that hyper takes: a path, and perhaps a query, of letters, digits and common marks.
fn is_plain_target(target: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~%?=&+,:@".contains(byte);
    target.first() == Some(&b'/') && target.len() < 4096 && target.iter().all(is_plain)
}

/// The target of a valid head: the second word of its first line that is not empty.
fn target<'a>(bytes: &'a [u8], parsed: &ParsedHead<'_>) -> &'a [u8] {
    let head = bytes.get(..parsed.bytes).unwrap_or_default().trim_ascii_start();
    head.split(|byte| *byte == b' ').nth(1).unwrap_or_default()
}

fn refusal_of(bad: BadChunk) -> HttpError {
    match bad {
        BadChunk::Malformed => HttpError::Malformed("the chunked body is malformed"),
        BadChunk::TooLarge => HttpError::BodyTooLarge,
    }
}

impl AsyncRead for CheckedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if ready!(self.poll_checked(cx))? {
            let some = self.checked.min(buf.remaining());
            buf.put_slice(self.input.get(self.start..self.start + some).unwrap_or_default());
            (self.start, self.checked) = (self.start + some, self.checked - some);
        }
        Poll::Ready(Ok(()))
    }
}

impl CheckedStream {
    /// A write that waits for the client has a deadline; each one that moves starts anew.
    fn poll_in_time<T>(&mut self, cx: &mut Context<'_>, write: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.write_deadline = None;
            return write;
        }
        let limit = self.limits.write_timeout;
        let deadline = self.write_deadline.get_or_insert_with(|| Deadline::new(Instant::now() + limit));
        deadline.poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Writes interim responses to their end.
    fn poll_interim(&mut self, cx: &mut Context<'_>, more: Option<Vec<u8>>) -> Poll<io::Result<()>> {
        self.interim.extend(more.into_iter().flatten());
        while !self.interim.is_empty() {
            let write = Pin::new(&mut self.stream).poll_write(cx, &self.interim);
            match ready!(self.poll_in_time(cx, write))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => _ = self.interim.drain(..written),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for CheckedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let interim = self.gate.interim_before_write(self.is_flushed);
        ready!(self.poll_interim(cx, interim))?;
        self.is_flushed = false;
        let write = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.poll_in_time(cx, write)
    }

    /// hyper flushes when it has written all it has.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let interim = self.gate.interim_while_idle(cx);
        ready!(self.poll_interim(cx, interim))?;
        self.is_flushed = true;
        let flush = Pin::new(&mut self.stream).poll_flush(cx);
        self.poll_in_time(cx, flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
