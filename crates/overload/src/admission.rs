//! Admission to an upstream: a concurrency limit, and a queue by priority in front of it.
//!
//! A request takes a slot if one is free and no request as important waits. Otherwise it waits in the bounded queue. A
//! slot that comes free goes to the next request in the same moment; a caller that gives up frees its place; a permit
//! that is dropped, wherever, frees its slot.
//!
//! Two locks, always in this order: the queue's, then the limiter's. Nothing is awaited under either.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tollgate_core::{Clock, Span, Time};

use crate::adaptive::AdaptiveConfig;
use crate::limiter::{ConcurrencyLimiter, LimiterPermit};
use crate::priority::Priority;
use crate::wait_queue::{PRIORITY_WINDOW, Pushed, QueueConfig, ShedReason, WaitQueue};

#[cfg(test)]
mod tests;

/// An upstream counts as overloaded for so long after a request was shed.
const OVERLOADED_FOR: Span = Span::SECOND;

/// How an upstream is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionConfig {
    /// Requests in flight.
    pub limit: AdaptiveConfig,
    /// Requests that wait.
    pub queue: QueueConfig,
    /// The share of the limit, rounded up, that only important requests may use.
    pub reserved_percent: u32,
    /// The lowest class that may use the reserved share.
    pub reserved_for: Priority,
}

impl AdmissionConfig {
    /// Without a reserved share, and with the default queue.
    pub fn new(limit: AdaptiveConfig) -> AdmissionConfig {
        AdmissionConfig { limit, queue: QueueConfig::default(), reserved_percent: 0, reserved_for: Priority::HEALTH }
    }
}

impl Default for AdmissionConfig {
    fn default() -> AdmissionConfig {
        AdmissionConfig::new(AdaptiveConfig::default())
    }
}

/// Figures for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionStats {
    /// How many requests may be in flight.
    pub limit: u32,
    /// How many are.
    pub in_flight: u32,
    /// How many wait.
    pub waiting: usize,
    /// Whether a queue stands, or a request was shed within the last second.
    pub is_overloaded: bool,
}

/// Admits requests to one upstream. Clones share it.
#[derive(Clone)]
pub struct AdmissionController {
    shared: Arc<Shared>,
}

struct Shared {
    limiter: ConcurrencyLimiter,
    config: AdmissionConfig,
    queue: Mutex<WaitQueue<Waiter>>,
}

/// The other end of a request that waits.
type Waiter = oneshot::Sender<Result<AdmissionPermit, ShedReason>>;

impl AdmissionController {
    /// Nothing in flight, nothing waits; `seed` spreads what algorithms do now and then.
    pub fn new(config: AdmissionConfig, clock: Arc<dyn Clock>, seed: u64) -> AdmissionController {
        let limiter = ConcurrencyLimiter::new(config.limit, clock, seed);
        let queue = Mutex::new(WaitQueue::new(config.queue));
        AdmissionController { shared: Arc::new(Shared { limiter, config, queue }) }
    }

    /// Waits for a slot, as long as the queue allows. The request leaves the queue when the future is dropped.
    pub async fn acquire(&self, priority: Priority) -> Result<AdmissionPermit, ShedReason> {
        match self.shared.enter(priority) {
            Entered::Admitted(permit) => Ok(permit),
            Entered::Shed(reason) => Err(reason),
            Entered::Waiting(mut waiting) => waiting.wait().await,
        }
    }

    /// Whether a queue stands, or a request was shed within the last second: what a 503 reports.
    pub fn is_overloaded(&self) -> bool {
        self.shared.queue.lock().is_overloaded(self.shared.limiter.now(), OVERLOADED_FOR)
    }

    /// Figures for metrics.
    pub fn stats(&self) -> AdmissionStats {
        let waiting = self.shared.queue.lock().len();
        let (limit, in_flight) = (self.shared.limiter.limit(), self.shared.limiter.in_flight());
        AdmissionStats { limit, in_flight, waiting, is_overloaded: self.is_overloaded() }
    }
}

impl fmt::Debug for AdmissionController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionController").field("stats", &self.stats()).finish()
    }
}

enum Entered {
    Admitted(AdmissionPermit),
    Waiting(Waiting),
    Shed(ShedReason),
}

impl Shared {
    fn enter(self: &Arc<Self>, priority: Priority) -> Entered {
        let mut queue = self.queue.lock();
        let now = self.limiter.now();
        queue.expire(now, refuse);
        if queue.may_pass(priority, now)
            && let Some(permit) = self.take_slot(priority, now)
        {
            queue.passed(priority, now);
            return Entered::Admitted(permit);
        }
        let (sender, receiver) = oneshot::channel();
        let number = match queue.push(priority, now, sender) {
            Pushed::Waiting(number) => number,
            Pushed::Displacing(number, displaced) => {
                refuse(displaced, ShedReason::Displaced);
                number
            }
            Pushed::Refused(_) => return Entered::Shed(ShedReason::QueueFull),
        };
        Entered::Waiting(Waiting { shared: self.clone(), priority, number, since: now, receiver })
    }

    /// Sheds what waited too long, and gives free slots to those who wait.
    fn dispatch(self: &Arc<Self>) {
        // A permit that cannot be delivered frees its slot again, which takes the lock.
        let mut undelivered = Vec::new();
        let mut queue = self.queue.lock();
        if queue.is_empty() {
            return; // the usual case: no clock is read
        }
        let now = self.limiter.now();
        queue.expire(now, refuse);
        while let Some(class) = queue.next_class(now) {
            let Some(mut permit) = self.take_slot(class, now) else { break };
            let Some((waiter, waited)) = queue.pop(class, now) else {
                undelivered.push(Ok(permit));
                break;
            };
            permit.waited = waited;
            undelivered.extend(waiter.send(Ok(permit)).err());
        }
        drop(queue);
    }

    fn take_slot(self: &Arc<Self>, priority: Priority, now: Time) -> Option<AdmissionPermit> {
        let reserved = if priority >= self.config.reserved_for { 0 } else { self.config.reserved_percent };
        let permit = self.limiter.try_acquire_at(now, reserved)?;
        Some(AdmissionPermit { permit: Some(permit), shared: self.clone(), priority, waited: Span::ZERO })
    }
}

/// A waiter whose caller is gone is not shed, it left.
fn refuse(waiter: Waiter, reason: ShedReason) {
    drop(waiter.send(Err(reason)));
}

/// A place in the queue. Dropping it leaves the queue; a permit that arrived meanwhile is dropped with the receiver.
struct Waiting {
    shared: Arc<Shared>,
    priority: Priority,
    number: u64,
    since: Time,
    receiver: oneshot::Receiver<Result<AdmissionPermit, ShedReason>>,
}

impl Waiting {
    async fn wait(&mut self) -> Result<AdmissionPermit, ShedReason> {
        loop {
            let pause = self.until_next_look();
            tokio::select! {
                biased;
                result = &mut self.receiver => return result.unwrap_or(Err(ShedReason::WaitedTooLong)),
                () = tokio::time::sleep(pause) => self.shared.dispatch(),
            }
        }
    }

    /// Until the longest wait is over; and often enough to notice that a class is not held back any more, also when no
    /// request ends meanwhile.
    fn until_next_look(&self) -> Duration {
        let waited = self.shared.limiter.now().since(self.since);
        let left = self.shared.config.queue.max_wait.max(PRIORITY_WINDOW).minus(waited);
        left.min(PRIORITY_WINDOW).max(Span::from_millis(1)).into()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let left = self.shared.queue.lock().remove(self.priority, self.number);
        drop(left);
    }
}

/// One admitted request. Dropping it frees the slot, records a sample, and admits the next request.
#[must_use]
pub struct AdmissionPermit {
    /// Always there until the permit is dropped.
    permit: Option<LimiterPermit>,
    shared: Arc<Shared>,
    priority: Priority,
    waited: Span,
}

impl AdmissionPermit {
    /// The class of the request.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// How long the request waited in the queue.
    pub fn waited(&self) -> Span {
        self.waited
    }

    /// The upstream refused the request for load, or did not answer in time.
    pub fn mark_dropped(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.mark_dropped();
        }
    }

    /// The end of this request says nothing about the upstream: the caller hung up, or no connection was open.
    pub fn ignore(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.ignore();
        }
    }

    /// Records the sample now and keeps the slot: the head of the response is there, and its body may stream for hours.
    pub fn record_now(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.record_now();
            self.shared.dispatch(); // the limit may have grown
        }
    }
}

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.shared.dispatch();
    }
}

impl fmt::Debug for AdmissionPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionPermit").field("priority", &self.priority).field("waited", &self.waited).finish()
    }
}
