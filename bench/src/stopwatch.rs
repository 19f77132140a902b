//! Time as the measured thread saw it: its own CPU time, with the wall beside it.
//!
//! On a shared machine other processes take the core away; CPU time does not count that, the wall does. Where the two
//! differ much the round was disturbed, and is marked.

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Started once, read once.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    cpu: u64,
    wall: u64,
}

/// What passed between start and stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elapsed {
    /// Nanoseconds that this thread ran.
    pub cpu: f64,
    /// Nanoseconds on the wall.
    pub wall: f64,
}

impl Stopwatch {
    /// Starts for the current thread.
    pub fn start() -> Stopwatch {
        Stopwatch { wall: read(ClockId::Monotonic), cpu: read(ClockId::ThreadCPUTime) }
    }

    /// Reads it, on the thread that started it.
    pub fn stop(self) -> Elapsed {
        let (cpu, wall) = (read(ClockId::ThreadCPUTime), read(ClockId::Monotonic));
        Elapsed { cpu: cpu.saturating_sub(self.cpu) as f64, wall: wall.saturating_sub(self.wall) as f64 }
    }
}

impl Elapsed {
    /// True if the thread waited for the core more than a tenth of the time.
    pub fn is_noisy(&self) -> bool {
        self.cpu < self.wall * 0.9
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Keeps the current thread on one core, where the system allows it.
pub fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    let _ = sched_setaffinity(None, &set); // unpinned is slower, not wrong
}
