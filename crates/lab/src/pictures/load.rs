//! The load, and the admissions of one limit. Times are milliseconds since [`START`].

use tollgate_core::{Ask, Limit, Outcome, Span, Time};
use tollgate_testkit::Bucket;

/// A full minute, so that windows of a second and of a minute turn at round numbers.
pub(super) const START: Time = Time::from_secs(1_699_999_980);

/// When the shared load is over.
pub(super) const END_MS: u64 = 6_000;

/// The limit that every picture with the shared load has: so many requests in each window.
pub(super) const REQUESTS: u64 = 10;
/// The window of that limit.
pub(super) const WINDOW_MS: u64 = 1_000;

/// The load that every algorithm meets: a burst, twice the limit for two seconds, a rest, and a burst around the turn of
/// a window.
pub(super) fn shared() -> Vec<u64> {
    let burst = (0..150).step_by(5);
    let steady = (1_000..3_000).step_by(50);
    let turn = (4_800..5_200).step_by(10);
    burst.chain(steady).chain(turn).collect()
}

/// This many milliseconds after the start.
pub(super) fn moment(ms: u64) -> Time {
    START.after(Span::from_millis(ms))
}

/// A load on one limit.
pub(super) struct LoadRun {
    /// When requests were made.
    pub offered: Vec<u64>,
    /// When requests were admitted.
    pub admitted: Vec<u64>,
    /// What `remaining` was, at every hundredth of a second.
    pub remaining: Vec<(u64, u64)>,
}

/// Requests one unit at each of the times.
pub(super) fn run(limit: &Limit, offered: Vec<u64>) -> LoadRun {
    let mut bucket = Bucket::unused(limit.kind());
    let (mut admitted, mut remaining) = (Vec::new(), Vec::new());
    let mut due = offered.iter().copied().peekable();
    for tick in (0..=END_MS).step_by(10) {
        while let Some(at) = due.next_if(|at| *at <= tick) {
            if take(&mut bucket, limit, at).allowed {
                admitted.push(at);
            }
        }
        remaining.push((tick, bucket.peek(limit, moment(tick), 1).remaining));
    }
    LoadRun { offered, admitted, remaining }
}

/// One request of cost one.
pub(super) fn take(bucket: &mut Bucket, limit: &Limit, at: u64) -> Outcome {
    bucket.take(limit, moment(at), &Ask::Consume(1), false)
}
