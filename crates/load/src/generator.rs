//! The event loop: one thread, all connections, a clock.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use mio::{Events, Poll, Token};

use crate::clock::{self, MILLISECOND};
use crate::connection::LoadConnection;
use crate::error::LoadError;
use crate::keys::KeySampler;
use crate::lost::ConnectionLost;
use crate::plan::{LoadPace, LoadPlan, WaitMode};
use crate::protocol;
use crate::report::{LoadReport, Second};
use crate::request::LoadRequest;
use crate::schedule::Schedule;
use crate::socket;
use crate::tally::{MeasuredPeriod, Tally};
use crate::target::Target;
use crate::template::Template;

/// What all connections read into. Larger than any socket hands out at once for small replies.
const BUFFER: usize = 64 << 10;
/// How often connections are looked after that no event speaks of.
const ROUND: u64 = 5 * MILLISECOND;
/// Connections opened in a round: no server's backlog overflows, and thousands still open within a second.
const OPENED_A_ROUND: usize = 250;
/// Before a lost connection is opened again: a server that refuses is not hammered.
const RETRY: u64 = 100 * MILLISECOND;

/// Sends the load, counts what comes of it, and tells `on_second` after every measured second.
///
/// It ends when the plan's time is over and every reply has come, at the latest one timeout later. An error means that
/// the run never began; what goes wrong later is in the outcome.
pub fn run(
    target: &Target,
    request: &LoadRequest,
    plan: &LoadPlan,
    on_second: &mut dyn FnMut(&Second),
) -> Result<LoadReport, LoadError> {
    plan.check()?;
    let framed = protocol::frame(request, target, plan.pipeline)?;
    socket::probe(target.address(), plan.timeout)?;
    let poll = Poll::new().map_err(LoadError::system)?;
    let now = clock::now();
    let schedule = match plan.pace {
        LoadPace::Closed => None,
        LoadPace::Open { per_second } => Some(Schedule::new(now, per_second)),
    };
    let generator = Generator {
        target,
        plan,
        poll,
        connections: std::iter::repeat_n(&framed.replies, plan.connections).map(LoadConnection::new).collect(),
        with_room: VecDeque::new(),
        template: framed.template,
        opening: framed.opening,
        keys: KeySampler::new(plan.keys, plan.popularity, plan.seed),
        schedule,
        tally: Tally::new(now),
        buffer: vec![0; BUFFER],
        is_sending: true,
        due_until: u64::MAX,
        next_round: now,
    };
    generator.run(now, on_second)
}

struct Generator<'a> {
    target: &'a Target,
    plan: &'a LoadPlan,
    poll: Poll,
    connections: Vec<LoadConnection>,
    /// Open loop: who can take the next request. May name some that cannot any more.
    with_room: VecDeque<usize>,
    template: Template,
    /// What every connection says first.
    opening: Vec<u8>,
    keys: KeySampler,
    schedule: Option<Schedule>,
    tally: Tally,
    buffer: Vec<u8>,
    /// The measured time is not over yet.
    is_sending: bool,
    /// Open loop: what falls due later is none of this run.
    due_until: u64,
    next_round: u64,
}

impl Generator<'_> {
    fn run(mut self, start: u64, on_second: &mut dyn FnMut(&Second)) -> Result<LoadReport, LoadError> {
        let mut events = Events::with_capacity(1024);
        let measured_from = start + nanos(self.plan.warm_up);
        self.go_on(&mut events, measured_from, &mut |_| {})?;
        self.tally = Tally::new(clock::now());
        let measured_to = clock::now() + nanos(self.plan.duration);
        self.go_on(&mut events, measured_to, on_second)?;
        let closed = self.stop(on_second);
        self.go_on(&mut events, measured_to + nanos(self.plan.timeout), &mut |_| {})?;
        Ok(self.tally.finish(closed))
    }

    /// Serves until `end`, or until nothing is under way any more when nothing is sent.
    fn go_on(&mut self, events: &mut Events, end: u64, on_second: &mut dyn FnMut(&Second)) -> Result<(), LoadError> {
        loop {
            let now = clock::now();
            if now >= end || (!self.is_sending && self.is_done()) {
                return Ok(());
            }
            if now >= self.next_round {
                self.look_after(now);
            }
            if self.is_sending && now >= self.tally.second_ends() {
                self.tally.turn(now).map(&mut *on_second);
            }
            self.send_due(now);
            match self.poll.poll(events, Some(self.pause(now, end))) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(LoadError::system(error)),
                _ => {}
            }
            for event in events.iter() {
                self.serve(event.token().0, event.is_read_closed() || event.is_error());
            }
        }
    }

    /// The measured time is over: nothing new falls due, and only what was due before may still go out.
    fn stop(&mut self, on_second: &mut dyn FnMut(&Second)) -> MeasuredPeriod {
        let now = clock::now();
        self.is_sending = false;
        self.due_until = now;
        self.tally.turn(now).map(&mut *on_second);
        self.tally.close(now)
    }

    fn is_done(&self) -> bool {
        let is_sent = self.schedule.as_ref().is_none_or(|schedule| schedule.due(self.due_until) == 0);
        is_sent && self.connections.iter().all(|connection| connection.under_way() == 0)
    }

    /// How long to wait for an event at most.
    fn pause(&self, now: u64, end: u64) -> Duration {
        if self.plan.wait == WaitMode::Spin {
            return Duration::ZERO;
        }
        let mut wake = self.next_round.min(end);
        if let Some(schedule) = self.schedule.as_ref().filter(|_| !self.with_room.is_empty()) {
            wake = wake.min(schedule.next_at());
        }
        // The kernel rounds up to milliseconds; whatever is due sooner is spun for.
        Duration::from_millis(wake.saturating_sub(now) / MILLISECOND)
    }

    /// What no event speaks of: connections to be opened, and those of which nothing came.
    fn look_after(&mut self, now: u64) {
        self.next_round = now + ROUND;
        let limit = now.saturating_sub(nanos(self.plan.timeout));
        let mut opened = 0;
        for index in 0..self.connections.len() {
            let Some(connection) = self.connections.get_mut(index) else { return };
            if let Some(lost) = connection.overdue(limit) {
                self.lose(index, lost, now);
            } else if self.is_sending && opened < OPENED_A_ROUND && connection.wants_opening(now) {
                opened += 1;
                let registry = self.poll.registry();
                if let Err(lost) = connection.open(self.target.address(), registry, Token(index), now) {
                    self.lose(index, lost, now);
                }
            }
        }
    }

    /// Something happened on a connection.
    #[inline]
    fn serve(&mut self, index: usize, is_closing: bool) {
        if let Err(lost) = self.try_serve(index, is_closing) {
            self.lose(index, lost, clock::now());
        }
    }

    #[inline]
    fn try_serve(&mut self, index: usize, is_closing: bool) -> Result<(), ConnectionLost> {
        let Some(connection) = self.connections.get_mut(index) else { return Ok(()) };
        if !connection.is_open(&self.opening)? {
            return Ok(());
        }
        connection.flush()?;
        let tally = &mut self.tally;
        connection.receive(&mut self.buffer, is_closing, |latency, verdict, bytes| {
            tally.reply(latency, verdict, bytes);
        })?;
        let room = connection.room(self.plan.pipeline);
        match &self.schedule {
            _ if room == 0 => Ok(()),
            None if self.is_sending => self.send(index, room),
            None => Ok(()),
            Some(_) => {
                self.list(index);
                Ok(())
            }
        }
    }

    /// Closed loop: as many requests as the connection has room for, begun now.
    #[inline]
    fn send(&mut self, index: usize, requests: usize) -> Result<(), ConnectionLost> {
        let Some(connection) = self.connections.get_mut(index) else { return Ok(()) };
        self.tally.sent += requests as u64;
        let bytes = self.template.next(requests, &mut self.keys, connection.next_stream());
        connection.send(bytes, std::iter::repeat_n(clock::now(), requests))
    }

    /// Open loop: everything that is due, as far as connections have room.
    #[inline]
    fn send_due(&mut self, now: u64) {
        let Some(schedule) = self.schedule.as_mut() else { return };
        let limit = now.saturating_sub(nanos(self.plan.max_lateness)).min(self.due_until);
        self.tally.unsent += schedule.give_up_before(limit);
        let mut due = schedule.due(now.min(self.due_until)) as usize;
        while due > 0 {
            let Some(index) = self.with_room.pop_front() else { return };
            let Some((connection, schedule)) = self.connections.get_mut(index).zip(self.schedule.as_mut()) else {
                return;
            };
            connection.is_listed = false;
            // Spread over the connections first; several at once only when all of them have some.
            let share = due.div_ceil(self.with_room.len() + 1);
            let requests = connection.room(self.plan.pipeline).min(share);
            if requests == 0 {
                continue;
            }
            due -= requests;
            self.tally.sent += requests as u64;
            let bytes = self.template.next(requests, &mut self.keys, connection.next_stream());
            let sent = connection.send(bytes, (0..requests).map(|_| schedule.take()));
            let has_room = connection.room(self.plan.pipeline) > 0;
            match sent {
                Err(lost) => self.lose(index, lost, now),
                Ok(()) if has_room => self.list(index),
                Ok(()) => {}
            }
        }
    }

    /// Puts a connection at the end of the line of those with room.
    #[inline]
    fn list(&mut self, index: usize) {
        if let Some(connection) = self.connections.get_mut(index).filter(|connection| !connection.is_listed) {
            connection.is_listed = true;
            self.with_room.push_back(index);
        }
    }

    /// Counts what is lost with a connection, and has it opened again: at once if the server merely ended it.
    fn lose(&mut self, index: usize, lost: ConnectionLost, now: u64) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        let requests = connection.shut(if lost == ConnectionLost::Closed { now } else { now + RETRY });
        let errors = &mut self.tally.errors;
        match &lost {
            ConnectionLost::Unopened(_) => errors.connect += 1,
            ConnectionLost::Closed => errors.closed += requests,
            ConnectionLost::Late => errors.timeout += requests,
            ConnectionLost::Malformed(_) => errors.malformed += requests.max(1),
        }
        if !matches!(lost, ConnectionLost::Unopened(_)) {
            self.tally.reconnects += 1;
        }
        match lost {
            ConnectionLost::Unopened(why) => self.tally.note(|| format!("a connection could not be opened: {why}")),
            ConnectionLost::Closed if requests == 0 => {}
            ConnectionLost::Closed => {
                self.tally.note(|| "the server closed a connection with requests under way".to_owned())
            }
            ConnectionLost::Late => self.tally.note(|| "a reply did not come in time".to_owned()),
            ConnectionLost::Malformed(why) => self.tally.note(|| format!("not {}: {why}", self.target.protocol())),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}
