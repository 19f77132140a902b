//! A place in the queue of a leaky bucket: a request waits for its turn, or gives its place back.

use std::time::Duration;

use tokio::time::sleep;
use tollgate_service::HeldRequest;

use crate::cost::CostSettlement;

/// The place of a request that waits. Dropped before its turn, which is how a caller that hangs up ends it, the place is
/// given back.
pub(crate) struct QueuePlace<'a> {
    held: &'a mut Option<HeldRequest>,
    settlement: &'a mut Option<CostSettlement>,
    has_come: bool,
}

impl<'a> QueuePlace<'a> {
    /// The place of a request with what it holds, one way or the other.
    pub(crate) fn new(held: &'a mut Option<HeldRequest>, settlement: &'a mut Option<CostSettlement>) -> QueuePlace<'a> {
        QueuePlace { held, settlement, has_come: false }
    }

    /// Waits for its turn. The rule bounds the delay.
    pub(crate) async fn wait(mut self, delay: Duration) {
        sleep(delay).await;
        self.has_come = true;
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        if self.has_come {
            return;
        }
        if let Some(settlement) = self.settlement.take() {
            settlement.leave();
        }
        if let Some(held) = self.held.take() {
            held.leave(Vec::new());
        }
    }
}
