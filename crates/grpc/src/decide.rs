//! One check, decided at once where nobody has to be waited for.

use tollgate_engine::Decision;
use tollgate_proto::v1::CheckRequest;

use super::convert;
use tollgate_service::check_request::BodyError;
use tollgate_service::{PendingCheck, Service};

/// What became of a check.
pub(super) enum Decided<T> {
    /// It was decided, and this was made of it.
    Now(T),
    /// The store has to be waited for.
    Later(Later),
}

/// A check whose store has to be waited for. Dropped, it charges nothing.
pub(super) struct Later {
    request: CheckRequest,
    pending: PendingCheck,
}

/// Decides, and tells what it decided. HealthUpdates on the spot: a decision is larger than what is made of it.
pub(super) fn decide<T>(
    service: &Service,
    request: CheckRequest,
    tell: impl FnOnce(&Decision) -> T,
) -> Result<Decided<T>, BodyError> {
    let pending = {
        let check = convert::check_request(&request)?;
        let custom = check.custom();
        match service.try_decide(&[check.request(&custom)]) {
            Ok(decision) => return Ok(Decided::Now(tell(&decision))),
            Err(pending) => pending,
        }
    };
    Ok(Decided::Later(Later { request, pending }))
}

impl Later {
    /// Waits for the store.
    pub(super) async fn decide<T>(self, service: &Service, tell: impl FnOnce(&Decision) -> T) -> T {
        let Later { request, pending } = self;
        let Ok(check) = convert::check_request(&request) else { unreachable!("it was read before") };
        let custom = check.custom();
        let decision = service.decide_pending(&[check.request(&custom)], pending).await;
        tell(&decision)
    }
}
