//! Who decides a charge, and what is left of it when somebody else has refused.

use tollgate_core::{Ask, Charge, LeaseSize, Limit, Sharing, Soft};

/// Who decides a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChargeRoute {
    /// The shared store.
    Shared,
    /// A lease of at most this size.
    Leased(LeaseSize),
    /// What this node knows of the bucket.
    Async,
    /// This node's share.
    Local,
}

impl ChargeRoute {
    /// The route of a charge. What cannot be shared as it asks for is the shared store's: slots, logs and queues are no
    /// units to be taken in advance, a lot is drawn from the state of the bucket, and what is charged however it ends
    /// is to be seen by all.
    #[inline]
    pub(super) fn of(charge: &Charge) -> ChargeRoute {
        match charge.sharing {
            Sharing::Exact => ChargeRoute::Shared,
            Sharing::Local => ChargeRoute::Local,
            _ if !is_divisible(charge) => ChargeRoute::Shared,
            Sharing::Leased(size) if charge.ask.cost() > 0 && !matches!(charge.ask, Ask::Force(_)) => {
                ChargeRoute::Leased(size)
            }
            Sharing::Leased(_) => ChargeRoute::Shared,
            Sharing::Async => ChargeRoute::Async,
        }
    }
}

fn is_divisible(charge: &Charge) -> bool {
    matches!(charge.limit, Limit::Gcra(_) | Limit::FixedWindow(_))
        && matches!(charge.ask, Ask::Consume(_) | Ask::Peek(_) | Ask::Force(_))
        && charge.soft.is_none()
        && !charge.count_denied
        && !charge.owner.is_overflowing()
        && charge.limit.capacity() > 0
}

/// This node's share of a charge.
pub(super) fn local_share(charge: &Charge, nodes: u64) -> Charge {
    let soft = charge.soft.map(|soft| Soft { excess: soft.excess.div_ceil(nodes.max(1)), ..soft });
    Charge { limit: charge.limit.share(nodes), soft, ..*charge }
}

/// The charge of a request that is refused already: it only looks, unless it is recorded whoever refuses.
pub(super) fn peeking(charge: &Charge) -> Charge {
    let ask = match charge.ask {
        Ask::Force(_) | Ask::Peek(_) => charge.ask,
        ask if charge.count_denied && ask.writes() => Ask::Force(ask.cost()),
        Ask::Renew(_) => Ask::Peek(0),
        ask => Ask::Peek(ask.least()),
    };
    Charge { ask, ..*charge }
}

/// True if the charge stays recorded when the request is refused.
pub(super) fn stays_charged(charge: &Charge) -> bool {
    charge.count_denied || matches!(charge.ask, Ask::Force(_))
}
