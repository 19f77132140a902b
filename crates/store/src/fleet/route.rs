//! Which component decides a charge, and what the charge becomes when another charge has refused.

use tollgate_core::{Ask, Charge, LeaseSize, Limit, Sharing, Soft};

/// The component that decides a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChargeRoute {
    /// The shared store.
    Shared,
    /// A lease of at most this size.
    Leased(LeaseSize),
    /// This node's copy of the bucket.
    Async,
    /// This node's static share of the limit.
    Local,
}

impl ChargeRoute {
    /// The route of a charge. Charges that cannot be leased or decided by a copy go to the shared store: slots, logs
    /// and queues have no units to take in advance, quotas are exact, soft limits draw by the state of the bucket, and charges that count
    /// denied requests must be visible to all nodes.
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

/// The same charge on this node's static share of the limit.
pub(super) fn local_share(charge: &Charge, nodes: u64) -> Charge {
    let soft = charge.soft.map(|soft| Soft { excess: soft.excess.div_ceil(nodes.max(1)), ..soft });
    Charge { limit: charge.limit.share(nodes), soft, ..*charge }
}

/// The charge of a request that is refused already: read-only, unless it is charged even if the request is denied.
pub(super) fn peeking(charge: &Charge) -> Charge {
    let ask = match charge.ask {
        Ask::Force(_) | Ask::Peek(_) => charge.ask,
        ask if charge.count_denied && ask.writes() => Ask::Force(ask.cost()),
        Ask::Renew(_) => Ask::Peek(0),
        ask => Ask::Peek(ask.least()),
    };
    Charge { ask, ..*charge }
}

/// True if the charge stays recorded when the request is denied.
pub(super) fn stays_charged(charge: &Charge) -> bool {
    charge.count_denied || matches!(charge.ask, Ask::Force(_))
}
