//! The deadline of the caller: the store must not charge anything after the caller has stopped waiting.
//!
//! The deadline is task-local instead of a parameter of every function: only the store call needs it, several layers
//! below the transport that knows it.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::Span;

/// Time reserved for the response to reach the caller; at most half of the time left.
const RETURN: Duration = Duration::from_millis(5);

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Runs `future` for a caller that stops waiting at `deadline`. Every store call in it ends 5 ms earlier, and a call
/// that reaches the store later charges nothing: the failure policy of each rule decides then.
pub async fn with_deadline<F: Future>(deadline: Option<Instant>, future: F) -> F::Output {
    match deadline {
        Some(deadline) => DEADLINE.scope(deadline, future).await,
        None => future.await,
    }
}

/// The time that a store call may take: `most`, or less if the caller's deadline is earlier.
pub(crate) fn cap(most: Span) -> Span {
    let left = DEADLINE.try_with(|deadline| deadline.saturating_duration_since(Instant::now()));
    left.map_or(most, |left| most.min(Span::from(left - RETURN.min(left / 2))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_call_ends_before_the_deadline_of_the_caller() {
        let most = Span::from_millis(25);
        let left = |millis: u64| async move {
            with_deadline(Some(Instant::now() + Duration::from_millis(millis)), async { cap(most) }).await
        };
        assert_eq!(cap(most), most, "no deadline");
        assert_eq!(with_deadline(None, async { cap(most) }).await, most);
        for (caller, store) in [(1000, 25), (30, 25), (20, 15), (10, 5), (4, 2), (0, 0)] {
            assert_eq!(left(caller).await, Span::from_millis(store), "{caller} ms");
        }
    }
}
