//! Time as the measured thread saw it: its own CPU time, and the wall without the wait for a core.
//!
//! On a shared machine other processes take the core away, which is not the limiter's cost. CPU time leaves that out, but
//! also leaves out waiting for a lock, which is the limiter's cost. The scheduler knows how long a thread was runnable
//! without a core: several threads are compared by wall time less that wait. A round with a long wait is marked as noisy.

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Started once, read once.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    cpu: u64,
    wall: u64,
    queued: u64,
}

/// What passed between start and stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elapsed {
    /// Nanoseconds that this thread ran.
    pub cpu: f64,
    /// Nanoseconds on the wall.
    pub wall: f64,
    /// Nanoseconds in which it was ready to run and had no core.
    pub queued: f64,
}

impl Stopwatch {
    /// Starts for the current thread.
    pub fn start() -> Stopwatch {
        let queued = queued();
        Stopwatch { queued, wall: read(ClockId::Monotonic), cpu: read(ClockId::ThreadCPUTime) }
    }

    /// Reads it, on the thread that started it.
    pub fn stop(self) -> Elapsed {
        let (cpu, wall) = (read(ClockId::ThreadCPUTime), read(ClockId::Monotonic));
        let since = |now: u64, then: u64| now.saturating_sub(then) as f64;
        Elapsed { cpu: since(cpu, self.cpu), wall: since(wall, self.wall), queued: since(queued(), self.queued) }
    }
}

impl Elapsed {
    /// True if the thread waited for the core more than a tenth of the time.
    pub fn is_noisy(&self) -> bool {
        self.queued > self.wall * 0.1
    }

    /// The wall without the wait for a core.
    pub fn own(&self) -> f64 {
        (self.wall - self.queued).max(self.cpu)
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// How long this thread was ready and had no core, since it began: the second number the scheduler keeps of it.
fn queued() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Keeps the current thread on one core, where the system allows it.
pub fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    let _ = sched_setaffinity(None, &set); // unpinned is slower, not wrong
}
