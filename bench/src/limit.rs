//! The limit of every limiter in a race: so generous that everything passes, and so slow that a bucket stays in use.

use std::time::Duration;

/// Time in which one unit comes back.
pub const PERIOD: Duration = Duration::from_secs(60);
/// Units at once: 95 years' worth, more than any run needs.
pub const BURST: u32 = 50_000_000;
