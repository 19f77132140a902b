//! Spans of decisions, between the decision and the exporter.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tollgate_core::Time;

/// Most spans that wait: about a megabyte.
const SPANS_MAX: usize = 4096;

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionSpan {
    /// The trace that it belongs to.
    pub trace: u128,
    /// Its own id; never zero.
    pub span: u64,
    /// The span of the caller; zero for the first of a trace.
    pub parent: u64,
    /// When the decision began, by the wall clock.
    pub start: Time,
    /// When it was made.
    pub end: Time,
    /// The namespace of the request.
    pub namespace: String,
    /// The rule that decided; empty if none did.
    pub rule: String,
    /// What decided: `store`, `lease`, `fallback`, …
    pub mode: &'static str,
    /// `allow`, `deny` or `invalid`.
    pub outcome: &'static str,
    /// The generation of the rules.
    pub generation: u64,
}

/// Spans that wait for the exporter.
#[derive(Debug, Default)]
pub struct SpanQueue {
    waiting: Mutex<Vec<DecisionSpan>>,
    dropped: AtomicU64,
}

impl SpanQueue {
    /// Adds a span; one that does not fit is dropped and counted.
    pub fn push(&self, span: DecisionSpan) {
        let mut waiting = self.waiting.lock();
        match waiting.len() < SPANS_MAX {
            true => waiting.push(span),
            false => _ = self.dropped.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Takes all spans.
    pub fn drain(&self) -> Vec<DecisionSpan> {
        std::mem::take(&mut *self.waiting.lock())
    }

    /// Spans that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let queue = SpanQueue::default();
        let span = DecisionSpan {
            trace: 1,
            span: 2,
            parent: 0,
            start: Time::ZERO,
            end: Time::ZERO,
            namespace: String::new(),
            rule: String::new(),
            mode: "store",
            outcome: "allow",
            generation: 1,
        };
        (0..SPANS_MAX + 2).for_each(|_| queue.push(span.clone()));
        assert_eq!((queue.drain().len(), queue.dropped()), (SPANS_MAX, 2));
        assert!(queue.drain().is_empty());
    }
}
