//! One check, decided at once where nobody has to be waited for.

use tollgate_engine::{Decision, Undecided};
use tollgate_proto::v1::CheckRequest;

use super::convert;
use crate::api::Shared;
use crate::api::check::lap;
use crate::api::read::Fault;

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
    undecided: Undecided,
}

/// Decides, and tells what it decided. Told on the spot: a decision is larger than what is made of it.
pub(super) fn decide<T>(
    shared: &Shared,
    request: CheckRequest,
    tell: impl FnOnce(&Decision) -> T,
) -> Result<Decided<T>, Fault> {
    let undecided = {
        let asked = convert::asked(&request)?;
        let custom = asked.custom();
        let start = shared.clock.now();
        match shared.engine.try_decide(&[asked.request(&custom)]) {
            Ok(decision) => {
                lap(shared, start);
                return Ok(Decided::Now(tell(&decision)));
            }
            Err(undecided) => undecided,
        }
    };
    Ok(Decided::Later(Later { request, undecided }))
}

impl Later {
    /// Waits for the store.
    pub(super) async fn decide<T>(self, shared: &Shared, tell: impl FnOnce(&Decision) -> T) -> T {
        let Later { request, undecided } = self;
        let Ok(asked) = convert::asked(&request) else { unreachable!("it was read before") };
        let custom = asked.custom();
        let start = shared.clock.now();
        let decision = shared.engine.decide_later(&[asked.request(&custom)], undecided).await;
        lap(shared, start);
        tell(&decision)
    }
}
