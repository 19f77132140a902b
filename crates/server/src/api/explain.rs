//! `/v1/explain`: what every rule makes of a request. Nothing is charged.

use super::refuse::{refuse_body, say};
use super::{Shared, read};
use crate::Reply;
use crate::answer::{Problem, problem};
use crate::explain::Case;

/// Explains a request.
pub(super) async fn explain(shared: &Shared, body: &[u8], reply: &mut Reply) {
    let asked = match read::asked(body) {
        Ok(asked) => asked,
        Err(fault) => return refuse_body(&fault, reply),
    };
    let custom = asked.custom();
    let request = asked.request(&custom).peek();
    let pinned = shared.engine.rules();
    let explanations = match pinned.rules.explain(&request, shared.clock.now()) {
        Ok(explanations) => explanations,
        Err(error) => return problem(&Problem::from(&error), reply),
    };
    let case =
        Case { before: shared.engine.look(&request.cost(0)).await, decision: shared.engine.look(&request).await };
    say(200, &case.json(&explanations).to_string(), reply);
}
