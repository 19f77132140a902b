//! `/v1/reserve`, `/v1/extend`, `/v1/settle` and `/v1/slots/…`.

use tollgate_core::Span;
use tollgate_service::Settled;
use tollgate_service::check_request::{read_check, read_receipt};
use tollgate_service::refusal::{OTHER_NAMESPACE, write_body_error, write_json};
use tollgate_service::render::write_extension_denial;
use tollgate_service::{Reply, SignedReceipt};

use super::{CheckApi, PreparedCall};

impl CheckApi {
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
            reply.body.pop(); // the closing brace: the response to an allowed request is an object with members
            reply.body.extend_from_slice(format!(",\"{name}\":\"{text}\"{}}}", ttl_member(ttl)).as_bytes());
        }
    }

    /// Takes the next step of a reservation.
    pub(super) async fn extend(&self, call: PreparedCall, body: &[u8], reply: &mut Reply) {
        let read = match read_receipt(body, true) {
            Ok(read) => read,
            Err(error) => return write_body_error(&error, reply),
        };
        match self.service.extend(&read.receipt, &read.costs()).await {
            Ok(Ok(SignedReceipt { text, ttl })) => {
                let json = format!("{{\"extended\":true,\"reservation\":\"{text}\"{}}}", ttl_member(ttl));
                write_json(200, &json, reply);
            }
            Ok(Err(denial)) => write_extension_denial(&denial, call.refuse_by_status == Some(true), reply),
            Err(error) => error.write(reply),
        }
    }

    /// Settles a reservation at its real amounts.
    pub(super) async fn settle(&self, body: &[u8], reply: &mut Reply) {
        let read = match read_receipt(body, true) {
            Ok(read) => read,
            Err(error) => return write_body_error(&error, reply),
        };
        match self.service.settle(&read.receipt, &read.costs()).await {
            Ok(Settled { refunded, extended, repeated }) => {
                let settled = !repeated;
                let json = format!("{{\"settled\":{settled},\"refunded\":{refunded},\"extended\":{extended}}}");
                write_json(200, &json, reply);
            }
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

fn ttl_member(ttl: Option<Span>) -> String {
    ttl.map_or_else(String::new, |ttl| format!(",\"ttl_ms\":{}", ttl.nanos() / 1_000_000))
}
