//! `/v1/reserve`, `/v1/extend`, `/v1/settle` and `/v1/slots/…`.

use tollgate_core::Span;
use tollgate_service::check_request::{read_check, read_receipt};
use tollgate_service::refusal::{OTHER_NAMESPACE, write_body_error, write_json};
use tollgate_service::{Extended, Reply, SignedReceipt};
use tollgate_service::{Settled, UnchargedUnits};

use super::{DataApi, PreparedCall};

impl DataApi {
    /// Decides, and appends the receipt as the last member of the response, under `name`.
    pub(super) async fn reserve(&self, call: PreparedCall, name: &'static str, body: &[u8], reply: &mut Reply) {
        let request = match read_check(body) {
            Ok(request) => request,
            Err(error) => return write_body_error(&error, reply),
        };
        if !self.may_ask(call, &request) {
            return OTHER_NAMESPACE.write(reply);
        }
        let (decision, receipt) = self.service.reserve(&request).await;
        self.write(call, &decision, reply);
        if let Some(SignedReceipt { text, ttl }) = receipt {
            append_members(&format!("\"{name}\":\"{text}\"{}", ttl_member(ttl)), reply);
        }
    }

    /// Decides the next step of a reservation.
    pub(super) async fn extend(&self, call: PreparedCall, body: &[u8], reply: &mut Reply) {
        let read = match read_receipt(body, true) {
            Ok(read) => read,
            Err(error) => return write_body_error(&error, reply),
        };
        let Extended { decision, receipt, slot_lost } = match self.service.extend(&read.receipt, &read.costs()).await {
            Ok(extended) => extended,
            Err(error) => return error.write(reply),
        };
        self.write(call, &decision, reply);
        match receipt {
            Some(SignedReceipt { text, ttl }) => {
                append_members(&format!("\"reservation\":\"{text}\"{}", ttl_member(ttl)), reply);
            }
            None if slot_lost => append_members("\"slot_lost\":true", reply),
            None => {}
        }
    }

    /// Settles a reservation at its real amounts.
    pub(super) async fn settle(&self, body: &[u8], reply: &mut Reply) {
        let read = match read_receipt(body, true) {
            Ok(read) => read,
            Err(error) => return write_body_error(&error, reply),
        };
        match self.service.settle(&read.receipt, &read.costs()).await {
            Ok(settled) => write_json(200, &settled_json(&settled), reply),
            Err(error) => error.write(reply),
        }
    }

    /// Renews slots.
    pub(super) async fn renew(&self, body: &[u8], reply: &mut Reply) {
        let receipt = match read_receipt(body, false) {
            Ok(read) => read.receipt,
            Err(error) => return write_body_error(&error, reply),
        };
        match self.service.renew(&receipt).await {
            Ok((renewed, ttl)) => write_json(200, &format!("{{\"renewed\":{renewed}{}}}", ttl_member(ttl)), reply),
            Err(error) => error.write(reply),
        }
    }

    /// Releases slots.
    pub(super) async fn release(&self, body: &[u8], reply: &mut Reply) {
        let receipt = match read_receipt(body, false) {
            Ok(read) => read.receipt,
            Err(error) => return write_body_error(&error, reply),
        };
        match self.service.release(&receipt).await {
            Ok(released) => write_json(200, &format!("{{\"released\":{released}}}"), reply),
            Err(error) => error.write(reply),
        }
    }
}

/// What settling changed; amounts above the reservation where there are any. Names of meters and rules hold nothing that
/// JSON escapes.
fn settled_json(settled: &Settled) -> String {
    let Settled { refunded, extended, repeated, above, uncharged } = settled;
    let mut json = format!("{{\"settled\":{},\"refunded\":{refunded},\"extended\":{extended}", !repeated);
    if !above.is_empty() {
        let members: Vec<String> = above.iter().map(|(meter, amount)| format!("\"{meter}\":{amount}")).collect();
        json.push_str(&format!(",\"above\":{{{}}}", members.join(",")));
    }
    if !uncharged.is_empty() {
        let item =
            |UnchargedUnits { rule, units }: &UnchargedUnits| format!("{{\"rule\":\"{rule}\",\"units\":{units}}}");
        let items: Vec<String> = uncharged.iter().map(item).collect();
        json.push_str(&format!(",\"uncharged\":[{}]", items.join(",")));
    }
    json.push('}');
    json
}

/// Appends members to the object of a decision, which is never empty.
fn append_members(members: &str, reply: &mut Reply) {
    reply.body.pop(); // the closing brace
    reply.body.push(b',');
    reply.body.extend_from_slice(members.as_bytes());
    reply.body.push(b'}');
}

fn ttl_member(ttl: Option<Span>) -> String {
    ttl.map_or_else(String::new, |ttl| format!(",\"ttl_ms\":{}", ttl.nanos() / 1_000_000))
}
