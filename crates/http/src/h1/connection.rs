//! One HTTP/1 connection: reads, answers every complete request, writes once, waits for more.
//!
//! Pipelined requests are answered in order, one at a time, and their responses are written together. At most one body
//! is in memory, and never beyond its limit. Every wait for the client has a deadline.

mod buffers;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFuture;
use tollgate_net::{BudgetPermit, Deadline, IDLE_GRACE, ListenerContext, Peer, Protocol, Stream};
use tollgate_service::Reply;
use tollgate_web::h1::{BadChunk, BodyLength, Chunked, ParsedHead, parse};
use tollgate_web::h2::{self, PREFACE};
use tollgate_web::{Buffered, Handler, HttpError, TOO_MANY_CONNECTIONS, handle_or_fail};

use self::buffers::Awaited;
use super::response::{self, ConnectionHeader};

/// Size of a read. A check takes a quarter of it.
const READ_BYTES: usize = 2 << 10;
/// Responses are written once they exceed this size, before the next request is answered: a client that does not read
/// its responses gets no more of them.
const WRITE_BYTES: usize = 64 << 10;
/// Buffers larger than this are freed while the connection is idle. There are four, and an idle connection must not
/// take more than 32 KiB.
const IDLE_BUFFER_BYTES: usize = 6 << 10;
/// How long an idle connection keeps large buffers: a client that sends the next large request at once reuses them.
const BUFFER_IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// HTTP/1.1 framed by hand, and HTTP/2, on a listener; `H` answers the requests.
pub struct Http<H> {
    handler: Arc<H>,
    /// The same handler, for HTTP/2.
    app: Arc<Buffered<H>>,
}

impl<H: Handler> Http<H> {
    /// HTTP with this handler.
    pub fn new(handler: H) -> Http<H> {
        let handler = Arc::new(handler);
        Http { app: Arc::new(Buffered::new(handler.clone())), handler }
    }
}

impl<H: Handler> Protocol for Http<H> {
    async fn serve(&self, stream: Stream, peer: &Peer, context: &ListenerContext) {
        let Http { handler, app } = self;
        if h2::is_agreed(&stream) {
            return h2::serve(Vec::new(), stream, peer, context, app).await;
        }
        let connection = Http1Connection::new(stream, peer, context);
        if let ConnectionEnd::Http2(read, stream) = connection.serve(&**handler).await {
            h2::serve(read, stream, peer, context, app).await;
        }
    }

    fn too_many_connections(&self) -> &'static [u8] {
        TOO_MANY_CONNECTIONS
    }
}

/// A connection and its buffers.
struct Http1Connection<'a> {
    stream: Stream,
    peer: &'a Peer,
    context: &'a ListenerContext,
    /// The byte budget of the body, held until its request is answered.
    permit: BudgetPermit,
    deadline: Deadline,
    input: Vec<u8>,
    /// Length of the part of the input that is consumed.
    start: usize,
    output: Vec<u8>,
    body: Vec<u8>,
    reply: Reply,
    /// Wakes the connection when the drain begins. Polled once, to register; afterwards `Drain::has_begun` is read.
    drain_begun: Pin<Box<WaitForCancellationFuture<'a>>>,
    is_drain_polled: bool,
    /// No request was answered yet: the HTTP/2 preface may still follow.
    is_new: bool,
    /// A head has started, and its deadline is set.
    in_head: bool,
    /// The current request is a HEAD: its response has no body.
    head_only: bool,
}

/// How a connection ended.
enum ConnectionEnd {
    /// Closed.
    Closed,
    /// The client speaks HTTP/2: the bytes already read start with its preface.
    Http2(Vec<u8>, Stream),
}

/// Why no more requests are read.
enum Stop {
    /// The client closed the connection, or does not read.
    Gone,
    /// The message cannot be read: an error response, then close.
    Error(HttpError),
    /// The HTTP/2 preface.
    Preface,
    /// Close once the output is written: the last response is in it, or the deadline has passed.
    Close,
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Stop {
        Stop::Gone // the connection is broken, so no response can be sent
    }
}

impl<'a> Http1Connection<'a> {
    fn new(stream: Stream, peer: &'a Peer, context: &'a ListenerContext) -> Http1Connection<'a> {
        Http1Connection {
            stream,
            peer,
            context,
            permit: BudgetPermit::default(),
            deadline: Deadline::new(Instant::now() + context.limits.idle_timeout),
            input: Vec::new(),
            start: 0,
            output: Vec::new(),
            body: Vec::new(),
            reply: Reply::default(),
            drain_begun: Box::pin(context.drain.begun()),
            is_drain_polled: false,
            is_new: true,
            in_head: false,
            head_only: false,
        }
    }

    async fn serve<H: Handler>(mut self, handler: &H) -> ConnectionEnd {
        loop {
            let stop = match self.request(handler).await {
                Ok(()) => continue,
                Err(stop) => stop,
            };
            match stop {
                Stop::Gone => return ConnectionEnd::Closed,
                Stop::Preface => return ConnectionEnd::Http2(self.input, self.stream),
                Stop::Close => {}
                Stop::Error(error) => {
                    self.reply.clear();
                    handler.reject(error, &mut self.reply);
                    handler.completed(None, self.reply.status);
                    response::write(
                        &self.reply,
                        ConnectionHeader::Close,
                        self.head_only,
                        self.context.clock.wall(),
                        &mut self.output,
                    );
                }
            }
            if self.flush().await.is_ok() {
                self.stream.linger().await;
            }
            return ConnectionEnd::Closed;
        }
    }

    /// Reads and answers one request.
    async fn request<H: Handler>(&mut self, handler: &H) -> Result<(), Stop> {
        let (framing, prepared) = loop {
            match self.next_head(handler)? {
                Some(head) => break head,
                None => self.await_head().await?,
            }
        };
        if let Some((prepared, max_body)) = &prepared {
            self.read_body(&framing, *max_body).await?;
            let body = match framing.length {
                BodyLength::Known(length) => self.input.get(self.start..).and_then(|rest| rest.get(..length as usize)),
                BodyLength::Chunked => Some(self.body.as_slice()),
            };
            handle_or_fail(handler, prepared, body.unwrap_or_default(), &mut self.reply).await;
            if let BodyLength::Known(length) = framing.length {
                self.start += length as usize; // the whole body is in the input
            }
        } else if framing.length != BodyLength::Known(0) {
            self.reply.close = true; // refused by its head: the body is not read
        }
        handler.completed(prepared.as_ref().map(|(prepared, _)| prepared), self.reply.status);
        self.respond(&framing).await
    }

    /// Parses and prepares the next head; `None` if it is incomplete.
    #[allow(clippy::type_complexity, reason = "one place, read once")]
    fn next_head<H: Handler>(&mut self, handler: &H) -> Result<Option<(Framing, Option<(H::Prepared, usize)>)>, Stop> {
        let rest = self.input.get(self.start..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        if self.is_new && (rest.starts_with(PREFACE) || PREFACE.starts_with(rest)) {
            return if rest.len() < PREFACE.len() { Ok(None) } else { Err(Stop::Preface) };
        }
        let parsed = parse(rest, self.context.limits.max_head, self.context.limits.max_headers).map_err(Stop::Error)?;
        let Some(ParsedHead { head, bytes, length, keep_alive, expects_continue, is_http10 }) = parsed else {
            return Ok(None);
        };
        if let Some(repeated) = head.repeated
            && !handler.may_repeat(&head)
        {
            return Err(Stop::Error(HttpError::Malformed(repeated)));
        }
        self.reply.clear();
        let prepared = handler.prepare(self.peer, &head, &mut self.reply);
        self.head_only = head.method == "HEAD";
        self.start += bytes;
        (self.is_new, self.in_head) = (false, false);
        Ok(Some((Framing { length, keep_alive, expects_continue, is_http10 }, prepared)))
    }

    /// Writes the pending responses, and waits for more of a head.
    async fn await_head(&mut self) -> Result<(), Stop> {
        self.flush().await?;
        self.compact_input();
        if self.input.is_empty() && self.has_large_buffer() {
            // A client that sends large requests back to back keeps its buffers; they are freed after a pause.
            self.deadline.set(Instant::now() + BUFFER_IDLE_TIMEOUT);
            match self.read(Awaited::NextRequest).await {
                Err(Stop::Close) if !self.context.drain.has_begun() => self.free_large_buffers(),
                other => return other,
            }
        }
        let now = Instant::now();
        if self.start == self.input.len() {
            let is_draining = self.context.drain.has_begun();
            let limit = if is_draining { IDLE_GRACE } else { self.context.limits.idle_timeout };
            self.deadline.set(now + limit);
            self.read(if is_draining { Awaited::Rest } else { Awaited::NextRequest }).await?;
        } else {
            // Absolute: single bytes and empty lines before the head do not extend it.
            if !self.in_head {
                self.deadline.set(now + self.context.limits.head_timeout);
                self.in_head = true;
            }
            let head_start = self.start;
            loop {
                let old_len = self.input.len();
                self.read(Awaited::Rest).await?;
                let (rest, fresh) = (self.input.get(head_start..), self.input.get(old_len..));
                let (rest, fresh) = (rest.unwrap_or_default(), fresh.unwrap_or_default());
                // Parse again only after a line end: it may complete the head or make it invalid. Without one, only the
                // HTTP/2 preface can be complete.
                let is_line = fresh.contains(&b'\n') || (self.is_new && rest.len() <= PREFACE.len());
                if is_line || rest.len() > self.context.limits.max_head {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Reads until the body is complete.
    async fn read_body(&mut self, framing: &Framing, max_body: usize) -> Result<(), Stop> {
        match framing.length {
            BodyLength::Known(length) if length > max_body as u64 => Err(Stop::Error(HttpError::BodyTooLarge)),
            BodyLength::Known(length) => {
                let wanted = length as usize;
                if self.input.len() - self.start >= wanted {
                    return Ok(());
                }
                self.begin_body(framing, length).await?;
                self.input.reserve((self.start + wanted).saturating_sub(self.input.len()));
                while self.input.len() - self.start < wanted {
                    self.read_more_body().await?;
                }
                Ok(())
            }
            BodyLength::Chunked => {
                self.body.clear();
                let mut chunked = Chunked::default();
                let mut begun = false;
                loop {
                    let rest = self.input.get(self.start..).unwrap_or_default();
                    let keep = |data: &[u8]| self.body.extend_from_slice(data);
                    self.start += chunked.decode(rest, max_body as u64, keep).map_err(|bad| {
                        Stop::Error(match bad {
                            BadChunk::Malformed => HttpError::Malformed("the chunked body is malformed"),
                            BadChunk::TooLarge => HttpError::BodyTooLarge,
                        })
                    })?;
                    if chunked.is_done() {
                        return Ok(());
                    }
                    if !begun {
                        self.begin_body(framing, max_body as u64).await?;
                        begun = true;
                    }
                    self.compact_input();
                    self.read_more_body().await?;
                }
            }
        }
    }

    /// Reserves memory for a body that is incomplete, starts its deadline, and sends `100 Continue` if expected.
    async fn begin_body(&mut self, framing: &Framing, bytes: u64) -> Result<(), Stop> {
        self.permit = self.context.budget.reserve(bytes).ok_or(Stop::Error(HttpError::NoRoom))?;
        if framing.expects_continue {
            self.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        self.flush().await?;
        self.compact_input();
        self.deadline.set(Instant::now() + self.context.limits.body_timeout);
        Ok(())
    }

    async fn read_more_body(&mut self) -> Result<(), Stop> {
        match self.read(Awaited::Rest).await {
            Err(Stop::Close) => Err(Stop::Error(HttpError::TooSlow)), // a late body gets a response
            other => other,
        }
    }

    /// Appends the reply to the output.
    async fn respond(&mut self, framing: &Framing) -> Result<(), Stop> {
        // During a drain, requests that were already read are still answered.
        let is_last = self.context.drain.has_begun() && self.start == self.input.len();
        let closes = self.reply.close || !framing.keep_alive || is_last;
        let connection = match (closes, framing.is_http10) {
            (true, _) => ConnectionHeader::Close,
            (false, true) => ConnectionHeader::KeepAlive,
            (false, false) => ConnectionHeader::Omitted,
        };
        response::write(&self.reply, connection, self.head_only, self.context.clock.wall(), &mut self.output);
        (self.head_only, self.permit) = (false, BudgetPermit::default());
        if closes {
            return Err(Stop::Close);
        }
        if self.output.len() > WRITE_BYTES {
            self.flush().await?;
        }
        Ok(())
    }
}

/// The framing of a message, kept after its head is consumed.
#[derive(Clone, Copy)]
struct Framing {
    length: BodyLength,
    keep_alive: bool,
    expects_continue: bool,
    is_http10: bool,
}
