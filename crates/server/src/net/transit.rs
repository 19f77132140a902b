//! Memory for bytes on their way: bodies that are not all there yet, answers that are not yet taken. One budget for all
//! connections, because ten thousand callers who each send almost all of a body are one attack, not ten thousand.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What anybody may have without asking: an ordinary check is a tenth of it.
const FREE_BYTES: u64 = 4 << 10;
/// What is counted at a time.
const UNIT_BYTES: u64 = 1 << 10;

/// The budget. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Transit {
    free: Arc<Semaphore>,
    /// What strangers leave to everybody else.
    kept: usize,
}

/// Room that was given; comes back by being dropped.
#[derive(Debug, Default)]
pub struct Room(Option<OwnedSemaphorePermit>);

impl Transit {
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Transit {
        let units = (bytes as u64 / UNIT_BYTES) as usize;
        Transit { free: Arc::new(Semaphore::new(units)), kept: units / 2 }
    }

    /// Room for `bytes`, at once; `None` if there is none.
    pub fn room(&self, bytes: u64) -> Option<Room> {
        if bytes <= FREE_BYTES {
            return Some(Room::default());
        }
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).ok()?;
        self.free.clone().try_acquire_many_owned(units).ok().map(|permit| Room(Some(permit)))
    }

    /// The same for somebody who may turn out not to be let in: half of the budget is not for them.
    pub fn room_for_stranger(&self, bytes: u64) -> Option<Room> {
        let room = self.room(bytes)?;
        (room.0.is_none() || self.free.available_permits() >= self.kept).then_some(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_needs_room_and_gives_it_back() {
        let transit = Transit::new(100 << 10);
        let first = transit.room(60 << 10).unwrap();
        assert!(transit.room(60 << 10).is_none());
        assert!(transit.room(4 << 10).is_some(), "what is small needs none");
        assert!(transit.room(u64::MAX).is_none());
        drop(first);
        assert!(transit.room(60 << 10).is_some());
    }

    #[test]
    fn strangers_leave_half_of_it() {
        let transit = Transit::new(100 << 10);
        assert!(transit.room_for_stranger(60 << 10).is_none());
        let _first = transit.room_for_stranger(40 << 10).unwrap();
        assert!(transit.room_for_stranger(20 << 10).is_none());
        assert!(transit.room_for_stranger(4 << 10).is_some(), "what is small needs none");
        assert!(transit.room(60 << 10).is_some(), "and nobody else is told to go");
    }
}
