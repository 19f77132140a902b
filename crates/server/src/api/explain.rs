//! `/v1/explain`: what every rule makes of a request. Nothing is charged.

use serde_json::Value;
use tollgate_rules::ruleset::RequestError;
use tollgate_store::Store;

use super::read::{self, Asked};
use super::refuse::{self, refuse, refuse_body, say};
use super::{Plan, Shared};
use crate::Reply;
use crate::admin::Mask;
use crate::answer::{Problem, problem};
use crate::explain::Case;

/// Rules that do not apply and are told about all the same; the others are counted.
const STRANGERS_MAX: usize = 100;
/// How often an explanation is begun anew because the rules changed under it.
const TRIES: usize = 3;

/// Why there is no explanation.
pub(crate) enum Unexplained {
    /// The request cannot be read.
    Unreadable(RequestError),
    /// Another one is being made.
    Busy,
}

/// Explains a request. Callers of the data API learn nothing of keys that rules name: those of other clients.
pub(super) async fn explain(shared: &Shared, plan: Plan, body: &[u8], reply: &mut Reply) {
    let asked = match read::asked(body) {
        Ok(asked) => asked,
        Err(fault) => return refuse_body(&fault, reply),
    };
    if !plan.may_ask(shared, &asked) {
        return refuse(&refuse::OTHER_NAMESPACE, reply);
    }
    match explained(shared, &asked).await {
        Ok(mut explanation) => {
            Mask::Hidden.conditions(&mut explanation);
            say(200, &explanation.to_string(), reply);
        }
        Err(Unexplained::Busy) => refuse(&refuse::BUSY_EXPLAINING, reply),
        Err(Unexplained::Unreadable(error)) => problem(&Problem::from(&error), reply),
    }
}

/// The explanation of a request, as JSON.
pub(crate) async fn explained(shared: &Shared, asked: &Asked<'_>) -> Result<Value, Unexplained> {
    let custom = asked.custom();
    let request = asked.request(&custom).peek();
    // One at a time: with many rules an explanation is work for a thousand checks.
    let Ok(_turn) = shared.explains.try_acquire() else { return Err(Unexplained::Busy) };
    let mut json = Value::Null;
    for _ in 0..TRIES {
        let pinned = shared.engine.rules();
        let explanations = pinned.rules.explain(&request, shared.clock.wall()).map_err(Unexplained::Unreadable)?;
        let before = shared.engine.look(&request.cost(0)).await;
        let decision = shared.engine.look(&request).await;
        let known = pinned.rules.known_of(&request);
        let case = Case { before, decision, shared: shared.engine.store().is_shared(), known };
        json = case.json(&explanations, STRANGERS_MAX);
        if [&case.before, &case.decision].iter().all(|decision| decision.generation() == pinned.number) {
            break;
        }
    }
    Ok(json)
}
