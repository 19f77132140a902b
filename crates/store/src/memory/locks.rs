//! The locks of a request with several charges, and where each of its buckets is.

use smallvec::SmallVec;
use tollgate_core::Charge;

use super::Memory;
use super::shard::{Look, Shard, StoreTime};
use crate::sync::MutexGuard;

/// Requests with at most this many charges are decided without allocating.
const SEVERAL: usize = 8;

/// The locks of all shards of a request, taken in index order, so that requests cannot deadlock.
pub(super) struct Locks<'a>(SmallVec<[Held<'a>; SEVERAL]>);

/// One lock, and how many buckets this request will add behind it.
struct Held<'a> {
    shard: MutexGuard<'a, Shard>,
    pending: usize,
}

/// The bucket of each charge, in their order.
pub(super) type Seats = SmallVec<[Seat; SEVERAL]>;

/// Where the bucket of a charge is, and what was read there.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    /// The index of its lock.
    lock: usize,
    pub(super) look: Look,
}

impl<'a> Locks<'a> {
    /// Locks the shards of all charges, each once, and fills `seats`, which are larger than what a move should copy.
    #[inline]
    pub(super) fn new(memory: &'a Memory, charges: &[Charge], seats: &mut Seats) -> Locks<'a> {
        let mut locks = Locks(SmallVec::new());
        // Shard and charge in one number, so that sorting compares numbers: there are at most 2^16 shards.
        let mut order: SmallVec<[u64; SEVERAL]> = SmallVec::new();
        for (number, charge) in (0..).zip(charges) {
            order.push((memory.index(charge.bucket) as u64) << u32::BITS | number);
            seats.push(Seat { lock: 0, look: Look::Seen { admits: false, place: None } });
        }
        order.sort_unstable();
        let mut last = None;
        for entry in &order {
            let index = (entry >> u32::BITS) as usize;
            if last != Some(index)
                && let Some(padded) = memory.shards.get(index)
            {
                locks.0.push(Held { shard: padded.0.lock(), pending: 0 });
                last = Some(index);
            }
            if let Some(seat) = seats.get_mut(*entry as u32 as usize) {
                seat.lock = locks.0.len() - 1;
            }
        }
        locks
    }

    /// Finds the bucket of a charge. A separate, short step, so that the cache misses of several charges overlap.
    #[inline]
    pub(super) fn find(&mut self, charge: &Charge, seat: &mut Seat) {
        seat.look = Look::Seen { admits: false, place: self.shard(*seat).place(charge) };
    }

    /// Reads the bucket of a charge that was found.
    #[inline]
    pub(super) fn look(&mut self, charge: &Charge, seat: &mut Seat, time: StoreTime) {
        let Look::Seen { place, .. } = seat.look else { return };
        let held = self.held(*seat);
        seat.look = held.shard.look(charge, place, time, held.pending);
        held.pending += usize::from(matches!(seat.look, Look::Seen { place: None, .. }));
    }

    #[inline]
    pub(super) fn shard(&mut self, seat: Seat) -> &mut Shard {
        &mut self.held(seat).shard
    }

    #[inline]
    fn held(&mut self, seat: Seat) -> &mut Held<'a> {
        self.0.get_mut(seat.lock).expect("the shard of every charge is locked")
    }
}
