//! One HTTP/1 connection: reads what has come, answers all of it, writes once, waits for more.
//!
//! Pipelined requests are answered in order, one at a time, and leave together: a batch costs one write. At most one
//! body is in memory, whole, and never more than it may have. Whatever waits for the caller has a deadline.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout};
use tokio_util::sync::WaitForCancellationFuture;

use super::chunked::{BadChunk, Chunked};
use super::head::{BodyLength, ParsedHead, parse};
use super::render::{self, After};
use tollgate_net::{BudgetPermit, Deadline, IDLE_GRACE, ListenerContext, Peer, Stream};
use tollgate_service::Reply;
use tollgate_web::{Handler, HttpError, handle_or_fail};

/// Read at once. A check is a quarter of it.
const READ_BYTES: usize = 2 << 10;
/// Answers that leave together: more are written first. A caller that does not read them stops the reading of others.
const WRITE_BYTES: usize = 64 << 10;
/// Buffers larger than this are given back before waiting for the next request. There are four of them, and a
/// connection that waits must not take more than 32 KiB.
const KEEP_BYTES: usize = 6 << 10;
/// How long a connection may keep large buffers while nothing comes.
const BREATH: Duration = Duration::from_secs(1);
/// How long, and how much, is read after a last answer so that closing does not reset it away.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 << 10;
/// How an HTTP/2 caller that knows it speaks to HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection and what it holds between two waits.
pub(super) struct Connection<'a> {
    stream: Stream,
    peer: &'a Peer,
    context: &'a ListenerContext,
    /// What a body on its way was given; until its request is answered.
    room: BudgetPermit,
    deadline: Deadline,
    input: Vec<u8>,
    /// How much of the input has been answered.
    start: usize,
    output: Vec<u8>,
    body: Vec<u8>,
    reply: Reply,
    /// Wakes the connection when the drain begins. Polled once: whoever it wakes then asks [`Drain::has_begun`].
    begun: Pin<Box<WaitForCancellationFuture<'a>>>,
    hears_drain: bool,
    /// No request was answered yet: it may still turn out to be HTTP/2.
    is_new: bool,
    /// A head has begun, and its time is running.
    in_head: bool,
    /// The request being answered is a HEAD: whatever is said, it is said without a body.
    head_only: bool,
}

/// How a connection ended.
pub(super) enum Ending {
    /// It is over.
    Over,
    /// It is HTTP/2: these bytes were read, and begin with its preface.
    Preface(Vec<u8>, Stream),
}

/// Why no more requests are read.
enum Stop {
    /// The caller is gone, or as good as gone.
    Gone,
    /// What it sent cannot be read: it is told, and the connection ends.
    Error(HttpError),
    /// HTTP/2 begins.
    Preface,
    /// The last answer has been made.
    Close,
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Stop {
        Stop::Gone // a caller that breaks a connection wants to hear nothing about it
    }
}

impl<'a> Connection<'a> {
    pub(super) fn new(stream: Stream, peer: &'a Peer, context: &'a ListenerContext) -> Connection<'a> {
        Connection {
            stream,
            peer,
            context,
            room: BudgetPermit::default(),
            deadline: Deadline::new(Instant::now() + context.limits.idle_timeout),
            input: Vec::new(),
            start: 0,
            output: Vec::new(),
            body: Vec::new(),
            reply: Reply::default(),
            begun: Box::pin(context.drain.begun()),
            hears_drain: false,
            is_new: true,
            in_head: false,
            head_only: false,
        }
    }

    pub(super) async fn serve<H: Handler>(mut self, handler: &H) -> Ending {
        loop {
            let stop = match self.request(handler).await {
                Ok(()) => continue,
                Err(stop) => stop,
            };
            match stop {
                Stop::Gone => return Ending::Over,
                Stop::Preface => return Ending::Preface(self.input, self.stream),
                Stop::Close => {}
                Stop::Error(fault) => {
                    self.reply.clear();
                    handler.reject(fault, &mut self.reply);
                    handler.completed(None, self.reply.status);
                    render::reply(
                        &self.reply,
                        After::Close,
                        self.head_only,
                        self.context.clock.wall(),
                        &mut self.output,
                    );
                }
            }
            if self.flush().await.is_ok() {
                self.linger().await;
            }
            return Ending::Over;
        }
    }

    /// Reads and answers one request.
    async fn request<H: Handler>(&mut self, handler: &H) -> Result<(), Stop> {
        let (call, plan) = loop {
            match self.open(handler)? {
                Some(opened) => break opened,
                None => self.await_head().await?,
            }
        };
        if let Some((plan, max_body)) = &plan {
            self.read_body(&call, *max_body).await?;
            let body = match call.length {
                BodyLength::Known(length) => self.input.get(self.start..).and_then(|rest| rest.get(..length as usize)),
                BodyLength::Chunked => Some(self.body.as_slice()),
            };
            handle_or_fail(handler, plan, body.unwrap_or_default(), &mut self.reply).await;
            if let BodyLength::Known(length) = call.length {
                self.start += length as usize; // read whole, so it fits
            }
        } else if call.length != BodyLength::Known(0) {
            self.reply.close = true; // refused by its head: its body is not waited for
        }
        handler.completed(plan.as_ref().map(|(plan, _)| plan), self.reply.status);
        self.respond(&call).await
    }

    /// Looks at the head that comes next, if it is all there.
    #[allow(clippy::type_complexity, reason = "one place, read once")]
    fn open<H: Handler>(&mut self, handler: &H) -> Result<Option<(Call, Option<(H::Prepared, usize)>)>, Stop> {
        let rest = self.input.get(self.start..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        if self.is_new && (rest.starts_with(PREFACE) || PREFACE.starts_with(rest)) {
            return if rest.len() < PREFACE.len() { Ok(None) } else { Err(Stop::Preface) };
        }
        let parsed = parse(rest, self.context.limits.max_head, self.context.limits.max_headers).map_err(Stop::Error)?;
        let Some(ParsedHead { head, bytes, length, keep_alive, expects_continue, is_old }) = parsed else {
            return Ok(None);
        };
        if let Some(repeated) = head.repeated
            && !handler.may_repeat(&head)
        {
            return Err(Stop::Error(HttpError::Malformed(repeated)));
        }
        self.reply.clear();
        let plan = handler.prepare(self.peer, &head, &mut self.reply);
        self.head_only = head.method == "HEAD";
        self.start += bytes;
        (self.is_new, self.in_head) = (false, false);
        Ok(Some((Call { length, keep_alive, expects_continue, is_old }, plan)))
    }

    /// Writes what was answered so far, and waits for more of a head.
    async fn await_head(&mut self) -> Result<(), Stop> {
        self.flush().await?;
        self.make_room();
        if self.input.is_empty() && self.holds_much() {
            // Whoever sends large requests one after the other keeps what they made grow; who pauses does not.
            self.deadline.set(Instant::now() + BREATH);
            match self.read(Wait::Between).await {
                Err(Stop::Close) if !self.context.drain.has_begun() => self.give_back(),
                other => return other,
            }
        }
        let now = Instant::now();
        if self.start == self.input.len() {
            let last_call = self.context.drain.has_begun();
            let patience = if last_call { IDLE_GRACE } else { self.context.limits.idle_timeout };
            self.deadline.set(now + patience);
            self.read(if last_call { Wait::Within } else { Wait::Between }).await?;
        } else {
            // Absolute: neither a byte now and then nor an empty line before the head buys time.
            if !self.in_head {
                self.deadline.set(now + self.context.limits.head_timeout);
                self.in_head = true;
            }
            let begun = self.start;
            loop {
                let known = self.input.len();
                self.read(Wait::Within).await?;
                let (rest, fresh) = (self.input.get(begun..), self.input.get(known..));
                let (rest, fresh) = (rest.unwrap_or_default(), fresh.unwrap_or_default());
                // A line is worth looking at the head again: it may be the last one, or no line of a head. Without one
                // it only is for whoever may still be about to serve HTTP/2.
                let is_line = fresh.contains(&b'\n') || (self.is_new && rest.len() <= PREFACE.len());
                if is_line || rest.len() > self.context.limits.max_head {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Waits until the body is there.
    async fn read_body(&mut self, call: &Call, max_body: usize) -> Result<(), Stop> {
        match call.length {
            BodyLength::Known(length) if length > max_body as u64 => Err(Stop::Error(HttpError::BodyTooLarge)),
            BodyLength::Known(length) => {
                let wanted = length as usize;
                if self.input.len() - self.start >= wanted {
                    return Ok(());
                }
                self.begin_body(call, length).await?;
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
                    self.start += chunked.decode(rest, &mut self.body, max_body).map_err(|bad| {
                        Stop::Error(match bad {
                            BadChunk::Malformed => HttpError::Malformed("the body is not made of chunks"),
                            BadChunk::TooLarge => HttpError::BodyTooLarge,
                        })
                    })?;
                    if chunked.is_done() {
                        return Ok(());
                    }
                    if !begun {
                        self.begin_body(call, max_body as u64).await?;
                        begun = true;
                    }
                    self.make_room();
                    self.read_more_body().await?;
                }
            }
        }
    }

    /// The body is not there yet: its time begins, and the caller may wait to be asked for it.
    async fn begin_body(&mut self, call: &Call, bytes: u64) -> Result<(), Stop> {
        self.room = self.context.budget.reserve(bytes).ok_or(Stop::Error(HttpError::NoRoom))?;
        if call.expects_continue {
            self.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        self.flush().await?;
        self.make_room();
        self.deadline.set(Instant::now() + self.context.limits.body_timeout);
        Ok(())
    }

    async fn read_more_body(&mut self) -> Result<(), Stop> {
        match self.read(Wait::Within).await {
            Err(Stop::Close) => Err(Stop::Error(HttpError::TooSlow)), // late with a body is worth an answer
            other => other,
        }
    }

    /// Appends the reply to what leaves next.
    async fn respond(&mut self, call: &Call) -> Result<(), Stop> {
        // At the end of a server, what was read already is still answered.
        let is_last = self.context.drain.has_begun() && self.start == self.input.len();
        let closes = self.reply.close || !call.keep_alive || is_last;
        let after = match (closes, call.is_old) {
            (true, _) => After::Close,
            (false, true) => After::OpenSaidSo,
            (false, false) => After::Open,
        };
        render::reply(&self.reply, after, self.head_only, self.context.clock.wall(), &mut self.output);
        (self.head_only, self.room) = (false, BudgetPermit::default());
        if closes {
            return Err(Stop::Close);
        }
        if self.output.len() > WRITE_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Moves what is unread to the front, and makes room behind it.
    fn make_room(&mut self) {
        if self.start == self.input.len() {
            self.input.clear();
        } else if self.start > 0 {
            self.input.drain(..self.start);
        }
        self.start = 0;
        if self.input.capacity() - self.input.len() < READ_BYTES / 2 {
            self.input.reserve(READ_BYTES);
        }
    }

    /// Gives back what large requests and answers made grow. Only between requests: a body may be half read.
    fn give_back(&mut self) {
        for buffer in self.buffers().into_iter().filter(|buffer| buffer.capacity() > KEEP_BYTES) {
            *buffer = Vec::new();
        }
    }

    fn holds_much(&mut self) -> bool {
        self.buffers().into_iter().any(|buffer| buffer.capacity() > KEEP_BYTES)
    }

    fn buffers(&mut self) -> [&mut Vec<u8>; 4] {
        [&mut self.input, &mut self.output, &mut self.body, &mut self.reply.body]
    }

    /// Reads some bytes before the deadline. Between requests a drain that begins cuts the wait short.
    async fn read(&mut self, wait: Wait) -> Result<(), Stop> {
        if self.input.capacity() == self.input.len() {
            self.input.reserve(READ_BYTES);
        }
        let Connection { stream, input, deadline, context: ListenerContext { drain, .. }, begun, hears_drain, .. } =
            self;
        let mut read = pin!(stream.read_buf(input));
        let mut last_call = false;
        let read = poll_fn(|cx| {
            if let Poll::Ready(read) = read.as_mut().poll(cx) {
                return Poll::Ready(Ok(read));
            }
            if !*hears_drain {
                *hears_drain = true;
                let _ = begun.as_mut().poll(cx); // only to be woken
            }
            if wait == Wait::Between && !last_call && drain.has_begun() {
                last_call = true;
                deadline.set(Instant::now() + IDLE_GRACE);
            }
            deadline.poll(cx).map(|()| Err(Stop::Close))
        });
        match read.await?? {
            0 => Err(Stop::Gone),
            _ => Ok(()),
        }
    }

    /// Writes what has been answered, before the deadline.
    async fn flush(&mut self) -> Result<(), Stop> {
        if self.output.is_empty() {
            return Ok(());
        }
        let Connection { stream, output, deadline, context: ListenerContext { limits, budget, .. }, .. } = self;
        let mut written = 0;
        let mut waits = None;
        poll_fn(|cx| {
            while let Some(rest) = output.get(written..).filter(|rest| !rest.is_empty()) {
                match pin!(&mut *stream).poll_write(cx, rest) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(Stop::Gone)),
                    Poll::Ready(Ok(some)) => written += some,
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Stop::Gone)),
                    Poll::Pending => {
                        if waits.is_none() {
                            // Nobody may leave more unread than there is room for.
                            waits = budget.reserve(rest.len() as u64);
                            if waits.is_none() {
                                return Poll::Ready(Err(Stop::Gone));
                            }
                            deadline.set(Instant::now() + limits.write_timeout);
                        }
                        return deadline.poll(cx).map(|()| Err(Stop::Gone));
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
        .await?;
        output.clear();
        if matches!(stream, Stream::Tls(_)) {
            timeout(limits.write_timeout, stream.flush()).await.map_err(|_| Stop::Gone)??;
        }
        Ok(())
    }

    /// Ends politely: says that nothing more comes, and reads for a moment what is still on its way, because closing
    /// with unread bytes resets the connection and takes the last answer with it.
    async fn linger(mut self) {
        let Connection { stream, .. } = &mut self;
        let polite = async {
            stream.shutdown().await?;
            let mut rest = [0; 4096];
            let mut read = 0;
            while read < LINGER_BYTES {
                match stream.read(&mut rest).await? {
                    0 => break,
                    some => read += some,
                }
            }
            io::Result::Ok(())
        };
        let _ = timeout(LINGER, polite).await; // the caller had its chance
    }
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// The next request: a drain that begins cuts it short.
    Between,
    /// The rest of something, or the last call.
    Within,
}

/// What is remembered of a head once its bytes are gone.
#[derive(Clone, Copy)]
struct Call {
    length: BodyLength,
    keep_alive: bool,
    expects_continue: bool,
    is_old: bool,
}
