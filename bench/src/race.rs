//! Candidates in interleaved rounds: A B C A B C …, each warmed up before it is timed.
//!
//! Whatever the machine does in the meantime happens to all of them alike, and ratios are taken within a round.

use std::sync::Barrier;

use crate::keys::Sequence;
use crate::peers::Candidate;
use crate::statistics::Sample;
use crate::stopwatch::{Elapsed, Stopwatch, pin};

/// One candidate's times.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Who.
    pub name: String,
    /// CPU nanoseconds per check on one thread.
    pub cpu: Sample,
    /// Checks per microsecond of all threads together, by their CPU time.
    pub throughput: Sample,
    /// The same by the wall: what is left when the machine is shared.
    pub throughput_wall: Sample,
    /// Rounds in which the thread did not get its core.
    pub noisy: usize,
    /// Rounds in all.
    pub rounds: usize,
}

/// What everybody is asked in a round.
#[derive(Debug)]
pub struct Course {
    /// Thrown away.
    pub warm_up: Sequence,
    /// Timed; one per thread.
    pub laps: Vec<Sequence>,
}

/// Runs every candidate over the course, `rounds` times in turn. Panics if a check is refused: the race would then
/// compare different work.
pub fn race(candidates: &[(&str, &dyn Candidate)], course: &Course, rounds: usize) -> Vec<Times> {
    let mut times: Vec<Times> =
        candidates.iter().map(|(name, _)| Times { name: (*name).to_owned(), ..Times::default() }).collect();
    for _ in 0..rounds {
        for ((_, candidate), times) in candidates.iter().zip(&mut times) {
            times.enter(&run(*candidate, course), course);
        }
    }
    times
}

/// One candidate, one round: all laps at once, each on a thread of its own.
fn run(candidate: &dyn Candidate, course: &Course) -> Vec<Elapsed> {
    match course.laps.as_slice() {
        [lap] => {
            all_pass(candidate, &course.warm_up);
            vec![timed(candidate, lap)]
        }
        laps => {
            let start = Barrier::new(laps.len());
            std::thread::scope(|scope| {
                let lap = |(core, lap)| {
                    let start = &start;
                    scope.spawn(move || {
                        pin(core);
                        all_pass(candidate, &course.warm_up);
                        start.wait();
                        timed(candidate, lap)
                    })
                };
                let threads: Vec<_> = laps.iter().enumerate().map(lap).collect();
                threads.into_iter().map(|thread| thread.join().expect("a lap does not panic")).collect()
            })
        }
    }
}

fn timed(candidate: &dyn Candidate, lap: &Sequence) -> Elapsed {
    let watch = Stopwatch::start();
    all_pass(candidate, lap);
    watch.stop()
}

fn all_pass(candidate: &dyn Candidate, keys: &Sequence) {
    let passed = candidate.run(keys);
    assert_eq!(passed, keys.len(), "every check passes, or the race compares different work");
}

impl Times {
    fn enter(&mut self, laps: &[Elapsed], course: &Course) {
        let checks = |lap: &Sequence| lap.len() as f64;
        let all: f64 = course.laps.iter().map(checks).sum();
        let cpu: f64 = laps.iter().map(|lap| lap.cpu).sum();
        let wall = laps.iter().map(|lap| lap.wall).fold(0.0, f64::max);
        let rate: f64 = course.laps.iter().zip(laps).map(|(lap, elapsed)| checks(lap) / elapsed.cpu * 1e3).sum();
        self.cpu.extend([cpu / all]);
        self.throughput.extend([rate]);
        self.throughput_wall.extend([all / wall * 1e3]);
        self.noisy += usize::from(laps.iter().any(Elapsed::is_noisy));
        self.rounds += 1;
    }
}
