//! How long the caller of a decision waits: what the store is asked for must not be charged after that.
//!
//! The deadline travels with the task instead of through every signature: it matters only where a store is waited for,
//! several layers below the transport that knows it.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::Span;

/// What is left of the caller's time for the answer to get back; of very little time, half.
const RETURN: Duration = Duration::from_millis(5);

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Runs `future` for a caller that stops waiting at `deadline`. Every store call in it ends 5 ms earlier, and what
/// reaches the store later than that charges nothing: the decision is then made by the failure policy of each rule.
pub async fn with_deadline<F: Future>(deadline: Option<Instant>, future: F) -> F::Output {
    match deadline {
        Some(deadline) => DEADLINE.scope(deadline, future).await,
        None => future.await,
    }
}

/// The time that a store call may take: `most`, or less if the caller leaves earlier.
pub(crate) fn cap(most: Span) -> Span {
    let left = DEADLINE.try_with(|deadline| deadline.saturating_duration_since(Instant::now()));
    left.map_or(most, |left| most.min(Span::from(left - RETURN.min(left / 2))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_has_what_the_caller_leaves_it() {
        let most = Span::from_millis(25);
        let left = |millis: u64| async move {
            with_deadline(Some(Instant::now() + Duration::from_millis(millis)), async { cap(most) }).await
        };
        assert_eq!(cap(most), most, "a caller that says nothing waits");
        assert_eq!(with_deadline(None, async { cap(most) }).await, most);
        for (caller, store) in [(1000, 25), (30, 25), (20, 15), (10, 5), (4, 2), (0, 0)] {
            assert_eq!(left(caller).await, Span::from_millis(store), "{caller} ms");
        }
    }
}
