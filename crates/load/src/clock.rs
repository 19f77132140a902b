//! The clock of a run: monotonic nanoseconds, read once or twice per event.
//!
//! A load generator must measure real time, so this module is one of the few that read a real clock. It reads the vDSO
//! directly, as the store does: the checks in `Instant` cost more than the read itself.

use rustix::time::{ClockId, clock_gettime};

/// One second in nanoseconds, the time unit of this crate.
pub const SECOND: u64 = 1_000_000_000;
/// One millisecond in nanoseconds.
pub const MILLISECOND: u64 = 1_000_000;

/// Nanoseconds on the monotonic clock.
#[inline]
pub fn now() -> u64 {
    read(ClockId::Monotonic)
}

/// CPU time of this thread, in nanoseconds.
pub fn cpu() -> u64 {
    read(ClockId::ThreadCPUTime)
}

#[inline]
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64 // both are positive
}
