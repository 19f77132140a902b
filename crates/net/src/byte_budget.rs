//! A memory budget for bytes in transit: bodies not yet complete, responses not yet sent. One budget for all
//! connections, because ten thousand clients that each send almost all of a body are one attack.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that need no reservation: ten times a typical check.
pub const FREE_BYTES: u64 = 4 << 10;
/// Bytes that the calls of one multiplexed connection may use together without a reservation: a long-lived stream and
/// one message.
const OWN_BYTES: u64 = 20 << 10;
/// Granularity of reservations.
const UNIT_BYTES: u64 = 1 << 10;

/// The budget. Clones share it.
#[derive(Clone, Debug)]
pub struct ByteBudget {
    free: Arc<Semaphore>,
    /// Units reserved for authenticated callers.
    reserved: usize,
}

/// Reserved bytes; returned when dropped.
#[derive(Debug, Default)]
pub struct BudgetPermit(Option<OwnedSemaphorePermit>);

impl ByteBudget {
    /// A budget of `bytes`.
    pub fn new(bytes: usize) -> ByteBudget {
        let units = (bytes as u64 / UNIT_BYTES) as usize;
        ByteBudget { free: Arc::new(Semaphore::new(units)), reserved: units / 2 }
    }

    /// Reserves `bytes`; `None` if the budget is spent.
    pub fn reserve(&self, bytes: u64) -> Option<BudgetPermit> {
        if bytes <= FREE_BYTES {
            return Some(BudgetPermit::default());
        }
        self.take(units(bytes)?).map(|permit| BudgetPermit(Some(permit)))
    }

    /// Reserves `bytes` for a caller that has not authenticated: those get at most half of the budget.
    pub fn reserve_unauthenticated(&self, bytes: u64) -> Option<BudgetPermit> {
        let permit = self.reserve(bytes)?;
        (permit.0.is_none() || self.free.available_permits() >= self.reserved).then_some(permit)
    }

    /// The budget of a multiplexed connection: its calls share the bytes that need no reservation.
    pub fn for_connection(&self) -> ConnectionBudget {
        ConnectionBudget { own: ByteBudget::new(OWN_BYTES as usize), all: self.clone() }
    }

    fn take(&self, units: u32) -> Option<OwnedSemaphorePermit> {
        self.free.clone().try_acquire_many_owned(units).ok()
    }
}

fn units(bytes: u64) -> Option<u32> {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).ok()
}

/// The budget of one multiplexed connection: a little of its own, then the common one. Clones share it.
#[derive(Clone, Debug)]
pub struct ConnectionBudget {
    own: ByteBudget,
    all: ByteBudget,
}

/// The reservation of one stream, which grows with the bytes received; returned when dropped.
#[derive(Debug, Default)]
pub struct StreamBudget {
    held: Option<OwnedSemaphorePermit>,
    /// Units held.
    units: u32,
}

impl StreamBudget {
    /// Grows to `bytes` in total; `None` if the budget is spent.
    pub fn grow(&mut self, connection: &ConnectionBudget, bytes: u64) -> Option<()> {
        let wanted = units(bytes)?;
        let Some(more) = wanted.checked_sub(self.units).filter(|more| *more > 0) else { return Some(()) };
        let is_own = self.held.as_ref().is_none_or(|held| Arc::ptr_eq(held.semaphore(), &connection.own.free));
        match if is_own { connection.own.take(more) } else { connection.all.take(more) } {
            Some(permit) => match &mut self.held {
                Some(held) => held.merge(permit),
                None => self.held = Some(permit),
            },
            None if is_own => self.held = Some(connection.all.take(wanted)?),
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
    fn large_reservations_use_the_budget_until_dropped() {
        let budget = ByteBudget::new(100 << 10);
        let first = budget.reserve(60 << 10).unwrap();
        assert!(budget.reserve(60 << 10).is_none());
        assert!(budget.reserve(4 << 10).is_some(), "small reservations are free");
        assert!(budget.reserve(u64::MAX).is_none());
        drop(first);
        assert!(budget.reserve(60 << 10).is_some());
    }

    #[test]
    fn unauthenticated_callers_get_half_of_the_budget() {
        let budget = ByteBudget::new(100 << 10);
        assert!(budget.reserve_unauthenticated(60 << 10).is_none());
        let _first = budget.reserve_unauthenticated(40 << 10).unwrap();
        assert!(budget.reserve_unauthenticated(20 << 10).is_none());
        assert!(budget.reserve_unauthenticated(4 << 10).is_some(), "small reservations are free");
        assert!(budget.reserve(60 << 10).is_some(), "authenticated callers get the rest");
    }

    #[test]
    fn streams_of_a_connection_share_its_own_bytes() {
        let (budget, grown) = (ByteBudget::new(100 << 10), |share: &ConnectionBudget, bytes| {
            let mut stream = StreamBudget::default();
            stream.grow(share, bytes).map(|()| stream)
        });
        let share = budget.for_connection();
        let hog = grown(&budget.for_connection(), 100 << 10).unwrap();
        let own: Vec<StreamBudget> = std::iter::from_fn(|| grown(&share, 1)).collect();
        assert_eq!(own.len() as u64, OWN_BYTES / UNIT_BYTES, "the common budget is spent");
        assert!(grown(&budget.for_connection(), OWN_BYTES).is_some(), "other connections have their own");
        drop((hog, own));

        let mut stream = grown(&share, 5 << 10).unwrap();
        stream.grow(&share, OWN_BYTES + 1).unwrap();
        assert!(grown(&share, OWN_BYTES).is_some(), "a stream that outgrew the own bytes has returned them");
        stream.grow(&share, 100 << 10).unwrap();
        assert!(stream.grow(&share, (100 << 10) + 1).is_none());
        stream.grow(&share, 1).unwrap();
        assert!(budget.reserve(90 << 10).is_none(), "it does not shrink");
        drop(stream);
        assert!(budget.reserve(100 << 10).is_some());
    }
}
