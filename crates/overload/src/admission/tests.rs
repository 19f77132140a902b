//! Waiting for slots: order, bounds, cancellation, and no slot lost over 100,000 random steps.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::time::Instant;
use tollgate_core::ManualClock;

use super::*;
use crate::adaptive::AdaptiveAlgorithm;
use crate::chance::{below, mix};
use crate::wait_queue::QueueDiscipline;

const LOW: Priority = Priority::of_rank(0);
const HIGH: Priority = Priority::of_rank(3);

/// Tokio's clock, which the tests pause.
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Time {
        Time::from_secs(1_000).after(self.0.elapsed().into())
    }
}

fn paused(slots: u32, queue: QueueConfig) -> AdmissionController {
    let config = AdmissionConfig { queue, ..AdmissionConfig::new(AdaptiveConfig::fixed(slots)) };
    AdmissionController::new(config, Arc::new(PausedClock(Instant::now())), 1)
}

fn fifo() -> QueueConfig {
    QueueConfig { discipline: QueueDiscipline::Fifo, ..QueueConfig::default() }
}

type Acquiring = Pin<Box<dyn Future<Output = Result<AdmissionPermit, ShedReason>>>>;

fn acquiring(controller: &AdmissionController, class: Priority) -> Acquiring {
    let controller = controller.clone();
    Box::pin(async move { controller.acquire(class).await })
}

fn poll(future: &mut Acquiring) -> Poll<Result<AdmissionPermit, ShedReason>> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn a_free_slot_goes_to_the_highest_class_that_waits() {
    let controller = paused(1, fifo());
    let held = controller.acquire(LOW).await.unwrap();
    let (mut low, mut high) = (acquiring(&controller, LOW), acquiring(&controller, HIGH));
    assert!(poll(&mut low).is_pending() && poll(&mut high).is_pending());
    drop(held);
    let Poll::Ready(Ok(permit)) = poll(&mut high) else { panic!("the slot is free") };
    assert!(poll(&mut low).is_pending());
    drop(permit);
    assert!(matches!(poll(&mut low), Poll::Ready(Ok(_))));
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_after_the_maximum() {
    let controller = paused(1, fifo());
    let _held = controller.acquire(LOW).await.unwrap();
    let start = Instant::now();
    assert_eq!(controller.acquire(LOW).await.unwrap_err(), ShedReason::WaitedTooLong);
    assert_eq!(start.elapsed().as_millis(), 500);
    assert!(controller.is_overloaded());
    assert_eq!(controller.stats().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_frees_its_place() {
    let controller = paused(1, QueueConfig { max: 1, ..fifo() });
    let held = controller.acquire(LOW).await.unwrap();
    let mut gone = acquiring(&controller, LOW);
    assert!(poll(&mut gone).is_pending());
    assert_eq!(controller.acquire(LOW).await.unwrap_err(), ShedReason::QueueFull);
    drop(gone);
    let mut next = acquiring(&controller, LOW);
    assert!(poll(&mut next).is_pending());
    drop(held);
    assert!(matches!(poll(&mut next), Poll::Ready(Ok(_))));
}

#[tokio::test(start_paused = true)]
async fn a_slot_for_a_caller_that_is_gone_goes_to_the_next() {
    let controller = paused(1, fifo());
    let held = controller.acquire(LOW).await.unwrap();
    let (mut gone, mut next) = (acquiring(&controller, LOW), acquiring(&controller, LOW));
    assert!(poll(&mut gone).is_pending() && poll(&mut next).is_pending());
    drop(held); // the slot is sent to `gone`, which never looks
    drop(gone);
    assert!(matches!(poll(&mut next), Poll::Ready(Ok(_))));
}

#[tokio::test(start_paused = true)]
async fn a_class_that_was_held_back_is_admitted_without_any_event() {
    let controller = paused(1, QueueConfig { max: 1, ..fifo() });
    let held = controller.acquire(HIGH).await.unwrap();
    let mut high = acquiring(&controller, HIGH);
    assert!(poll(&mut high).is_pending());
    assert!(controller.acquire(HIGH).await.is_err(), "shed: lower classes are held back");
    drop(held);
    assert!(matches!(poll(&mut high), Poll::Ready(Ok(_))));
    drop(high);
    let start = Instant::now();
    assert!(controller.acquire(LOW).await.is_ok());
    assert_eq!(start.elapsed().as_millis(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_reserved_share_is_for_important_classes() {
    let config = AdmissionConfig {
        queue: QueueConfig { max: 0, ..fifo() },
        reserved_percent: 20,
        reserved_for: HIGH,
        ..AdmissionConfig::new(AdaptiveConfig::fixed(5))
    };
    let controller = AdmissionController::new(config, Arc::new(PausedClock(Instant::now())), 1);
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(controller.acquire(LOW).await.unwrap());
    }
    assert!(controller.acquire(LOW).await.is_err());
    held.push(controller.acquire(HIGH).await.unwrap());
    assert!(controller.acquire(HIGH).await.is_err());
}

/// Requests in every state, moved by random steps.
struct Storm {
    controller: AdmissionController,
    clock: ManualClock,
    waiting: Vec<Acquiring>,
    held: Vec<AdmissionPermit>,
    random: u64,
}

impl Storm {
    fn new(limit: AdaptiveConfig, discipline: QueueDiscipline) -> Storm {
        let clock = ManualClock::at(Time::from_secs(1_000));
        let queue = QueueConfig { max: 20, discipline, ..QueueConfig::default() };
        let config = AdmissionConfig { queue, ..AdmissionConfig::new(limit) };
        let controller = AdmissionController::new(config, Arc::new(clock.clone()), 7);
        Storm { controller, clock, waiting: Vec::new(), held: Vec::new(), random: 1 }
    }

    fn draw(&mut self, bound: usize) -> usize {
        self.random = mix(self.random);
        below(bound as u64, self.random) as usize
    }

    fn step(&mut self) {
        match self.draw(9) {
            0..=2 => {
                let class = Priority::of_rank(self.draw(4) as u8);
                self.waiting.push(acquiring(&self.controller, class));
                self.look(self.waiting.len() - 1);
            }
            3..=4 if !self.waiting.is_empty() => {
                let index = self.draw(self.waiting.len());
                self.look(index);
            }
            5 if !self.waiting.is_empty() => {
                let index = self.draw(self.waiting.len());
                drop(self.waiting.swap_remove(index));
            }
            6..=7 if !self.held.is_empty() => self.end_one(),
            _ => {
                let millis = self.draw(20) as u64;
                self.clock.advance(Span::from_millis(millis));
            }
        }
    }

    fn look(&mut self, index: usize) {
        let Poll::Ready(result) = poll(&mut self.waiting[index]) else { return };
        drop(self.waiting.swap_remove(index));
        self.held.extend(result.ok());
    }

    fn end_one(&mut self) {
        let index = self.draw(self.held.len());
        let mut permit = self.held.swap_remove(index);
        match self.draw(4) {
            0 => permit.mark_dropped(),
            1 => permit.ignore(),
            2 => permit.record_now(),
            _ => {}
        }
        drop(permit);
    }
}

#[tokio::test(start_paused = true)]
async fn no_slot_is_lost_in_a_hundred_thousand_random_steps() {
    let aimd = AdaptiveConfig { initial: 10, min: 2, max: 12, ..AdaptiveConfig::of(AdaptiveAlgorithm::Aimd) };
    let cases = [
        (AdaptiveConfig::fixed(5), QueueDiscipline::Codel),
        (AdaptiveConfig::fixed(1), QueueDiscipline::Lifo),
        (aimd, QueueDiscipline::Fifo),
    ];
    for (limit, discipline) in cases {
        let mut storm = Storm::new(limit, discipline);
        let mut before = 0;
        for step in 0..100_000 {
            storm.step();
            let stats = storm.controller.stats();
            let admitted = stats.in_flight > std::mem::replace(&mut before, stats.in_flight);
            assert!(!admitted || stats.in_flight <= stats.limit, "step {step}: {stats:?}");
            assert!(stats.in_flight <= limit.max, "step {step}: {stats:?}");
            assert!(stats.waiting <= storm.waiting.len() && stats.waiting <= 40, "step {step}: {stats:?}");
            assert!(stats.in_flight as usize >= storm.held.len(), "step {step}: {stats:?}");
        }
        storm.waiting.clear();
        assert_eq!(storm.controller.stats().in_flight as usize, storm.held.len(), "{discipline:?}");
        storm.held.clear();
        let stats = storm.controller.stats();
        assert_eq!((stats.in_flight, stats.waiting), (0, 0), "{discipline:?}");
    }
}

#[test]
fn threads_that_wait_are_all_admitted_and_never_too_many() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let clock = Arc::new(ManualClock::at(Time::from_secs(1_000))); // stands still: no wait is too long
    let config = AdmissionConfig::new(AdaptiveConfig::fixed(3));
    let controller = AdmissionController::new(config, clock, 1);
    let running = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8u8 {
            let (controller, running) = (controller.clone(), &running);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                for _ in 0..500 {
                    let permit = runtime.block_on(controller.acquire(Priority::of_rank(thread % 4))).unwrap();
                    assert!(running.fetch_add(1, Ordering::SeqCst) < 3);
                    std::thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                    drop(permit);
                }
            });
        }
    });
    let stats = controller.stats();
    assert_eq!((stats.in_flight, stats.waiting), (0, 0));
}

#[test]
fn threads_never_exceed_the_limit() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let clock = Arc::new(ManualClock::at(Time::from_secs(1_000)));
    let limiter = ConcurrencyLimiter::new(AdaptiveConfig::fixed(3), clock, 1);
    let (running, admitted) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    let Some(permit) = limiter.try_acquire() else { continue };
                    assert!(running.fetch_add(1, Ordering::SeqCst) < 3);
                    std::thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                    admitted.fetch_add(1, Ordering::Relaxed);
                    drop(permit);
                }
            });
        }
    });
    assert_eq!(limiter.in_flight(), 0);
    assert!(admitted.into_inner() >= 2_000);
}

#[test]
fn futures_and_permits_may_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    fn is_sync<T: Sync>(_: &T) {}
    let clock = Arc::new(ManualClock::at(Time::from_secs(1_000)));
    let controller = AdmissionController::new(AdmissionConfig::default(), clock, 1);
    let mut future = Box::pin(controller.acquire(LOW));
    is_send(&future);
    is_sync(&controller);
    let Poll::Ready(Ok(permit)) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("slots are free")
    };
    is_send(&permit);
    is_sync(&permit);
}
