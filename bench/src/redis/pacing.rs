//! The open loop: checks start when they are due, whether or not earlier ones are answered.

use std::time::Duration;

use tokio::task::{JoinSet, yield_now};
use tollgate_core::Clock as _;
use tollgate_load::LoadPace;
use tollgate_store::MonotonicClock;

/// When checks are due.
#[derive(Clone, Copy, Debug)]
pub struct OpenSchedule {
    start: u64,
    gap: Option<f64>,
    taken: u64,
}

impl OpenSchedule {
    /// The first is due at `start`.
    pub fn new(start: u64, pace: LoadPace) -> OpenSchedule {
        let gap = if let LoadPace::Open { per_second } = pace { Some(1e9 / per_second) } else { None };
        OpenSchedule { start, gap, taken: 0 }
    }

    /// When the next one was due: the present for a closed loop. `None`: it is not due yet.
    #[inline]
    pub fn next(&mut self, now: u64) -> Option<u64> {
        let Some(gap) = self.gap else { return Some(now) };
        let due = self.start + (self.taken as f64 * gap) as u64;
        (due <= now).then(|| {
            self.taken += 1;
            due
        })
    }
}

/// Starts checks at a fixed rate, each as a task with its due time, and waits for the last one. Polls the clock without
/// sleeping, and yields to other tasks in between.
pub async fn open_loop<F>(clock: MonotonicClock, per_second: f64, time: Duration, mut begin: impl FnMut(u64) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let start = clock.now().nanos();
    let end = start + time.as_nanos() as u64;
    let mut schedule = OpenSchedule::new(start, LoadPace::Open { per_second });
    let mut tasks = JoinSet::new();
    loop {
        let now = clock.now().nanos();
        if now >= end {
            break;
        }
        while let Some(due) = schedule.next(now) {
            tasks.spawn(begin(due));
        }
        while tasks.try_join_next().is_some() {}
        yield_now().await;
    }
    while tasks.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_check_counts_from_when_it_was_due() {
        let mut schedule = OpenSchedule::new(1_000, LoadPace::Open { per_second: 1e6 });
        assert_eq!(schedule.next(999), None);
        assert_eq!(
            [schedule.next(2_500), schedule.next(2_500), schedule.next(2_500)],
            [Some(1_000), Some(2_000), None]
        );
        assert_eq!(OpenSchedule::new(0, LoadPace::Closed).next(7), Some(7));
    }
}
