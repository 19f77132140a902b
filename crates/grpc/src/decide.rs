//! Decides one check, synchronously if the store does not have to be awaited.

use tollgate_proto::v1::CheckRequest;
use tollgate_service::Decision;

use super::convert;
use tollgate_service::check_request::BodyError;
use tollgate_service::{PendingCheck, Service};

/// Result of [`decide`].
pub(super) enum CheckOutcome<T> {
    /// Decided; holds the converted decision.
    Ready(T),
    /// The store must be awaited.
    Pending(OwnedPendingCheck),
}

/// A check that waits for the store, with its request. Charges nothing if dropped.
pub(super) struct OwnedPendingCheck {
    request: CheckRequest,
    pending: PendingCheck,
}

/// Decides a check and converts the decision in place: a decision is larger than the message made of it.
pub(super) fn decide<T>(
    service: &Service,
    request: CheckRequest,
    convert_decision: impl FnOnce(&Decision) -> T,
) -> Result<CheckOutcome<T>, BodyError> {
    let pending = {
        let check = convert::check_request(&request)?;
        let lists = check.lists();
        match service.try_decide(&[check.request(&lists)]) {
            Ok(decision) => return Ok(CheckOutcome::Ready(convert_decision(&decision))),
            Err(pending) => pending,
        }
    };
    Ok(CheckOutcome::Pending(OwnedPendingCheck { request, pending }))
}

impl OwnedPendingCheck {
    /// Awaits the store, then converts the decision.
    pub(super) async fn decide<T>(self, service: &Service, convert_decision: impl FnOnce(&Decision) -> T) -> T {
        let OwnedPendingCheck { request, pending } = self;
        let Ok(check) = convert::check_request(&request) else { unreachable!("it was read before") };
        let lists = check.lists();
        let decision = service.decide_pending(&[check.request(&lists)], pending).await;
        convert_decision(&decision)
    }
}
