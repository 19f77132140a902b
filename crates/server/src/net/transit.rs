//! Memory for bytes on their way: bodies that are not all there yet, answers that are not yet taken. One budget for all
//! connections, because ten thousand callers who each send almost all of a body are one attack, not ten thousand.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What anybody may have without asking: an ordinary check is a tenth of it.
pub(crate) const FREE_BYTES: u64 = 4 << 10;
/// What a connection with many calls at the same time may have without asking, over all of them: one that lasts, and one
/// message on its way.
pub(crate) const OWN_BYTES: u64 = 20 << 10;
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
        self.take(units(bytes)?).map(|permit| Room(Some(permit)))
    }

    /// The same for somebody who may turn out not to be let in: half of the budget is not for them.
    pub fn room_for_stranger(&self, bytes: u64) -> Option<Room> {
        let room = self.room(bytes)?;
        (room.0.is_none() || self.free.available_permits() >= self.kept).then_some(room)
    }

    /// The share of a connection with many calls at the same time: what is free, is free once for all of them.
    pub(crate) fn share(&self) -> Share {
        Share { own: Transit::new(OWN_BYTES as usize), all: self.clone() }
    }

    fn take(&self, units: u32) -> Option<OwnedSemaphorePermit> {
        self.free.clone().try_acquire_many_owned(units).ok()
    }
}

fn units(bytes: u64) -> Option<u32> {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).ok()
}

/// What the calls of one connection take their room from: a little of its own, then the budget. Clones are the same share.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    own: Transit,
    all: Transit,
}

/// The room of one call, which grows with what has come in; comes back by being dropped.
#[derive(Debug, Default)]
pub(crate) struct Place {
    held: Option<OwnedSemaphorePermit>,
    /// How much that is.
    units: u32,
}

impl Place {
    /// Makes it large enough for `bytes` in all; `None` if there is no room for that.
    pub(crate) fn grow(&mut self, share: &Share, bytes: u64) -> Option<()> {
        let wanted = units(bytes)?;
        let Some(more) = wanted.checked_sub(self.units).filter(|more| *more > 0) else { return Some(()) };
        let is_own = self.held.as_ref().is_none_or(|held| Arc::ptr_eq(held.semaphore(), &share.own.free));
        match if is_own { share.own.take(more) } else { share.all.take(more) } {
            Some(permit) => match &mut self.held {
                Some(held) => held.merge(permit),
                None => self.held = Some(permit),
            },
            None if is_own => self.held = Some(share.all.take(wanted)?),
            None => return None,
        }
        self.units = wanted;
        Some(())
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

    #[test]
    fn what_is_free_is_free_once_on_a_connection() {
        let (transit, grown) = (Transit::new(100 << 10), |share: &Share, bytes| {
            let mut place = Place::default();
            place.grow(share, bytes).map(|()| place)
        });
        let share = transit.share();
        let hog = grown(&transit.share(), 100 << 10).unwrap();
        let own: Vec<Place> = std::iter::from_fn(|| grown(&share, 1)).collect();
        assert_eq!(own.len() as u64, OWN_BYTES / UNIT_BYTES, "everything else is taken");
        assert!(grown(&transit.share(), OWN_BYTES).is_some(), "others have their own");
        drop((hog, own));

        let mut place = grown(&share, 5 << 10).unwrap();
        place.grow(&share, OWN_BYTES + 1).unwrap();
        assert!(grown(&share, OWN_BYTES).is_some(), "its own has come back: it is too large for that");
        place.grow(&share, 100 << 10).unwrap();
        assert!(place.grow(&share, (100 << 10) + 1).is_none());
        place.grow(&share, 1).unwrap();
        assert!(transit.room(90 << 10).is_none(), "it does not shrink");
        drop(place);
        assert!(transit.room(100 << 10).is_some());
    }
}
