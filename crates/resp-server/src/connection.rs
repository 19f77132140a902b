//! Connection loop: reads the available bytes, answers all complete commands, writes once, waits for more.
//!
//! All buffers are bounded: a command by its request limits, a batch by its number of commands and reply bytes. The
//! loop does not read while a batch is unwritten, so a client that does not read its replies blocks only itself.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_resp::{ProtocolError, ProtocolVersion, ReplyWriter, RequestParser};

use super::Resp;
use super::session::{PendingThrottle, PendingWork, Session, SessionAction};
use super::wire::{ReadWait, SessionEnd, TimedStream};
use crate::metrics::RespFault;
use tollgate_net::{BudgetPermit, ListenerContext, Peer, Stream};

/// Initial read size. A pipeline of sixteen throttles takes a quarter of it.
const READ_BYTES: usize = 4 << 10;
/// Maximum read size, for clients that fill their buffer.
const READ_BYTES_MAX: usize = 64 << 10;
/// Reply bytes after which a batch is written. With the longest reply, far below a megabyte.
const WRITE_BYTES: usize = 64 << 10;
/// Commands after which a batch is written.
const BATCH_MAX: usize = 1024;
/// Reply bytes of an unauthenticated connection before it is closed.
const UNAUTHENTICATED_BYTES_MAX: usize = 64 << 10;
/// Minimum charge per unauthenticated command: an empty command has no reply.
const UNAUTHENTICATED_COMMAND_BYTES: usize = 32;
/// How long a transaction may stay open: long enough to type one by hand.
const TRANSACTION_OPEN_MAX: Duration = Duration::from_secs(60);
/// Buffers larger than this are freed before a long wait, because most of thousands of connections are idle.
const SMALL_BUFFER_BYTES: usize = 6 << 10;
/// How long an idle connection may keep large buffers.
const LARGE_BUFFER_HOLD: Duration = Duration::from_secs(1);
/// Consecutive small batches after which large buffers are freed.
const SMALL_BATCHES_MAX: u32 = 16;

/// One connection, with its buffers and deadlines.
pub(super) struct RespConnection<'a> {
    io: TimedStream<'a>,
    session: Session<'a>,
    parser: RequestParser,
    /// Throttles that wait for the store, to be decided together.
    pending: Vec<PendingThrottle>,
    input: Vec<u8>,
    /// Bytes of the input already answered.
    start: usize,
    output: Vec<u8>,
    /// Commands answered since the last write.
    answered: usize,
    /// Reply bytes since the connection was last unauthenticated.
    unauthenticated_bytes: usize,
    /// When the connection must have authenticated.
    auth_due: Option<Instant>,
    /// When the transaction must have ended.
    exec_due: Option<Instant>,
    /// Largest buffer use of the batch, and the number of consecutive small batches.
    used: usize,
    small_batches: u32,
    /// When the incomplete command must be complete.
    command_due: Option<Instant>,
    /// Byte budget held by incomplete and queued commands.
    room: BudgetPermit,
    idle: Option<Duration>,
    /// The last read filled the buffer.
    is_filled: bool,
    /// The last read came after the drain began: the connection closes once it is answered.
    is_last: bool,
}

/// Why answering paused.
enum Pause {
    /// All complete commands are answered.
    NeedInput,
    /// The batch is full and must be written.
    BatchFull,
    /// Pending throttles must be decided first.
    DecideThrottles,
    /// A command must await the store. It is still at the start of the input, with this many bytes.
    Await(PendingWork, usize),
}

impl<'a> RespConnection<'a> {
    pub(super) fn new(
        stream: Stream,
        peer: &'a Peer,
        context: &'a ListenerContext,
        resp: &'a Resp,
    ) -> RespConnection<'a> {
        RespConnection {
            io: TimedStream::new(stream, context),
            session: Session::new(resp, peer),
            parser: RequestParser::default(),
            pending: Vec::new(),
            input: Vec::new(),
            start: 0,
            output: Vec::new(),
            answered: 0,
            unauthenticated_bytes: 0,
            auth_due: None,
            exec_due: None,
            used: 0,
            small_batches: 0,
            command_due: None,
            room: BudgetPermit::default(),
            idle: resp.settings.idle_timeout,
            is_filled: false,
            is_last: false,
        }
    }

    pub(super) async fn serve(mut self) {
        let stop = loop {
            if let Err(stop) = self.step().await {
                break stop;
            }
        };
        match stop {
            SessionEnd::Disconnected | SessionEnd::TimedOut => {}
            SessionEnd::Fault(fault) => self.session.resp.metrics.ended(fault),
            SessionEnd::Close => {
                if self.io.flush(&mut self.output).await.is_ok() {
                    self.io.linger().await;
                }
            }
        }
    }

    async fn step(&mut self) -> Result<(), SessionEnd> {
        match self.answer()? {
            Pause::NeedInput => {
                self.decide_throttles().await;
                self.flush().await?;
                self.read_more().await
            }
            Pause::BatchFull => {
                self.decide_throttles().await;
                self.flush().await
            }
            Pause::DecideThrottles => {
                self.decide_throttles().await;
                Ok(())
            }
            Pause::Await(work, bytes) => {
                let RespConnection { session, parser, input, start, output, .. } = self;
                let command = input.get(*start..).unwrap_or_default();
                // Boxed: the future is large, and almost every connection only waits for its client.
                Box::pin(session.run_pending(work, parser.arguments(command), output)).await;
                self.session.restart_timing();
                self.start += bytes;
                Ok(())
            }
        }
    }

    /// Answers commands until the input is exhausted or a command must wait.
    fn answer(&mut self) -> Result<Pause, SessionEnd> {
        loop {
            if self.answered >= BATCH_MAX || self.output.len() >= WRITE_BYTES {
                return Ok(Pause::BatchFull);
            }
            let RespConnection { session, parser, pending, input, start, output, .. } = self;
            let rest = input.get(*start..).unwrap_or_default();
            let bytes = match parser.next(rest, session.limits()) {
                Ok(None) => return Ok(Pause::NeedInput),
                Ok(Some(bytes)) => bytes,
                Err(_) if !pending.is_empty() => return Ok(Pause::DecideThrottles), // the error recurs
                Err(fault) => return Err(self.end_with_protocol_error(fault)),
            };
            self.command_due = None;
            let (was_authenticated, before) = (session.is_authenticated(), output.len());
            let action = session.answer(parser.arguments(rest), pending, output);
            let written = output.len() - before;
            match action {
                SessionAction::DecideThrottles => return Ok(Pause::DecideThrottles), // the command is parsed again
                SessionAction::Await(work) => {
                    self.answered += 1;
                    return Ok(Pause::Await(work, bytes));
                }
                SessionAction::Queue => {
                    session.queue_command(rest.get(..bytes).unwrap_or_default(), output);
                    self.start += bytes;
                    self.answered += 1;
                }
                SessionAction::Replay(commands) => {
                    self.start += bytes;
                    self.answered += 1;
                    self.input.splice(self.start..self.start, commands);
                }
                SessionAction::Done => {
                    self.start += bytes;
                    self.answered += 1;
                }
                SessionAction::Close => return Err(SessionEnd::Close),
            }
            if !was_authenticated {
                self.charge_unauthenticated(written)?;
            }
        }
    }

    /// Limits the replies to an unauthenticated connection. Authentication resets the count.
    fn charge_unauthenticated(&mut self, written: usize) -> Result<(), SessionEnd> {
        if self.session.is_authenticated() {
            (self.unauthenticated_bytes, self.auth_due) = (0, None);
            return Ok(());
        }
        self.unauthenticated_bytes += written.max(UNAUTHENTICATED_COMMAND_BYTES);
        match self.unauthenticated_bytes > UNAUTHENTICATED_BYTES_MAX {
            true => Err(SessionEnd::Fault(RespFault::Unauthenticated)),
            false => Ok(()),
        }
    }

    /// Writes a protocol error and ends the connection.
    fn end_with_protocol_error(&mut self, error: ProtocolError) -> SessionEnd {
        let kind = match error {
            ProtocolError::OtherProtocol => return SessionEnd::Fault(RespFault::Foreign),
            error if error.is_oversized() => RespFault::TooLarge,
            _ => RespFault::Malformed,
        };
        error.write(&mut ReplyWriter::new(&mut self.output, ProtocolVersion::Resp2));
        self.session.resp.metrics.ended(kind);
        SessionEnd::Close
    }

    /// Writes a final error and ends the connection.
    fn end_with_error(&mut self, kind: RespFault, parts: &[&[u8]]) -> SessionEnd {
        let parts: Vec<&[u8]> = std::iter::once(&b"ERR Protocol error: "[..]).chain(parts.iter().copied()).collect();
        ReplyWriter::new(&mut self.output, ProtocolVersion::Resp2).error(&parts);
        self.session.resp.metrics.ended(kind);
        SessionEnd::Close
    }

    /// Decides all pending throttles together.
    async fn decide_throttles(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.session.decide_throttles(&mut self.pending, &mut self.output).await;
    }

    async fn flush(&mut self) -> Result<(), SessionEnd> {
        self.used = self.used.max(self.output.len());
        self.answered = 0;
        self.io.flush(&mut self.output).await
    }

    /// Waits for more bytes.
    async fn read_more(&mut self) -> Result<(), SessionEnd> {
        self.make_room()?;
        let (auth_due, exec_due) = (self.auth_due(), self.exec_due());
        if !self.input.is_empty() {
            // Absolute: single bytes do not extend the deadline.
            let command_due =
                *self.command_due.get_or_insert_with(|| Instant::now() + self.io.context.limits.head_timeout);
            let command_due = auth_due.into_iter().chain(exec_due).fold(command_due, Instant::min);
            if !self
                .read_before_shrink(|| ReadWait::RestOfCommand(command_due.min(Instant::now() + LARGE_BUFFER_HOLD)))
                .await?
            {
                self.read(ReadWait::RestOfCommand(command_due)).await.map_err(|stop| match stop {
                    SessionEnd::TimedOut => {
                        self.end_with_error(RespFault::TooSlow, &[b"the rest of the command did not come in time"])
                    }
                    stop => stop,
                })?;
            }
        } else if self.is_last {
            return Err(SessionEnd::Close); // draining, and everything received is answered
        } else if !self.read_before_shrink(|| ReadWait::NextCommand(Some(LARGE_BUFFER_HOLD))).await? {
            let due = auth_due.into_iter().chain(exec_due);
            let max_wait = due.map(|due| due.saturating_duration_since(Instant::now())).chain(self.idle).min();
            self.read(ReadWait::NextCommand(max_wait)).await.map_err(|stop| match stop {
                SessionEnd::TimedOut if auth_due.is_some_and(|due| due <= Instant::now()) => {
                    SessionEnd::Fault(RespFault::Unauthenticated)
                }
                SessionEnd::TimedOut if exec_due.is_some_and(|due| due <= Instant::now()) => {
                    self.end_with_error(RespFault::TooSlow, &[b"EXEC did not come in time"])
                }
                SessionEnd::TimedOut => SessionEnd::Close,
                stop => stop,
            })?;
        }
        self.is_last = self.io.context.drain.has_begun();
        self.session.restart_timing();
        Ok(())
    }

    /// When the connection must have authenticated. Traffic does not extend it: unauthenticated clients must not hold
    /// connection slots.
    fn auth_due(&mut self) -> Option<Instant> {
        if self.session.is_authenticated() {
            return None;
        }
        let max_wait = self.io.context.limits.head_timeout;
        Some(*self.auth_due.get_or_insert_with(|| Instant::now() + max_wait))
    }

    /// When `EXEC` is due after `MULTI`: queued commands hold shared memory.
    fn exec_due(&mut self) -> Option<Instant> {
        if !self.session.is_in_transaction() {
            self.exec_due = None;
            return None;
        }
        Some(*self.exec_due.get_or_insert_with(|| Instant::now() + TRANSACTION_OPEN_MAX))
    }

    /// Reads for a short time before large buffers are freed, so that a busy client keeps them. True if bytes arrived.
    async fn read_before_shrink(&mut self, wait: impl Fn() -> ReadWait) -> Result<bool, SessionEnd> {
        if !self.holds_large_buffers() {
            return Ok(false);
        }
        let wait = wait();
        match self.read(wait).await {
            Ok(()) => Ok(true),
            Err(SessionEnd::TimedOut)
                if matches!(wait, ReadWait::NextCommand(_)) && self.io.context.drain.has_begun() =>
            {
                Err(SessionEnd::Close)
            }
            Err(SessionEnd::TimedOut) => {
                self.shrink_buffers();
                Ok(false)
            }
            Err(stop) => Err(stop),
        }
    }

    async fn read(&mut self, wait: ReadWait) -> Result<(), SessionEnd> {
        let room = self.input.capacity();
        self.io.read(&mut self.input, wait).await?;
        self.is_filled = self.input.len() >= room;
        Ok(())
    }

    /// Moves unread input to the front and reserves space behind it; more if the last read filled the buffer.
    fn make_room(&mut self) -> Result<(), SessionEnd> {
        self.used = self.used.max(self.input.len());
        if self.start == self.input.len() {
            self.input.clear();
        } else if self.start > 0 {
            self.input.drain(..self.start);
        }
        self.start = 0;
        self.shrink_after_small_batches();
        let (held, room) = (self.input.len(), self.input.capacity());
        let is_authenticated = self.session.is_authenticated();
        if self.is_filled && is_authenticated && room < READ_BYTES_MAX {
            self.input.reserve(2 * room - held);
        } else if room - held < READ_BYTES / 2 {
            self.input.reserve(READ_BYTES);
        }
        self.is_filled = false;
        // Only incomplete and queued commands are charged: all others are answered before the next read.
        self.room = BudgetPermit::default();
        let budget = &self.io.context.budget;
        let held = (held + self.session.queued_bytes()) as u64;
        let room = if is_authenticated { budget.reserve(held) } else { budget.reserve_unauthenticated(held) };
        self.room = room.ok_or(SessionEnd::Fault(RespFault::NoMemory))?;
        Ok(())
    }

    /// Frees large buffers after several small batches: occasional small commands do not justify them.
    fn shrink_after_small_batches(&mut self) {
        let is_small = std::mem::take(&mut self.used) <= SMALL_BUFFER_BYTES;
        self.small_batches = if is_small { self.small_batches.saturating_add(1) } else { 0 };
        if self.small_batches >= SMALL_BATCHES_MAX && self.holds_large_buffers() {
            self.small_batches = 0;
            self.shrink_buffers();
        }
    }

    fn holds_large_buffers(&self) -> bool {
        let pending = self.pending.capacity() * size_of::<PendingThrottle>();
        self.input.capacity().max(self.output.capacity()).max(pending) > SMALL_BUFFER_BYTES
    }

    /// Frees all buffers except the unanswered input.
    fn shrink_buffers(&mut self) {
        self.input.shrink_to(READ_BYTES);
        (self.output, self.pending) = (Vec::new(), Vec::new());
    }
}
