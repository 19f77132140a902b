//! The clock of a run: nanoseconds as the kernel counts them, read once or twice per event.
//!
//! A load generator measures real time or nothing, so this is one of the homes of a real clock. It reads the vDSO
//! directly, as the store does: `Instant` puts checks around it that cost more than the reading.

use rustix::time::{ClockId, clock_gettime};

/// One second, in the unit of everything in this crate.
pub const SECOND: u64 = 1_000_000_000;
/// A thousandth of it.
pub const MILLISECOND: u64 = 1_000_000;

/// Nanoseconds on the monotonic clock.
#[inline]
pub fn now() -> u64 {
    read(ClockId::Monotonic)
}

/// Nanoseconds that this thread has run.
pub fn cpu() -> u64 {
    read(ClockId::ThreadCPUTime)
}

#[inline]
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64 // both are positive
}
