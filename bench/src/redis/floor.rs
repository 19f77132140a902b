//! The floor: the same load sent straight to Redis, as a script that decides one bucket and nothing else.
//!
//! One thread drives all connections. It either sleeps until a reply arrives, as a real client does, or polls, so that the
//! server never pays for waking it: the harder floor, and the reference for throughput.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::BytesMut;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use tollgate_core::Clock as _;
use tollgate_load::{LoadPace, WaitMode};
use tollgate_resp::{ReplyLimits, RespValue, decode, write_array_header, write_bulk};
use tollgate_store::MonotonicClock;

use super::keys::Draw;
use super::pacing::OpenSchedule;
use super::server::Redis;
use super::tally::{CheckAnswer, CheckTally};
use crate::peers::{BURST, PERIOD};

const SCRIPT: &str = include_str!("floor.lua");
/// How long the first replies of a run may take: other processes may have the core.
const PATIENCE: Duration = Duration::from_secs(1);

/// A server with the script loaded.
#[derive(Debug)]
pub struct FloorScript {
    address: SocketAddr,
    /// A command up to its key, and from there on.
    head: Vec<u8>,
    tail: Vec<u8>,
    keys: u64,
}

/// How the script is called.
#[derive(Clone, Copy, Debug)]
pub struct FloorLoad {
    pub connections: usize,
    /// Commands under way on each of them.
    pub pipeline: usize,
    pub pace: LoadPace,
    pub wait: WaitMode,
}

impl FloorScript {
    /// Loads the script.
    pub fn new(redis: &Redis, keys: u64) -> anyhow::Result<FloorScript> {
        let sha = redis.client().call(&["SCRIPT", "LOAD", SCRIPT]);
        let sha = sha.text().with_context(|| format!("the script is refused: {sha:?}"))?.to_vec();
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        write_array_header(&mut head, 7);
        [&b"EVALSHA"[..], &sha, b"1"].iter().for_each(|part| write_bulk(&mut head, part));
        head.extend_from_slice(b"$16\r\nkey:");
        tail.extend_from_slice(b"\r\n");
        let (cost, room) = (PERIOD.as_nanos(), PERIOD.as_nanos() * u128::from(BURST));
        [cost, room, room].iter().for_each(|number| write_bulk(&mut tail, number.to_string().as_bytes()));
        Ok(FloorScript { address: SocketAddr::from(([127, 0, 0, 1], redis.port())), head, tail, keys })
    }

    /// Sends load for that long, and waits for the last reply.
    pub fn run(&self, load: &FloorLoad, time: Duration, seed: u64) -> anyhow::Result<CheckTally> {
        let poll = Poll::new()?;
        let mut connections = Vec::new();
        for place in 0..load.connections {
            let stream = std::net::TcpStream::connect(self.address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(place), Interest::READABLE)?;
            connections.push(Connection { stream, begun: VecDeque::new(), buffer: BytesMut::new(), is_idle: true });
        }
        let clock = MonotonicClock::new();
        let mut sender = Sender {
            floor: self,
            load: *load,
            idle: (0..load.connections).collect(),
            connections,
            draw: Draw::new(self.keys, seed),
            tally: CheckTally::default(),
            out: Vec::new(),
            clock,
            schedule: OpenSchedule::new(now(&clock), load.pace),
        };
        sender.run(poll, now(&clock) + nanos(time))?;
        ensure!(sender.tally.checks > 0, "no reply came");
        Ok(sender.tally)
    }
}

struct Connection {
    stream: TcpStream,
    /// When each command under way began.
    begun: VecDeque<u64>,
    buffer: BytesMut,
    is_idle: bool,
}

struct Sender<'a> {
    floor: &'a FloorScript,
    load: FloorLoad,
    connections: Vec<Connection>,
    /// Connections with room for a command.
    idle: VecDeque<usize>,
    draw: Draw,
    tally: CheckTally,
    out: Vec<u8>,
    clock: MonotonicClock,
    schedule: OpenSchedule,
}

impl Sender<'_> {
    fn run(&mut self, mut poll: Poll, end: u64) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(1024);
        let is_closed = matches!(self.load.pace, LoadPace::Closed);
        // An open loop has to look at the clock; a closed one may sleep.
        let pause = if self.load.wait == WaitMode::Spin || !is_closed { Duration::ZERO } else { PATIENCE };
        loop {
            let now = now(&self.clock);
            if now < end {
                self.send(now)?;
            } else if self.connections.iter().all(|connection| connection.begun.is_empty()) {
                return Ok(());
            }
            ensure!(now < end + nanos(PATIENCE), "a reply did not come");
            match poll.poll(&mut events, Some(pause)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
                _ => {}
            }
            for event in events.iter() {
                self.receive(event.token().0)?;
            }
        }
    }

    /// Fills idle connections with the commands that are due.
    fn send(&mut self, now: u64) -> io::Result<()> {
        while let Some(place) = self.idle.pop_front() {
            let Some(connection) = self.connections.get_mut(place) else { continue };
            self.out.clear();
            while connection.begun.len() < self.load.pipeline {
                let Some(begun) = self.schedule.next(now) else { break };
                connection.begun.push_back(begun);
                self.out.extend_from_slice(&self.floor.head);
                self.out.extend_from_slice(&self.draw.digits());
                self.out.extend_from_slice(&self.floor.tail);
            }
            if self.out.is_empty() {
                self.idle.push_front(place);
                return Ok(());
            }
            connection.is_idle = connection.begun.len() < self.load.pipeline;
            if connection.is_idle {
                self.idle.push_back(place);
            }
            connection.stream.write_all(&self.out)?; // a few kilobytes: the socket has room for them
        }
        Ok(())
    }

    fn receive(&mut self, place: usize) -> anyhow::Result<()> {
        let Some(connection) = self.connections.get_mut(place) else { return Ok(()) };
        let mut chunk = [0; 16 << 10];
        loop {
            match connection.stream.read(&mut chunk) {
                Ok(0) => anyhow::bail!("the server closed a connection"),
                Ok(length) => connection.buffer.extend_from_slice(chunk.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        let now = now(&self.clock);
        while let Some(reply) = decode(&mut connection.buffer, ReplyLimits::default())? {
            let begun = connection.begun.pop_front().context("a reply to nothing")?;
            self.tally.enter(answer(&reply), now.saturating_sub(begun));
        }
        if !connection.is_idle && connection.begun.len() < self.load.pipeline {
            connection.is_idle = true;
            self.idle.push_back(place);
        }
        Ok(())
    }
}

fn answer(reply: &RespValue) -> CheckAnswer {
    match reply.array().and_then(|parts| parts.first()?.integer()) {
        Some(1) => CheckAnswer::Allowed,
        Some(_) => CheckAnswer::Denied,
        None => CheckAnswer::Failed,
    }
}

fn now(clock: &MonotonicClock) -> u64 {
    clock.now().nanos()
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4)
}
