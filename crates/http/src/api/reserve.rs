//! `/v1/reserve`, `/v1/settle` and `/v1/slots/…`.

use tollgate_core::Span;
use tollgate_service::Settled;
use tollgate_service::check_request::{read_check, read_receipt};
use tollgate_service::refusal::{OTHER_NAMESPACE, write_body_error, write_json};
use tollgate_service::{ReceiptKind, Reply, SignedReceipt};

use super::{CheckApi, PreparedCall};

impl CheckApi {
    /// Decides, and appends the receipt as the last member of the response.
    pub(super) async fn reserve(&self, call: PreparedCall, kind: ReceiptKind, body: &[u8], reply: &mut Reply) {
        let request = match read_check(body) {
            Ok(request) => request,
            Err(error) => return write_body_error(&error, reply),
        };
        if !self.may_ask(call, &request) {
            return OTHER_NAMESPACE.write(reply);
        }
        let (decision, receipt) = self.service.reserve(&request, kind).await;
        self.write(call, &decision, reply);
        if let Some(SignedReceipt { text, ttl }) = receipt {
            let name = if kind == ReceiptKind::Slot { "slot" } else { "reservation" };
            reply.body.pop(); // the closing brace: the response to an allowed request is an object with members
            reply.body.extend_from_slice(format!(",\"{name}\":\"{text}\"{}}}", ttl_member(ttl)).as_bytes());
        }
    }

    /// Settles a reservation at its real cost.
    pub(super) async fn settle(&self, body: &[u8], reply: &mut Reply) {
        let (receipt, cost) = match read_receipt(body, "reservation", true) {
            Ok(read) => read,
            Err(error) => return write_body_error(&error, reply),
        };
        match self.service.settle(&receipt, cost).await {
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
        let receipt = match read_receipt(body, "slot", false) {
            Ok((receipt, _)) => receipt,
            Err(error) => return write_body_error(&error, reply),
        };
        match self.service.renew(&receipt).await {
            Ok((renewed, ttl)) => write_json(200, &format!("{{\"renewed\":{renewed}{}}}", ttl_member(ttl)), reply),
            Err(error) => error.write(reply),
        }
    }

    /// Releases slots.
    pub(super) async fn release(&self, body: &[u8], reply: &mut Reply) {
        let receipt = match read_receipt(body, "slot", false) {
            Ok((receipt, _)) => receipt,
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
