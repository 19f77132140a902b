//! `/v1/check` and `/v1/check/batch`.

use tokio::sync::{Semaphore, SemaphorePermit};
use tollgate_core::Time;
use tollgate_engine::{Decision, Undecided};
use tollgate_store::Store;

use super::join::join;
use super::read::Asked;
use super::refuse::{OTHER_NAMESPACE, refuse, refuse_body, say};
use super::{Api, Plan, Shared, read};
use crate::Reply;
use crate::answer;
use crate::http::Pending;

/// Decides one request: at once, or by what is answered here, if the store has to be waited for.
pub(super) fn check<'a>(shared: &'a Shared, plan: Plan, body: &'a [u8], reply: &'a mut Reply) -> Option<Pending<'a>> {
    let asked = match read::asked(body) {
        Ok(asked) if !plan.may_ask(shared, &asked) => {
            refuse(&OTHER_NAMESPACE, reply);
            return None;
        }
        Ok(asked) => asked,
        Err(fault) => {
            refuse_body(&fault, reply);
            return None;
        }
    };
    let start = shared.clock.now();
    let undecided = check_now(shared, plan, &asked, start, reply)?;
    Some(Box::pin(async move {
        let custom = asked.custom();
        let decision = shared.engine.decide_later(&[asked.request(&custom)], undecided).await;
        lap(shared, start);
        answer::answer(&decision, &Api::asking(plan), &shared.answer, reply);
    }))
}

/// Answers what can be decided at once. Apart from what waits, so that a decision is made where it is read, and is not
/// carried through the state of a future.
fn check_now(shared: &Shared, plan: Plan, asked: &Asked<'_>, start: Time, reply: &mut Reply) -> Option<Undecided> {
    let custom = asked.custom();
    match shared.engine.try_decide(&[asked.request(&custom)]) {
        Ok(decision) => {
            lap(shared, start);
            answer::answer(&decision, &Api::asking(plan), &shared.answer, reply);
            None
        }
        Err(undecided) => Some(undecided),
    }
}

/// Decides each request by itself. A batch with a request that is none is refused whole, before the first is decided; a
/// request that only the rules find unreadable (an address that is none) is answered as such in its place.
pub(super) async fn batch(shared: &Shared, plan: Plan, body: &[u8], reply: &mut Reply) {
    let requests = match read::batch(body) {
        Ok(requests) => requests,
        Err(fault) => return refuse_body(&fault, reply),
    };
    if !requests.iter().all(|asked| plan.may_ask(shared, asked)) {
        return refuse(&OTHER_NAMESPACE, reply);
    }
    say(200, "{\"results\":[", reply);
    decide_each(shared, &requests, |decision| append(shared, plan, decision, reply)).await;
    reply.body.extend_from_slice(b"]}");
}

/// Decides each by itself, and tells the decisions in the order of the requests.
pub(crate) async fn decide_each(shared: &Shared, requests: &[Asked<'_>], mut tell: impl FnMut(&Decision)) {
    let decided = match shared.engine.store().is_shared() {
        true => 0,
        false => each_now(shared, requests, &mut tell),
    };
    if let Some(rest) = requests.get(decided..).filter(|rest| !rest.is_empty()) {
        together(shared, rest).await.iter().for_each(tell);
    }
}

/// Decides them one after the other, until one would have to be waited for; answers how many that were.
fn each_now(shared: &Shared, requests: &[Asked<'_>], tell: &mut impl FnMut(&Decision)) -> usize {
    let mut start = shared.clock.now();
    for (place, asked) in requests.iter().enumerate() {
        let custom = asked.custom();
        let now = match shared.engine.try_decide(&[asked.request(&custom)]) {
            Ok(decision) => {
                tell(&decision);
                decision.now // of a store of our own, so it is this server's time
            }
            Err(_) => return place,
        };
        shared.metrics.observe_latency(now.since(start));
        start = now;
    }
    requests.len()
}

/// Appends one answer of a batch.
fn append(shared: &Shared, plan: Plan, decision: &Decision, reply: &mut Reply) {
    if !reply.body.ends_with(b"[") {
        reply.body.push(b',');
    }
    answer::body(decision, &Api::asking(plan), &shared.answer, &mut reply.body);
}

/// Decides all of them at the same time, so that a store with a network in between answers them together.
async fn together(shared: &Shared, requests: &[Asked<'_>]) -> Vec<Decision> {
    let width = Width::take(&shared.in_batches, requests.len());
    Box::pin(join(requests.iter().map(|asked| decide(shared, asked)), width.checks)).await
}

/// Decides one, however long the store takes.
pub(crate) async fn decide(shared: &Shared, asked: &Asked<'_>) -> Decision {
    let custom = asked.custom();
    let start = shared.clock.now();
    let decision = shared.engine.decide(&asked.request(&custom)).await;
    lap(shared, start);
    decision
}

/// Checks of batches that may wait for a store at the same time, over all connections: each of them takes a few
/// kilobytes. A batch that finds no room is decided all the same, one check after the other.
pub const IN_BATCHES_MAX: usize = 8192;

/// How many checks of a batch go at once.
pub(crate) struct Width<'a> {
    checks: usize,
    _room: Option<SemaphorePermit<'a>>,
}

impl Width<'_> {
    /// Room for so many, as far as there is some.
    pub(crate) fn take(room: &Semaphore, wanted: usize) -> Width<'_> {
        let wanted = wanted.min(room.available_permits());
        let room = u32::try_from(wanted).ok().and_then(|wanted| room.try_acquire_many(wanted).ok());
        Width { checks: if room.is_some() { wanted.max(1) } else { 1 }, _room: room }
    }

    /// How many go at once; at least one.
    pub(crate) fn checks(&self) -> usize {
        self.checks
    }
}

/// Notes how long a decision took; answers when it was made.
pub(crate) fn lap(shared: &Shared, start: Time) -> Time {
    let now = shared.clock.now();
    shared.metrics.observe_latency(now.since(start));
    now
}

#[cfg(test)]
mod tests {
    use tollgate_engine::Engine;

    use super::*;
    use crate::backend::Backend;

    /// How large the future is that a call would return.
    fn size<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
        size_of::<F>()
    }

    /// It is copied to the heap for every check that waits for a shared store, all of it.
    #[test]
    fn what_waits_for_the_store_is_small() {
        let later =
            size(|(engine, undecided): (&'static Engine<Backend>, Undecided)| engine.decide_later(&[], undecided));
        assert!(later <= 2560, "{later} bytes");
    }

    /// Whoever decides in memory carries nothing of what a network would take.
    #[test]
    fn what_need_not_wait_is_smaller() {
        let decide = size(|engine: &'static Engine<Backend>| engine.decide_all(&[]));
        assert!(decide <= 640, "{decide} bytes");
    }
}
