//! A simulated machine whose clocks the tests move, and concurrent readers.

use std::cell::Cell;

use super::*;

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3600 * SECOND;
const START: i64 = 1_700_000_000 * SECOND;

/// A simulated machine whose clocks a test moves.
struct Machine {
    timeline: Timeline,
    monotonic: Cell<i64>,
    wall: Cell<i64>,
    asleep: Cell<i64>,
    looks: Cell<u64>,
}

impl Machine {
    fn new() -> Machine {
        let wall = time(START);
        let first = ClockReading { monotonic: span(7 * SECOND), wall, ..ClockReading::default() };
        Machine {
            timeline: Timeline::new(first, Span::from_millis(250)),
            monotonic: Cell::new(7 * SECOND),
            wall: Cell::new(START),
            asleep: Cell::new(0),
            looks: Cell::new(0),
        }
    }

    /// Time passes, on both clocks.
    fn run(&self, nanos: i64) -> &Machine {
        self.monotonic.set(self.monotonic.get() + nanos);
        self.wall.set(self.wall.get() + nanos);
        self
    }

    fn step(&self, nanos: i64) -> &Machine {
        self.wall.set(self.wall.get() + nanos);
        self
    }

    fn suspend(&self, nanos: i64) -> &Machine {
        self.asleep.set(self.asleep.get() + nanos);
        self.step(nanos)
    }

    /// Decision time since the start, and the error of its wall time.
    fn read(&self) -> (i64, i64) {
        let now = self.timeline.now(
            || span(self.monotonic.get()),
            || {
                self.looks.set(self.looks.get() + 1);
                let (monotonic, asleep) = (span(self.monotonic.get()), span(self.asleep.get()));
                ClockReading { monotonic, wall: time(self.wall.get()), asleep, ..ClockReading::default() }
            },
        );
        (nanos_of(now) - START, nanos_of(self.timeline.wall_at(now)) - self.wall.get())
    }
}

fn span(nanos: i64) -> Span {
    Span::from_nanos(nanos.cast_unsigned())
}

#[test]
fn without_a_step_both_times_equal_the_elapsed_time() {
    let machine = Machine::new();
    for second in 1..100 {
        assert_eq!(machine.run(SECOND).read(), (second * SECOND, 0));
    }
    machine.step(NOISE / 2); // the error of a reading
    assert_eq!(machine.run(SECOND).read(), (100 * SECOND, -NOISE / 2), "noise moves nothing");
}

#[test]
fn wall_time_follows_a_step_at_once_and_decision_time_does_not() {
    for step in [HOUR, -HOUR, 24 * HOUR, 20_000_000] {
        let machine = Machine::new();
        machine.run(SECOND).step(step);
        assert_eq!(machine.read(), (SECOND, 0), "{step}");
        assert_eq!(machine.run(NOTICE).read(), (SECOND + NOTICE, 0), "{step}: all readers have seen it by then");
    }
}

#[test]
fn decision_time_slews_to_the_wall_and_never_steps_back() {
    for step in [HOUR, -HOUR] {
        let machine = Machine::new();
        machine.step(step).run(SECOND).read();
        let (first, _) = machine.read();
        let mut last = first;
        for _ in 0..2048 {
            let (now, beside) = machine.run(HOUR).read();
            let rate = (now - last - HOUR).abs();
            assert!(now > last && rate <= HOUR / SLEW + 1, "slews by {rate} an hour");
            assert!(beside.abs() <= 1_000, "wall time is right during the slew: {beside}");
            last = now;
        }
        let (now, beside) = machine.run(HOUR).read();
        assert_eq!((now - first - 2049 * HOUR, beside), (step, 0), "the slew is complete");
    }
}

#[test]
fn a_suspend_is_time_that_passed() {
    let machine = Machine::new();
    machine.run(SECOND).suspend(HOUR);
    assert_eq!(machine.run(SECOND).read(), (HOUR + 2 * SECOND, 0));
    assert_eq!(machine.run(SECOND).read(), (HOUR + 3 * SECOND, 0), "once");
}

#[test]
fn steps_during_a_slew_never_make_time_step_back() {
    let machine = Machine::new();
    let (mut last, mut state) = (0, 0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..50_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = (state >> 33).cast_signed();
        match random % 7 {
            0 => machine.step(random % (4 * HOUR) - 2 * HOUR),
            1 => machine.suspend(random % HOUR),
            _ => &machine,
        };
        let (now, _) = machine.run(random % (2 * SECOND)).read();
        assert!(now >= last, "{last} then {now}");
        last = now;
    }
}

#[test]
fn the_systems_clock_is_read_a_few_times_a_second() {
    let machine = Machine::new();
    for _ in 0..10_000 {
        machine.run(1_000_000).read();
    }
    assert_eq!(machine.looks.get(), 10_000 / 250);
}

/// Readers on other threads while segments are published.
#[test]
fn consecutive_readers_never_see_time_step_back() {
    let base = std::sync::atomic::AtomicI64::new(7 * SECOND);
    let timeline = Timeline::new(
        ClockReading { monotonic: span(7 * SECOND), wall: time(START), ..ClockReading::default() },
        Span::from_nanos(20_000),
    );
    let turn = Mutex::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let (base, timeline, turn) = (&base, &timeline, &turn);
            scope.spawn(move || {
                for round in 0..5_000_i64 {
                    let mut last = turn.lock();
                    let look = || {
                        let monotonic = base.load(Ordering::Relaxed);
                        let step = (round % 3 - 1) * HOUR * thread;
                        ClockReading {
                            monotonic: span(monotonic),
                            wall: time(START + monotonic + step),
                            ..ClockReading::default()
                        }
                    };
                    let now = nanos_of(timeline.now(|| span(base.fetch_add(1_000, Ordering::Relaxed)), look));
                    assert!(now >= *last, "{last} then {now}");
                    *last = now;
                }
            });
        }
    });
}
