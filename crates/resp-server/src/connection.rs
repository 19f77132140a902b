//! One connection: reads what has come, answers all of it, writes once, waits for more.
//!
//! Whatever grows is bounded: a command by its limits, a batch by its number of commands and by the bytes of their
//! answers. While a batch is not written nothing more is read, so a caller that does not read stops itself.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_resp::{ProtocolError, ProtocolVersion, ReplyWriter, RequestParser};

use super::Resp;
use super::session::{Later, Next, Session, Waiting};
use super::wire::{Stop, Wait, Wire};
use crate::metrics::RespFault;
use tollgate_net::{BudgetPermit, ListenerContext, Peer, Stream};
use tollgate_service::join;

/// Size of a read. Sixteen throttles are a quarter of it.
const READ_BYTES: usize = 4 << 10;
/// The most that is read at once, by those who send as much.
const READ_BYTES_MAX: usize = 64 << 10;
/// Answers that leave together: more are written first. With the longest answer, far below a megabyte.
const WRITE_BYTES: usize = 64 << 10;
/// Commands that are answered before what they were told is written.
const BATCH_MAX: usize = 1024;
/// All that somebody is told who does not give the password.
const STRANGER_BYTES_MAX: usize = 64 << 10;
/// What each of their commands counts at least: an empty one is told nothing.
const STRANGER_COMMAND_BYTES: usize = 32;
/// How long a transaction may be open: long enough to type one.
const TRANSACTION_MAX: Duration = Duration::from_secs(60);
/// Buffers larger than this are given back before a longer wait: ten thousand connections wait.
const KEEP_BYTES: usize = 6 << 10;
/// How long a connection may keep large buffers while nothing comes.
const BREATH: Duration = Duration::from_secs(1);
/// Small batches after which it has no more use for them.
const SMALL_BATCHES_MAX: u32 = 16;

/// A connection and what it holds between two waits.
pub(super) struct Connection<'a> {
    wire: Wire<'a>,
    session: Session<'a>,
    frames: RequestParser,
    /// Throttles that wait for the store, to be asked together.
    waiting: Vec<Waiting>,
    input: Vec<u8>,
    /// How much of the input has been answered.
    start: usize,
    output: Vec<u8>,
    /// Commands answered since the last write.
    answered: usize,
    /// What was told since the password was last missing.
    told_stranger: usize,
    /// When it must be there.
    known_by: Option<Instant>,
    /// When the transaction must have ended.
    exec_by: Option<Instant>,
    /// The most that the batch read or told, and how many were small one after the other.
    used: usize,
    small_batches: u32,
    /// When the command that is not all there must be.
    due: Option<Instant>,
    /// What a large command on its way was given.
    room: BudgetPermit,
    idle: Option<Duration>,
    /// The last read found no end.
    is_filled: bool,
    /// What was read last came after the server began to end: when it is answered, so does the connection.
    is_last: bool,
}

/// Why answering pauses.
enum Pause {
    /// Everything is answered that is all there.
    Dry,
    /// Enough is answered: it is to be written.
    Full,
    /// Throttles are to be asked for together.
    Settle,
    /// The store has to be waited for. The command, of so many bytes, is still at the start of the input.
    Later(Later, usize),
}

impl<'a> Connection<'a> {
    pub(super) fn new(stream: Stream, peer: &'a Peer, context: &'a ListenerContext, resp: &'a Resp) -> Connection<'a> {
        Connection {
            wire: Wire::new(stream, context),
            session: Session::new(resp, peer),
            frames: RequestParser::default(),
            waiting: Vec::new(),
            input: Vec::new(),
            start: 0,
            output: Vec::new(),
            answered: 0,
            told_stranger: 0,
            known_by: None,
            exec_by: None,
            used: 0,
            small_batches: 0,
            due: None,
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
            Stop::Gone | Stop::Late => {}
            Stop::Cut(fault) => self.session.resp.metrics.ended(fault),
            Stop::Close => {
                if self.wire.flush(&mut self.output).await.is_ok() {
                    self.wire.linger().await;
                }
            }
        }
    }

    async fn step(&mut self) -> Result<(), Stop> {
        match self.answer()? {
            Pause::Dry => {
                self.settle().await;
                self.flush().await?;
                self.await_more().await
            }
            Pause::Full => {
                self.settle().await;
                self.flush().await
            }
            Pause::Settle => {
                self.settle().await;
                Ok(())
            }
            Pause::Later(later, bytes) => {
                let Connection { session, frames, input, start, output, .. } = self;
                let command = input.get(*start..).unwrap_or_default();
                // Boxed: what waits is large, and almost every connection waits for nobody but its caller.
                Box::pin(session.wait(later, frames.arguments(command), output)).await;
                self.session.begin();
                self.start += bytes;
                Ok(())
            }
        }
    }

    /// Answers commands until there are no more, or something has to be waited for.
    fn answer(&mut self) -> Result<Pause, Stop> {
        loop {
            if self.answered >= BATCH_MAX || self.output.len() >= WRITE_BYTES {
                return Ok(Pause::Full);
            }
            let Connection { session, frames, waiting, input, start, output, .. } = self;
            let rest = input.get(*start..).unwrap_or_default();
            let bytes = match frames.next(rest, session.limits()) {
                Ok(None) => return Ok(Pause::Dry),
                Ok(Some(bytes)) => bytes,
                Err(_) if !waiting.is_empty() => return Ok(Pause::Settle), // what is wrong stays wrong
                Err(fault) => return Err(self.refuse(fault)),
            };
            self.due = None;
            let (was_known, before) = (session.is_known(), output.len());
            let next = session.answer(frames.arguments(rest), waiting, output);
            let told = output.len() - before;
            match next {
                Next::Settle => return Ok(Pause::Settle), // it is read again from where it begins
                Next::Later(later) => {
                    self.answered += 1;
                    return Ok(Pause::Later(later, bytes));
                }
                Next::Keep => {
                    session.keep(rest.get(..bytes).unwrap_or_default(), output);
                    self.start += bytes;
                    self.answered += 1;
                }
                Next::Replay(commands) => {
                    self.start += bytes;
                    self.answered += 1;
                    self.input.splice(self.start..self.start, commands);
                }
                Next::Done => {
                    self.start += bytes;
                    self.answered += 1;
                }
                Next::Close => return Err(Stop::Close),
            }
            if !was_known {
                self.tell_stranger(told)?;
            }
        }
    }

    /// Strangers are told so much, and then no more; those who have become known have not been strangers.
    fn tell_stranger(&mut self, told: usize) -> Result<(), Stop> {
        if self.session.is_known() {
            (self.told_stranger, self.known_by) = (0, None);
            return Ok(());
        }
        self.told_stranger += told.max(STRANGER_COMMAND_BYTES);
        match self.told_stranger > STRANGER_BYTES_MAX {
            true => Err(Stop::Cut(RespFault::Unauthenticated)),
            false => Ok(()),
        }
    }

    /// Answers bytes that are no command, and ends the connection.
    fn refuse(&mut self, error: ProtocolError) -> Stop {
        let kind = match error {
            ProtocolError::OtherProtocol => return Stop::Cut(RespFault::Foreign),
            error if error.is_oversized() => RespFault::TooLarge,
            _ => RespFault::Malformed,
        };
        error.write(&mut ReplyWriter::new(&mut self.output, ProtocolVersion::Resp2));
        self.session.resp.metrics.ended(kind);
        Stop::Close
    }

    /// Writes the last error of a connection.
    fn end(&mut self, kind: RespFault, parts: &[&[u8]]) -> Stop {
        let parts: Vec<&[u8]> = std::iter::once(&b"ERR Protocol error: "[..]).chain(parts.iter().copied()).collect();
        ReplyWriter::new(&mut self.output, ProtocolVersion::Resp2).error(&parts);
        self.session.resp.metrics.ended(kind);
        Stop::Close
    }

    /// Asks for all throttles that wait, together.
    async fn settle(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let service = &self.session.resp.service;
        let width = service.batch_width(self.waiting.len());
        let ask = |Waiting { throttle, lone }: &Waiting| {
            let (charge, lone) = (throttle.charge, *lone);
            async move {
                match lone {
                    Some(lone) => lone,
                    None => service.throttle(&charge).await,
                }
            }
        };
        let lones = Box::pin(join(self.waiting.iter().map(ask), width.checks())).await;
        self.session.settle(&mut self.waiting, &lones, &mut self.output);
        self.session.begin();
    }

    async fn flush(&mut self) -> Result<(), Stop> {
        self.used = self.used.max(self.output.len());
        self.answered = 0;
        self.wire.flush(&mut self.output).await
    }

    /// Waits for more bytes.
    async fn await_more(&mut self) -> Result<(), Stop> {
        self.make_room()?;
        let (known_by, exec_by) = (self.known_by(), self.exec_by());
        if !self.input.is_empty() {
            // Absolute: a byte now and then buys no time.
            let due = *self.due.get_or_insert_with(|| Instant::now() + self.wire.context.limits.head_timeout);
            let due = known_by.into_iter().chain(exec_by).fold(due, Instant::min);
            if !self.breathe(|| Wait::Within(due.min(Instant::now() + BREATH))).await? {
                self.read(Wait::Within(due)).await.map_err(|stop| match stop {
                    Stop::Late => self.end(RespFault::TooSlow, &[b"the rest of the command did not come in time"]),
                    stop => stop,
                })?;
            }
        } else if self.is_last {
            return Err(Stop::Close); // a server that ends has heard this caller out
        } else if !self.breathe(|| Wait::Between(Some(BREATH))).await? {
            let by = known_by.into_iter().chain(exec_by);
            let patience = by.map(|by| by.saturating_duration_since(Instant::now())).chain(self.idle).min();
            self.read(Wait::Between(patience)).await.map_err(|stop| match stop {
                Stop::Late if known_by.is_some_and(|by| by <= Instant::now()) => Stop::Cut(RespFault::Unauthenticated),
                Stop::Late if exec_by.is_some_and(|by| by <= Instant::now()) => {
                    self.end(RespFault::TooSlow, &[b"EXEC did not come in time"])
                }
                Stop::Late => Stop::Close,
                stop => stop,
            })?;
        }
        self.is_last = self.wire.context.drain.has_begun();
        self.session.begin();
        Ok(())
    }

    /// When the password must have been given, whatever comes until then: a place is not for those who never give it.
    fn known_by(&mut self) -> Option<Instant> {
        if self.session.is_known() {
            return None;
        }
        let patience = self.wire.context.limits.head_timeout;
        Some(*self.known_by.get_or_insert_with(|| Instant::now() + patience))
    }

    /// When `EXEC` must have come, once there was `MULTI`: what is queued takes memory that others may need.
    fn exec_by(&mut self) -> Option<Instant> {
        if !self.session.is_in_transaction() {
            self.exec_by = None;
            return None;
        }
        Some(*self.exec_by.get_or_insert_with(|| Instant::now() + TRANSACTION_MAX))
    }

    /// Whoever sends much one after the other keeps what it made grow; who pauses does not. True if something came.
    async fn breathe(&mut self, wait: impl Fn() -> Wait) -> Result<bool, Stop> {
        if !self.holds_much() {
            return Ok(false);
        }
        let wait = wait();
        match self.read(wait).await {
            Ok(()) => Ok(true),
            Err(Stop::Late) if matches!(wait, Wait::Between(_)) && self.wire.context.drain.has_begun() => {
                Err(Stop::Close)
            }
            Err(Stop::Late) => {
                self.give_back();
                Ok(false)
            }
            Err(stop) => Err(stop),
        }
    }

    async fn read(&mut self, wait: Wait) -> Result<(), Stop> {
        let room = self.input.capacity();
        self.wire.read(&mut self.input, wait).await?;
        self.is_filled = self.input.len() >= room;
        Ok(())
    }

    /// Moves what is unread to the front, and makes room behind it: more for those who fill it.
    fn make_room(&mut self) -> Result<(), Stop> {
        self.used = self.used.max(self.input.len());
        if self.start == self.input.len() {
            self.input.clear();
        } else if self.start > 0 {
            self.input.drain(..self.start);
        }
        self.start = 0;
        self.outgrow();
        let (held, room) = (self.input.len(), self.input.capacity());
        let is_known = self.session.is_known();
        if self.is_filled && is_known && room < READ_BYTES_MAX {
            self.input.reserve(2 * room - held);
        } else if room - held < READ_BYTES / 2 {
            self.input.reserve(READ_BYTES);
        }
        self.is_filled = false;
        // Only what is on its way counts, and what is queued: the rest is answered before anything more is read.
        self.room = BudgetPermit::default();
        let budget = &self.wire.context.budget;
        let held = (held + self.session.queued_bytes()) as u64;
        let room = if is_known { budget.reserve(held) } else { budget.reserve_unauthenticated(held) };
        self.room = room.ok_or(Stop::Cut(RespFault::NoMemory))?;
        Ok(())
    }

    /// Gives large buffers back that nobody has had a use for: a few bytes now and then do not keep them.
    fn outgrow(&mut self) {
        let is_small = std::mem::take(&mut self.used) <= KEEP_BYTES;
        self.small_batches = if is_small { self.small_batches.saturating_add(1) } else { 0 };
        if self.small_batches >= SMALL_BATCHES_MAX && self.holds_much() {
            self.small_batches = 0;
            self.give_back();
        }
    }

    fn holds_much(&self) -> bool {
        let waiting = self.waiting.capacity() * size_of::<Waiting>();
        self.input.capacity().max(self.output.capacity()).max(waiting) > KEEP_BYTES
    }

    /// Keeps what has not been answered, and nothing else.
    fn give_back(&mut self) {
        self.input.shrink_to(READ_BYTES);
        (self.output, self.waiting) = (Vec::new(), Vec::new());
    }
}
