//! The response to an extension that was denied.

use tollgate_core::Wait;
use tollgate_engine::ExtensionDenial;

use super::body::{number, number_or_null, string};
use crate::Reply;

/// Fills the reply: nothing was charged, and the receipt that was sent is still good. The status is 429 if the caller
/// wants denials as a status, otherwise 200.
pub fn write_extension_denial(denial: &ExtensionDenial, refuse_by_status: bool, reply: &mut Reply) {
    let ExtensionDenial { rule, outcome, slot_lost } = denial;
    let wait = match outcome.wait {
        Wait::For(span) if !slot_lost => Some(span),
        _ => None,
    };
    let Reply { status, fields, body: out, .. } = reply.emptied();
    *status = if refuse_by_status { 429 } else { 200 };
    fields.push("Content-Type", "application/json");
    fields.push("Cache-Control", "no-store");
    out.extend_from_slice(b"{\"extended\":false,\"rule\":");
    match rule {
        Some(rule) => string(out, rule),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"limit\":");
    number(out, outcome.limit);
    out.extend_from_slice(b",\"remaining\":");
    number(out, outcome.remaining);
    out.extend_from_slice(b",\"retry_after\":");
    number_or_null(out, wait.map(|wait| wait.secs_ceil()));
    out.extend_from_slice(b",\"retry_after_ms\":");
    number_or_null(out, wait.map(|wait| wait.millis_ceil()));
    if *slot_lost {
        out.extend_from_slice(b",\"slot_lost\":true");
    } else if wait.is_none() {
        out.extend_from_slice(b",\"never\":true");
    }
    out.push(b'}');
    if let Some(wait) = wait {
        fields.push("Retry-After", &wait.secs_ceil().to_string());
    }
}
