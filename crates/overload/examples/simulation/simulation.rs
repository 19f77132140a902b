//! One run: callers that arrive at random and give up after a second, the gateway, the upstream.

use std::collections::HashMap;

use tollgate_core::{Span, Time};
use tollgate_overload::{AdaptiveLimit, Priority, QueueConfig};

use crate::events::{Agenda, Draws, Happening};
use crate::gateway::{Gateway, Sent};
use crate::upstream::{self, Upstream};

/// Requests per second that the upstream can finish.
pub const CAPACITY: f64 = 1_600.0;
const START: Time = Time::from_secs(1_000);
const PATIENCE: Span = Span::SECOND;
const CRITICAL: Priority = Priority::of_rank(3);
const SHEDDABLE: Priority = Priority::of_rank(1);
/// Critical requests, as a share of the capacity: always as many, whatever is offered.
const CRITICAL_SHARE: f64 = 0.2;

/// What is offered, and when it counts.
#[derive(Clone, Copy)]
pub struct Load {
    /// Requests per second, critical ones included.
    rate: f64,
    /// As many are offered until then.
    calm: (f64, Time),
    /// How many times wider the upstream is.
    times: usize,
    /// When everything begins to take twice as long.
    slow_from: Option<Time>,
    measured: (Time, Time),
}

impl Load {
    pub fn steady(rate: f64) -> Load {
        Load { rate, calm: (rate, START), times: 1, slow_from: None, measured: (second(20), second(40)) }
    }

    pub fn long(rate: f64) -> Load {
        Load { measured: (second(600), second(660)), ..Load::steady(rate) }
    }

    /// Calm, and from one moment to the next all of it: the first ten seconds count.
    pub fn surge(calm: f64, rate: f64) -> Load {
        let from = second(50);
        Load { calm: (calm, from), measured: (from, second(61)), ..Load::steady(rate) }
    }

    /// At an upstream with more workers that are as much slower: the whole minute counts.
    pub fn wide(rate: f64) -> Load {
        Load { times: upstream::WIDE, measured: (second(30), second(90)), ..Load::steady(rate) }
    }

    pub fn slowed(rate: f64) -> Load {
        Load { slow_from: Some(second(30)), measured: (second(60), second(80)), ..Load::steady(rate) }
    }
}

fn second(second: u64) -> Time {
    START.after(Span::from_secs(second))
}

/// What came out, while it counted.
#[derive(Default)]
pub struct Outcome {
    seconds: f64,
    latencies: Vec<Span>,
    critical_offered: u64,
    critical_served: u64,
    pub limit: u32,
}

impl Outcome {
    /// Requests per second that were answered while their callers waited.
    pub fn goodput(&self) -> f64 {
        self.latencies.len() as f64 / self.seconds
    }

    pub fn p99_ms(&self) -> f64 {
        let at = self.latencies.len() * 99 / 100;
        self.latencies.get(at).map_or(f64::NAN, |latency| latency.nanos() as f64 / 1e6)
    }

    pub fn critical_percent(&self) -> f64 {
        100.0 * self.critical_served as f64 / self.critical_offered as f64
    }
}

struct Open {
    arrived: Time,
    class: Priority,
    state: State,
}

enum State {
    Waiting(u64),
    Sent { at: Time, in_flight: u32 },
}

pub struct Simulation {
    agenda: Agenda,
    draws: Draws,
    gateway: Gateway,
    upstream: Upstream,
    load: Load,
    open: HashMap<u64, Open>,
    count: u64,
    outcome: Outcome,
}

impl Simulation {
    pub fn new(limit: Option<AdaptiveLimit>, queue: QueueConfig, load: Load) -> Simulation {
        Simulation {
            agenda: Agenda::default(),
            draws: Draws::new(42),
            gateway: Gateway::new(limit, queue),
            upstream: Upstream::new(load.times),
            load,
            open: HashMap::new(),
            count: 0,
            outcome: Outcome::default(),
        }
    }

    pub fn run(mut self) -> Outcome {
        for event in [Happening::Arrival { critical: true }, Happening::Arrival { critical: false }, Happening::Tick] {
            self.agenda.add(START, event);
        }
        while let Some((now, event)) = self.agenda.next() {
            if now >= self.load.measured.1 {
                break;
            }
            if self.load.slow_from.is_some_and(|from| now >= from) {
                self.upstream.slower = 2.0;
            }
            self.handle(now, event);
            while let Some(sent) = self.gateway.dispatch(now) {
                self.send(sent, now);
            }
        }
        let (from, to) = (self.load.measured.0, self.load.measured.1.before(PATIENCE));
        self.outcome.seconds = to.since(from).nanos() as f64 / 1e9;
        self.outcome.latencies.sort_unstable();
        self.outcome.limit = self.gateway.limit();
        self.outcome
    }

    fn handle(&mut self, now: Time, event: Happening) {
        match event {
            Happening::Arrival { critical } => self.arrive(now, critical),
            Happening::Finished { request } => {
                self.upstream.finished(now, &mut self.agenda, &mut self.draws);
                self.answer(request, now);
            }
            Happening::GivenUp { request } => self.give_up(request, now),
            Happening::Tick => self.agenda.add(now.after(Span::from_millis(10)), Happening::Tick),
        }
    }

    fn arrive(&mut self, now: Time, critical: bool) {
        let critical_rate = CAPACITY * CRITICAL_SHARE;
        let (calm, until) = self.load.calm;
        let offered = if now < until { calm } else { self.load.rate };
        let rate = if critical { critical_rate } else { offered - critical_rate };
        let pause = Span::from_nanos((self.draws.exponential(1.0 / rate) * 1e9) as u64);
        self.agenda.add(now.after(pause), Happening::Arrival { critical });
        let class = if critical { CRITICAL } else { SHEDDABLE };
        self.outcome.critical_offered += u64::from(critical && self.is_measured(now));
        let request = self.count;
        self.count += 1;
        let (sent, number) = self.gateway.arrive(request, class, now);
        if sent.is_none() && number.is_none() {
            return;
        }
        self.open.insert(request, Open { arrived: now, class, state: State::Waiting(number.unwrap_or_default()) });
        self.agenda.add(now.after(PATIENCE), Happening::GivenUp { request });
        if let Some(sent) = sent {
            self.send(sent, now);
        }
    }

    fn send(&mut self, sent: Sent, now: Time) {
        if let Some(open) = self.open.get_mut(&sent.request) {
            open.state = State::Sent { at: now, in_flight: sent.in_flight };
            self.upstream.receive(sent.request, now, &mut self.agenda, &mut self.draws);
        }
    }

    fn answer(&mut self, request: u64, now: Time) {
        let Some(open) = self.open.remove(&request) else { return };
        if let State::Sent { at, in_flight } = open.state {
            self.gateway.ended(now, now.since(at), in_flight, false, self.draws.bits());
        }
        if self.is_measured(open.arrived) {
            self.outcome.latencies.push(now.since(open.arrived));
            self.outcome.critical_served += u64::from(open.class == CRITICAL);
        }
    }

    fn give_up(&mut self, request: u64, now: Time) {
        let Some(open) = self.open.remove(&request) else { return };
        match open.state {
            State::Waiting(number) => self.gateway.leave(open.class, number),
            State::Sent { at, in_flight } => {
                self.gateway.ended(now, now.since(at), in_flight, true, self.draws.bits());
            }
        }
    }

    /// Requests of the last second may still be open at the end: they do not count.
    fn is_measured(&self, arrived: Time) -> bool {
        arrived >= self.load.measured.0 && arrived < self.load.measured.1.before(PATIENCE)
    }
}
