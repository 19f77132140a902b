//! The event loop: one thread drives all connections.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use mio::{Events, Poll, Token};

use crate::clock::{self, MILLISECOND};
use crate::connection::LoadConnection;
use crate::error::LoadError;
use crate::keys::KeySampler;
use crate::lost::ConnectionEnded;
use crate::plan::{LoadPace, LoadPlan, WaitMode};
use crate::protocol;
use crate::report::{LoadReport, Second};
use crate::request::LoadRequest;
use crate::schedule::Schedule;
use crate::socket;
use crate::tally::{MeasuredPeriod, Tally};
use crate::target::Target;
use crate::template::MessageTemplate;

/// Size of the read buffer that all connections share. Larger than what a socket delivers at once for small replies.
const BUFFER: usize = 64 << 10;
/// Interval of the work that no event triggers: opening connections, timeouts.
const MAINTENANCE_INTERVAL: u64 = 5 * MILLISECOND;
/// Connections opened per interval: no server's backlog overflows, and thousands still open within a second.
const OPENED_PER_INTERVAL: usize = 250;
/// Delay before a failed connection is reopened, so that a server that refuses connections is not flooded.
const RETRY: u64 = 100 * MILLISECOND;

/// Sends the load, counts the replies, and calls `on_second` after every measured second.
///
/// Returns when the plan's time is over and every reply has arrived, at the latest one timeout later. An error means
/// that the run did not start; later errors are counted in the report.
pub fn run(
    target: &Target,
    request: &LoadRequest,
    plan: &LoadPlan,
    on_second: &mut dyn FnMut(&Second),
) -> Result<LoadReport, LoadError> {
    run_while(target, request, plan, &mut |second| {
        on_second(second);
        true
    })
}

/// The same; the measured time ends early after a second for which `goes_on` returns false.
pub fn run_while(
    target: &Target,
    request: &LoadRequest,
    plan: &LoadPlan,
    goes_on: &mut dyn FnMut(&Second) -> bool,
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
        due_until: now + nanos(plan.warm_up) + nanos(plan.duration),
        next_maintenance: now,
    };
    generator.run(now, goes_on)
}

struct Generator<'a> {
    target: &'a Target,
    plan: &'a LoadPlan,
    poll: Poll,
    connections: Vec<LoadConnection>,
    /// Open loop: connections that can take the next request. Entries may be stale.
    with_room: VecDeque<usize>,
    template: MessageTemplate,
    /// Bytes that every connection sends first.
    opening: Vec<u8>,
    keys: KeySampler,
    schedule: Option<Schedule>,
    tally: Tally,
    buffer: Vec<u8>,
    /// True until the measured time is over.
    is_sending: bool,
    /// The end of the measured time. Requests that fall due later are not sent, even if the machine stalls and this
    /// moment is noticed late: an open loop sends as many as its rate and duration say.
    due_until: u64,
    next_maintenance: u64,
}

impl Generator<'_> {
    fn run(mut self, start: u64, goes_on: &mut dyn FnMut(&Second) -> bool) -> Result<LoadReport, LoadError> {
        let mut events = Events::with_capacity(1024);
        let measured_from = start + nanos(self.plan.warm_up);
        self.run_until(&mut events, measured_from, &mut |_| true)?;
        self.tally = Tally::new(clock::now());
        let measured_to = self.due_until;
        self.run_until(&mut events, measured_to, goes_on)?;
        let closed = self.stop(goes_on);
        let answered_by = self.due_until + nanos(self.plan.timeout);
        self.run_until(&mut events, answered_by, &mut |_| true)?;
        Ok(self.tally.finish(closed))
    }

    /// Runs until `end`, or a second after which it does not go on; after sending has stopped, until no request is in
    /// flight.
    fn run_until(
        &mut self,
        events: &mut Events,
        end: u64,
        goes_on: &mut dyn FnMut(&Second) -> bool,
    ) -> Result<(), LoadError> {
        loop {
            let now = clock::now();
            if now >= end || (!self.is_sending && self.is_done()) {
                return Ok(());
            }
            if now >= self.next_maintenance {
                self.maintain(now);
            }
            let is_turn = self.is_sending && now >= self.tally.second_ends();
            if is_turn && !self.tally.end_second(now).is_none_or(&mut *goes_on) {
                self.due_until = now;
                return Ok(());
            }
            self.send_due(now);
            match self.poll.poll(events, Some(self.pause(now, end))) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(LoadError::system(error)),
                _ => {}
            }
            if events.is_empty() && self.plan.wait == WaitMode::Yield {
                std::thread::yield_now();
            }
            for event in events.iter() {
                self.serve(event.token().0, event.is_read_closed() || event.is_error());
            }
        }
    }

    /// Ends the measured time: no new request falls due, and only those that were due before may still be sent.
    fn stop(&mut self, goes_on: &mut dyn FnMut(&Second) -> bool) -> MeasuredPeriod {
        let now = clock::now();
        self.is_sending = false;
        self.tally.end_second(now).map(&mut *goes_on);
        self.tally.close(now)
    }

    fn is_done(&self) -> bool {
        let is_sent = self.schedule.as_ref().is_none_or(|schedule| schedule.due(self.due_until) == 0);
        is_sent && self.connections.iter().all(|connection| connection.in_flight() == 0)
    }

    /// Longest time to wait for an event.
    fn pause(&self, now: u64, end: u64) -> Duration {
        if self.plan.wait != WaitMode::Sleep {
            return Duration::ZERO;
        }
        let mut wake = self.next_maintenance.min(end);
        if let Some(schedule) = self.schedule.as_ref().filter(|_| !self.with_room.is_empty()) {
            wake = wake.min(schedule.next_at());
        }
        // The kernel rounds up to milliseconds; the remainder is spun.
        Duration::from_millis(wake.saturating_sub(now) / MILLISECOND)
    }

    /// Opens connections, and closes those that timed out.
    fn maintain(&mut self, now: u64) {
        self.next_maintenance = now + MAINTENANCE_INTERVAL;
        let limit = now.saturating_sub(nanos(self.plan.timeout));
        let mut opened = 0;
        for index in 0..self.connections.len() {
            let Some(connection) = self.connections.get_mut(index) else { return };
            if let Some(lost) = connection.overdue(limit) {
                self.lose(index, lost, now);
            } else if self.is_sending && opened < OPENED_PER_INTERVAL && connection.may_open(now) {
                opened += 1;
                let registry = self.poll.registry();
                if let Err(lost) = connection.open(self.target.address(), registry, Token(index), now) {
                    self.lose(index, lost, now);
                }
            }
        }
    }

    /// Handles an event of a connection.
    #[inline]
    fn serve(&mut self, index: usize, is_closing: bool) {
        if let Err(lost) = self.try_serve(index, is_closing) {
            self.lose(index, lost, clock::now());
        }
    }

    #[inline]
    fn try_serve(&mut self, index: usize, is_closing: bool) -> Result<(), ConnectionEnded> {
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
                self.enqueue(index);
                Ok(())
            }
        }
    }

    /// Closed loop: sends as many requests as the connection has room for.
    #[inline]
    fn send(&mut self, index: usize, requests: usize) -> Result<(), ConnectionEnded> {
        let Some(connection) = self.connections.get_mut(index) else { return Ok(()) };
        self.tally.sent += requests as u64;
        let bytes = self.template.next(requests, &mut self.keys, connection.next_stream());
        connection.send(bytes, std::iter::repeat_n(clock::now(), requests))
    }

    /// Open loop: sends the requests that are due, as far as connections have room.
    #[inline]
    fn send_due(&mut self, now: u64) {
        let Some(schedule) = self.schedule.as_mut() else { return };
        let limit = now.saturating_sub(nanos(self.plan.max_lateness)).min(self.due_until);
        self.tally.unsent += schedule.drop_before(limit);
        let mut due = schedule.due(now.min(self.due_until)) as usize;
        while due > 0 {
            let Some(index) = self.with_room.pop_front() else { return };
            let Some((connection, schedule)) = self.connections.get_mut(index).zip(self.schedule.as_mut()) else {
                return;
            };
            connection.is_queued = false;
            // Spread over all connections first; several per connection only when there are more requests.
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
                Ok(()) if has_room => self.enqueue(index),
                Ok(()) => {}
            }
        }
    }

    /// Appends a connection to the queue of those with room.
    #[inline]
    fn enqueue(&mut self, index: usize) {
        if let Some(connection) = self.connections.get_mut(index).filter(|connection| !connection.is_queued) {
            connection.is_queued = true;
            self.with_room.push_back(index);
        }
    }

    /// Counts the requests that are lost with a connection, and schedules its reopening: at once if the server closed
    /// it.
    fn lose(&mut self, index: usize, lost: ConnectionEnded, now: u64) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        let requests = connection.shut(if lost == ConnectionEnded::Closed { now } else { now + RETRY });
        let errors = &mut self.tally.errors;
        match &lost {
            ConnectionEnded::Unopened(_) => errors.connect += 1,
            ConnectionEnded::Closed => errors.closed += requests,
            ConnectionEnded::Late => errors.timeout += requests,
            ConnectionEnded::Malformed(_) => errors.malformed += requests.max(1),
        }
        if !matches!(lost, ConnectionEnded::Unopened(_)) {
            self.tally.reconnects += 1;
        }
        match lost {
            ConnectionEnded::Unopened(why) => {
                self.tally.note_error(|| format!("a connection could not be opened: {why}"))
            }
            ConnectionEnded::Closed if requests == 0 => {}
            ConnectionEnded::Closed => {
                self.tally.note_error(|| "the server closed a connection with requests under way".to_owned())
            }
            ConnectionEnded::Late => self.tally.note_error(|| "a reply did not come in time".to_owned()),
            ConnectionEnded::Malformed(why) => {
                self.tally.note_error(|| format!("not {}: {why}", self.target.protocol()))
            }
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}
