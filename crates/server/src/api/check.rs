//! `/v1/check` and `/v1/check/batch`.

use tollgate_core::Request;
use tollgate_engine::Decision;

use super::refuse::{refuse_body, say};
use super::{Api, Plan, Shared, read};
use crate::Reply;
use crate::answer;

/// Decides one request.
pub(super) async fn check(shared: &Shared, plan: Plan, body: &[u8], reply: &mut Reply) {
    match read::asked(body) {
        Ok(asked) => {
            let custom = asked.custom();
            let decision = decide(shared, &asked.request(&custom)).await;
            answer::answer(&decision, &Api::asking(plan), &shared.answer, reply);
        }
        Err(fault) => refuse_body(&fault, reply),
    }
}

/// Decides each request by itself, in order. A batch with a request that is none is refused whole, before the first is
/// decided; a request that only the rules find unreadable (an address that is none) is answered as such in its place.
pub(super) async fn batch(shared: &Shared, plan: Plan, body: &[u8], reply: &mut Reply) {
    let requests = match read::batch(body) {
        Ok(requests) => requests,
        Err(fault) => return refuse_body(&fault, reply),
    };
    say(200, "{\"results\":[", reply);
    for (place, asked) in requests.iter().enumerate() {
        if place > 0 {
            reply.body.push(b',');
        }
        let custom = asked.custom();
        let decision = decide(shared, &asked.request(&custom)).await;
        answer::body(&decision, &Api::asking(plan), &shared.answer, &mut reply.body);
    }
    reply.body.extend_from_slice(b"]}");
}

/// A decision, and how long it took.
async fn decide(shared: &Shared, request: &Request<'_>) -> Decision {
    let start = shared.clock.now();
    let decision = shared.engine.decide(request).await;
    shared.metrics.observe_latency(shared.clock.now().since(start));
    decision
}
