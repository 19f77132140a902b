//! `/v1/check` and `/v1/check/batch`.

use tollgate_core::Time;

use super::refuse::{refuse_body, say};
use super::{Api, Plan, Shared, read};
use crate::Reply;
use crate::answer;

/// Decides one request.
pub(super) fn check(shared: &Shared, plan: Plan, body: &[u8], reply: &mut Reply) {
    match read::asked(body) {
        Ok(asked) => {
            let custom = asked.custom();
            let start = shared.clock.now();
            let decision = shared.engine.decide_now(&asked.request(&custom));
            lap(shared, start);
            answer::answer(&decision, &Api::asking(plan), &shared.answer, reply);
        }
        Err(fault) => refuse_body(&fault, reply),
    }
}

/// Decides each request by itself, in order. A batch with a request that is none is refused whole, before the first is
/// decided; a request that only the rules find unreadable (an address that is none) is answered as such in its place.
pub(super) fn batch(shared: &Shared, plan: Plan, body: &[u8], reply: &mut Reply) {
    let requests = match read::batch(body) {
        Ok(requests) => requests,
        Err(fault) => return refuse_body(&fault, reply),
    };
    say(200, "{\"results\":[", reply);
    let mut start = shared.clock.now();
    for (place, asked) in requests.iter().enumerate() {
        if place > 0 {
            reply.body.push(b',');
        }
        let custom = asked.custom();
        let decision = shared.engine.decide_now(&asked.request(&custom));
        start = lap(shared, start);
        answer::body(&decision, &Api::asking(plan), &shared.answer, &mut reply.body);
    }
    reply.body.extend_from_slice(b"]}");
}

/// Notes how long a decision took; answers when it was made.
pub(super) fn lap(shared: &Shared, start: Time) -> Time {
    let now = shared.clock.now();
    shared.metrics.observe_latency(now.since(start));
    now
}
