//! `/v1/reserve`, `/v1/settle` and `/v1/slots/…`: JSON around [`hold`].

use tollgate_core::Span;
use tollgate_engine::Settled;

use super::hold::{self, Receipt};
use super::refuse::{OTHER_NAMESPACE, refuse, refuse_body, say};
use super::seal::Kind;
use super::{Api, Plan, Shared, read};
use crate::Reply;
use crate::answer;

/// Decides, and hands out the receipt as the last member of the answer.
pub(super) async fn reserve(shared: &Shared, plan: Plan, kind: Kind, body: &[u8], reply: &mut Reply) {
    let asked = match read::asked(body) {
        Ok(asked) => asked,
        Err(fault) => return refuse_body(&fault, reply),
    };
    if !plan.may_ask(shared, &asked) {
        return refuse(&OTHER_NAMESPACE, reply);
    }
    let (decision, receipt) = hold::hold(shared, &asked, kind).await;
    answer::answer(&decision, &Api::asking(plan), &shared.answer, reply);
    if let Some(Receipt { text, ttl }) = receipt {
        let name = if kind == Kind::Slot { "slot" } else { "reservation" };
        reply.body.pop(); // the closing brace: an allowed answer is an object with members
        reply.body.extend_from_slice(format!(",\"{name}\":\"{text}\"{}}}", ttl_member(ttl)).as_bytes());
    }
}

fn ttl_member(ttl: Option<Span>) -> String {
    ttl.map_or_else(String::new, |ttl| format!(",\"ttl_ms\":{}", ttl.nanos() / 1_000_000))
}

/// The real cost of what was reserved.
pub(super) async fn settle(shared: &Shared, body: &[u8], reply: &mut Reply) {
    let (receipt, cost) = match read::receipt(body, "reservation", true) {
        Ok(read) => read,
        Err(fault) => return refuse_body(&fault, reply),
    };
    match hold::settle(shared, &receipt, cost).await {
        Ok(Settled { refunded, extended, repeated }) => {
            let settled = !repeated;
            say(200, &format!("{{\"settled\":{settled},\"refunded\":{refunded},\"extended\":{extended}}}"), reply);
        }
        Err(refused) => refuse(&refused, reply),
    }
}

/// A heartbeat.
pub(super) async fn renew(shared: &Shared, body: &[u8], reply: &mut Reply) {
    let receipt = match read::receipt(body, "slot", false) {
        Ok((receipt, _)) => receipt,
        Err(fault) => return refuse_body(&fault, reply),
    };
    match hold::renew(shared, &receipt).await {
        Ok((renewed, ttl)) => say(200, &format!("{{\"renewed\":{renewed}{}}}", ttl_member(ttl)), reply),
        Err(refused) => refuse(&refused, reply),
    }
}

/// The slots come back.
pub(super) async fn release(shared: &Shared, body: &[u8], reply: &mut Reply) {
    let receipt = match read::receipt(body, "slot", false) {
        Ok((receipt, _)) => receipt,
        Err(fault) => return refuse_body(&fault, reply),
    };
    match hold::release(shared, &receipt).await {
        Ok(released) => say(200, &format!("{{\"released\":{released}}}"), reply),
        Err(refused) => refuse(&refused, reply),
    }
}
