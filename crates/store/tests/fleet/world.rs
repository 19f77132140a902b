//! A simulated fleet in one thread: nodes over one store, a manual clock, and a network with a delay.
//!
//! Everything is drawn from a seed. A call travels for half the delay, is executed at the store's time, and its answer
//! travels for the other half; other requests go on in between, and nodes may crash.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use tollgate_core::{
    Charge, Clock, Digest, KeyHasher, Limit, ManualClock, Receipt, Secret, Sharing, Source, Span, Time,
};
use tollgate_store::{
    Fleet, FleetConfig, FleetStats, Memory, MemoryConfig, Outcomes, Store, StoreError, StoreErrorKind, Taken,
};

/// How far time moves at once.
pub const TICK: Span = Span::from_nanos(50_000);

/// A clock with a constant offset from the store's, as on real machines.
pub struct SkewedClock(pub ManualClock, pub Span);

impl Clock for SkewedClock {
    fn now(&self) -> Time {
        self.0.now().after(self.1)
    }
}

/// The shared store as one node sees it.
pub struct Remote {
    pub memory: Arc<Memory>,
    pub clock: ManualClock,
    pub delay: Span,
    pub nodes: u64,
    pub link: Arc<Link>,
}

/// The state of the network, and the calls it carried.
#[derive(Default)]
pub struct Link {
    state: AtomicU8,
    pub takes: AtomicU64,
    pub returns: AtomicU64,
}

/// The state of the network.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Up,
    /// Calls do not arrive.
    Down,
    /// Calls arrive, answers are lost.
    AnswersLost,
}

impl Link {
    pub fn set(&self, network: Network) {
        self.state.store(network as u8, Ordering::Relaxed);
    }

    fn is(&self, network: Network) -> bool {
        self.state.load(Ordering::Relaxed) == network as u8
    }

    fn error(&self, kind: StoreErrorKind) -> StoreError {
        StoreError { kind, detail: "the network is down".to_owned() }
    }
}

/// Waits until the clock shows a time.
struct Until(ManualClock, Time);

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.now() >= self.1 { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Remote {
    pub fn new(memory: Arc<Memory>, clock: ManualClock) -> Remote {
        Remote { memory, clock, delay: Span::ZERO, nodes: 1, link: Arc::default() }
    }

    async fn call<T>(&self, answer: impl FnOnce(&Memory) -> T) -> Result<T, StoreError> {
        let start = self.clock.now();
        if self.link.is(Network::Down) {
            return Err(self.link.error(StoreErrorKind::Unavailable));
        }
        Until(self.clock.clone(), start.after(Span::from_nanos(self.delay.nanos() / 2))).await;
        let answer = answer(&self.memory);
        Until(self.clock.clone(), start.after(self.delay)).await;
        match self.link.is(Network::AnswersLost) {
            true => Err(self.link.error(StoreErrorKind::Indeterminate)),
            false => Ok(answer),
        }
    }
}

impl Store for Remote {
    async fn take(&self, charges: &[Charge], _: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        self.link.takes.fetch_add(1, Ordering::Relaxed);
        self.call(|memory| memory.take_now(charges, outcomes)).await
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        self.link.returns.fetch_add(1, Ordering::Relaxed);
        self.call(|memory| memory.give_back_now(receipts)).await
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), StoreError> {
        self.call(|memory| memory.forget_now(buckets)).await
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn nodes(&self) -> Option<u64> {
        Some(self.nodes)
    }
}

/// One decision, and when it took effect by the store's time.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub time: Time,
    pub cost: u64,
    pub allowed: bool,
    pub source: Source,
    /// How long the request waited for its answer.
    pub waited: Span,
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// One node: its store and its tasks.
pub struct Node {
    pub fleet: Arc<Fleet<Remote>>,
    tasks: RefCell<Vec<Task>>,
    upkeep_at: Cell<Time>,
}

/// The whole fleet.
pub struct World {
    pub clock: ManualClock,
    pub memory: Arc<Memory>,
    pub nodes: Vec<Node>,
    pub log: std::rc::Rc<RefCell<Vec<Event>>>,
    pub draw: Draw,
    config: FleetConfig,
    delay: Span,
    expected: u64,
    pub dead: RefCell<Vec<FleetStats>>,
    pub link: Arc<Link>,
}

impl World {
    pub fn new(nodes: u64, config: FleetConfig, delay: Span, seed: u64) -> World {
        let clock = ManualClock::at(Time::from_secs(1_700_000_000));
        let memory = Arc::new(Memory::with_clock(MemoryConfig::default(), Arc::new(clock.clone())));
        let mut world = World {
            clock,
            memory,
            nodes: Vec::new(),
            log: Default::default(),
            draw: Draw(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1),
            config,
            delay,
            expected: nodes,
            dead: Default::default(),
            link: Arc::default(),
        };
        (0..nodes).for_each(|_| world.join());
        world
    }

    /// A new node joins; its clock has a random offset.
    pub fn join(&mut self) {
        let skewed = SkewedClock(self.clock.clone(), Span::from_nanos(self.draw.below(1 << 40)));
        let remote = Remote {
            delay: self.delay,
            nodes: self.expected,
            link: self.link.clone(),
            ..Remote::new(self.memory.clone(), self.clock.clone())
        };
        let fleet = Arc::new(Fleet::new(remote, self.config, Arc::new(skewed)));
        let upkeep_at = Cell::new(self.clock.now().after(Span::from_nanos(self.draw.below(50_000_000))));
        self.nodes.push(Node { fleet, tasks: RefCell::default(), upkeep_at });
    }

    /// A node crashes, with its leases and tasks.
    pub fn crash(&mut self, place: usize) {
        let node = self.nodes.remove(place);
        self.dead.borrow_mut().push(node.fleet.stats());
    }

    /// Sends a request to a node.
    pub fn ask(&self, node: &Node, charge: Charge) {
        let (fleet, log, clock) = (node.fleet.clone(), self.log.clone(), self.clock.clone());
        self.spawn(node, async move {
            let mut outcomes = Outcomes::new();
            let spent = clock.now(); // a lease is spent at once, even if the request waits for a refill
            if let Ok(taken) = fleet.take(&[charge], Span::from_millis(25), &mut outcomes).await {
                let source = outcomes[0].source;
                let time = if source == Source::Bucket { taken.now } else { spent };
                let cost = charge.ask.cost();
                let waited = clock.now().since(spent);
                log.borrow_mut().push(Event { time, cost, allowed: taken.allowed, source, waited });
            }
        });
    }

    pub fn spawn(&self, node: &Node, task: impl Future<Output = ()> + 'static) {
        let mut task: Task = Box::pin(task);
        if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            node.tasks.borrow_mut().push(task);
        }
    }

    /// Lends every node a task that refills its leases.
    pub fn run_refills(&self) {
        for node in &self.nodes {
            let fleet = node.fleet.clone();
            self.spawn(node, async move { match fleet.run_refills().await {} });
        }
    }

    /// Advances time by a tick: answers arrive, and nodes run their upkeep.
    pub fn tick(&self) {
        self.clock.advance(TICK);
        for node in &self.nodes {
            let mut tasks = std::mem::take(&mut *node.tasks.borrow_mut());
            tasks.retain_mut(|task| task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            node.tasks.borrow_mut().append(&mut tasks);
            if self.clock.now() >= node.upkeep_at.get() {
                node.upkeep_at.set(self.clock.now().after(Span::from_millis(50)));
                let fleet = node.fleet.clone();
                self.spawn(node, async move { fleet.upkeep().await });
            }
        }
    }

    /// Sends `per_second` requests per second to each node; `which` returns the charge.
    pub fn load(&mut self, span: Span, per_second: u64, mut which: impl FnMut(&mut Draw) -> Charge) {
        let end = self.clock.now().after(span);
        while self.clock.now() < end {
            let mut draw = self.draw;
            for node in &self.nodes {
                for _ in 0..draw.arrivals(per_second) {
                    let charge = which(&mut draw);
                    self.ask(node, charge);
                }
            }
            self.draw = draw;
            self.tick();
        }
    }

    pub fn stats(&self) -> FleetStats {
        let live = self.nodes.iter().map(|node| node.fleet.stats());
        live.chain(self.dead.borrow().iter().copied()).fold(FleetStats::default(), |a, b| FleetStats {
            leases: a.leases + b.leases,
            lease_held: a.lease_held + b.lease_held,
            lease_granted: a.lease_granted + b.lease_granted,
            lease_grants: a.lease_grants + b.lease_grants,
            lease_spent: a.lease_spent + b.lease_spent,
            lease_returned: a.lease_returned + b.lease_returned,
            lease_stranded: a.lease_stranded + b.lease_stranded,
            by_lease: a.by_lease + b.by_lease,
            by_deny_cache: a.by_deny_cache + b.by_deny_cache,
            by_async: a.by_async + b.by_async,
            by_local: a.by_local + b.by_local,
            inner_calls: a.inner_calls + b.inner_calls,
            async_pending: a.async_pending + b.async_pending,
            async_excess: a.async_excess + b.async_excess,
            deny_entries: a.deny_entries + b.deny_entries,
        })
    }

    /// Admitted requests, in the order of the store's time.
    pub fn admitted(&self) -> Vec<Event> {
        let mut events: Vec<Event> = self.log.borrow().iter().copied().filter(|event| event.allowed).collect();
        events.sort_by_key(|event| event.time);
        events
    }
}

/// The largest excess over `burst + t / interval` in any interval: what a bucket of that rate would have had to hold
/// beyond its burst.
pub fn excess(events: &[Event], burst: u64, interval: Span) -> u64 {
    let (mut level, mut last, mut most) = (0_u64, Time::ZERO, 0);
    for event in events {
        level = level.saturating_sub(event.time.since(last).nanos()) + event.cost * interval.nanos();
        last = event.time;
        most = most.max(level);
    }
    most.saturating_sub(burst * interval.nanos()).div_ceil(interval.nanos())
}

/// A pseudo-random generator.
#[derive(Clone, Copy)]
pub struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    /// How many of `per_second` requests fall into a tick: the integer part, and one more at random.
    pub fn arrivals(&mut self, per_second: u64) -> u64 {
        let nanos = per_second * TICK.nanos();
        nanos / 1_000_000_000 + u64::from(self.below(1_000_000_000) < nanos % 1_000_000_000)
    }
}

pub fn digest(number: u64) -> Digest {
    let mut hasher = KeyHasher::new(Secret::new([7; 16]));
    hasher.word(number);
    hasher.finish()
}

pub fn charge(number: u64, limit: Limit, sharing: Sharing) -> Charge {
    Charge { sharing, ..Charge::new(digest(number), limit, 1) }
}

/// The result of a future that is ready at the first poll.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the future is pending"),
    }
}
