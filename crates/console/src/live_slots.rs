//! How many streams of live numbers are open at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Streams at once.
const STREAMS_MAX: usize = 100;

/// Counts the open streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveSlots(Arc<AtomicUsize>);

/// One open stream.
pub(crate) struct LiveSlot(Arc<AtomicUsize>);

impl LiveSlots {
    /// A place for one more stream, unless there are too many.
    pub(crate) fn take(&self) -> Option<LiveSlot> {
        let slot = LiveSlot(self.0.clone()); // gives back what the next line takes, also if there is no room
        (self.0.fetch_add(1, Ordering::Relaxed) < STREAMS_MAX).then_some(slot)
    }
}

impl Drop for LiveSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_streams_and_no_more() {
        let slots = LiveSlots::default();
        let taken: Vec<LiveSlot> = (0..STREAMS_MAX).map_while(|_| slots.take()).collect();
        assert_eq!(taken.len(), STREAMS_MAX);
        assert!(slots.take().is_none() && slots.take().is_none());
        drop(taken);
        assert!(slots.take().is_some());
    }
}
