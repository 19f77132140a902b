//! Candidates in interleaved rounds: A B C A B C …, each warmed up before it is timed.
//!
//! Disturbances of the machine affect all of them alike, and ratios are taken within a round. A heat builds everything
//! again and in another order: two stores of the same content may differ in memory layout, which stays for the whole heat.

use std::sync::Barrier;

use crate::keys::{self, Sequence};
use crate::peers::BatchLimiter;
use crate::report::progress;
use crate::statistics::Sample;
use crate::stopwatch::{Elapsed, Stopwatch, pin};

/// The candidates of one heat, by name.
pub type LimiterSet = Vec<(&'static str, Box<dyn BatchLimiter>)>;

/// Rounds, heats and threads of a race.
#[derive(Clone, Copy, Debug)]
pub struct RacePlan {
    /// Timed rounds per heat.
    pub rounds: usize,
    /// How often the field is built anew.
    pub heats: usize,
    /// How many threads race at once, in turn.
    pub threads: &'static [usize],
}

/// One candidate's times on so many threads.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// The candidate.
    pub name: &'static str,
    /// How many threads.
    pub threads: usize,
    /// CPU nanoseconds per check.
    pub cpu: Sample,
    /// Checks per microsecond of all threads together, the wait for cores left out.
    pub throughput: Sample,
    /// The same with it: less, when the machine is shared.
    pub throughput_wall: Sample,
    /// Rounds in which a thread did not get its core.
    pub noisy: usize,
    /// Rounds in all.
    pub rounds: usize,
}

/// The keys of a round, the same for every candidate.
#[derive(Debug)]
pub struct Course {
    keys: usize,
    warm_up: Sequence,
    laps: Vec<Sequence>,
}

impl Course {
    /// A course over that many keys: every key once to fill the store, a warm-up, then `checks` timed ones a thread.
    pub fn new(keys: usize, checks: usize, threads: usize) -> Course {
        let warm_up = keys::random(keys, keys.clamp(100_000, 1_000_000), 7);
        Course {
            keys,
            warm_up,
            laps: (0..threads).map(|lap| keys::random(keys, checks, 1_234_567 + lap as u64)).collect(),
        }
    }
}

/// Every candidate's times, per number of threads.
#[derive(Debug)]
pub struct Standings(Vec<Times>);

impl Standings {
    /// The times of one candidate on so many threads.
    pub fn of(&self, name: &str, threads: usize) -> Times {
        self.0.iter().find(|times| times.name == name && times.threads == threads).cloned().unwrap_or_default()
    }

    /// All of them on so many threads, in the order of the field.
    pub fn on(&self, threads: usize) -> impl Iterator<Item = &Times> {
        self.0.iter().filter(move |times| times.threads == threads)
    }
}

/// Runs every candidate over the course. Panics if a check is refused: the race would then compare different work.
pub fn race(build: &dyn Fn() -> LimiterSet, course: &Course, plan: &RacePlan) -> Standings {
    let mut standings = Standings(Vec::new());
    for heat in 0..plan.heats {
        progress(&format!("  {} keys, heat {} of {}", course.keys, heat + 1, plan.heats));
        let field = build();
        let fill = keys::all(course.keys);
        let turn = heat % field.len().max(1);
        for (_, candidate) in field.iter().cycle().skip(turn).take(field.len()) {
            all_pass(&**candidate, &fill);
        }
        drop(fill);
        for threads in plan.threads {
            standings.enter_heat(&field, *threads, course, plan.rounds);
        }
    }
    standings
}

impl Standings {
    fn enter_heat(&mut self, field: &LimiterSet, threads: usize, course: &Course, rounds: usize) {
        for _ in 0..rounds {
            for (name, candidate) in field {
                let laps = course.laps.get(..threads).unwrap_or_default();
                let elapsed = run(&**candidate, &course.warm_up, laps);
                self.times(name, threads).enter(&elapsed, laps);
            }
        }
    }

    fn times(&mut self, name: &'static str, threads: usize) -> &mut Times {
        let place = match self.0.iter().position(|times| times.name == name && times.threads == threads) {
            Some(place) => place,
            None => {
                self.0.push(Times { name, threads, ..Times::default() });
                self.0.len() - 1
            }
        };
        #[expect(clippy::indexing_slicing, reason = "the place was just found or made")]
        &mut self.0[place]
    }
}

/// One candidate, one round: all laps at once, each on a thread of its own.
fn run(candidate: &dyn BatchLimiter, warm_up: &Sequence, laps: &[Sequence]) -> Vec<Elapsed> {
    if let [lap] = laps {
        all_pass(candidate, warm_up);
        return vec![timed(candidate, lap)];
    }
    let start = &Barrier::new(laps.len());
    std::thread::scope(|scope| {
        let lap = |(core, lap)| {
            scope.spawn(move || {
                pin(core);
                all_pass(candidate, warm_up);
                start.wait();
                timed(candidate, lap)
            })
        };
        let threads: Vec<_> = laps.iter().enumerate().map(lap).collect();
        threads.into_iter().map(|thread| thread.join().expect("a lap does not panic")).collect()
    })
}

fn timed(candidate: &dyn BatchLimiter, lap: &Sequence) -> Elapsed {
    let watch = Stopwatch::start();
    all_pass(candidate, lap);
    watch.stop()
}

fn all_pass(candidate: &dyn BatchLimiter, keys: &Sequence) {
    let passed = candidate.run(keys);
    assert_eq!(passed, keys.len(), "every check passes, or the race compares different work");
}

impl Times {
    fn enter(&mut self, elapsed: &[Elapsed], laps: &[Sequence]) {
        let checks = |lap: &Sequence| lap.len() as f64;
        let all: f64 = laps.iter().map(checks).sum();
        let cpu: f64 = elapsed.iter().map(|lap| lap.cpu).sum();
        let wall = elapsed.iter().map(|lap| lap.wall).fold(0.0, f64::max);
        let rate: f64 = laps.iter().zip(elapsed).map(|(lap, elapsed)| checks(lap) / elapsed.own() * 1e3).sum();
        self.cpu.extend([cpu / all]);
        self.throughput.extend([rate]);
        self.throughput_wall.extend([all / wall * 1e3]);
        self.noisy += usize::from(elapsed.iter().any(Elapsed::is_noisy));
        self.rounds += 1;
    }

    /// Name, time, spread, throughput and noise, as a row of a table.
    pub fn row(&self) -> Vec<String> {
        vec![
            self.name.to_owned(),
            format!("{:.1}", self.cpu.median()),
            format!("{:.0} %", self.cpu.spread_percent()),
            format!("{:.2}", self.throughput.median()),
            format!("{:.2}", self.throughput_wall.median()),
            format!("{}/{}", self.noisy, self.rounds),
        ]
    }

    /// The heads of those columns.
    pub const HEADS: [&str; 6] = ["candidate", "ns per check", "±", "M checks/s", "by the wall", "noisy"];
}
