//! Why numbers are rejected as a limit. A file of its own, because every algorithm returns it.

use std::fmt;

/// Why the numbers do not form a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitError {
    /// A window, period or time to live of zero.
    ZeroWindow,
    /// More than one unit per nanosecond.
    TooFast,
    /// A full bucket or window would last longer than 2^63 − 1 ns.
    TooLong,
    /// A sliding window log of more than [`SlidingLog::LIMIT_MAX`](crate::SlidingLog::LIMIT_MAX) units.
    LogTooLarge,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LimitError::ZeroWindow => "the window must be longer than zero",
            LimitError::TooFast => "more than one unit per nanosecond; use a longer window or fewer requests",
            LimitError::TooLong => "a full bucket would last longer than 292 years; lower the burst or the window",
            LimitError::LogTooLarge => "a sliding window log holds at most 10000 units; use sliding_window_counter",
        })
    }
}

impl std::error::Error for LimitError {}
