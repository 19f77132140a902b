//! `/v1/check` and `/v1/check/batch`.

use tollgate_service::Decision;
use tollgate_service::check_request::{read_batch, read_check};
use tollgate_service::refusal::{OTHER_NAMESPACE, write_body_error, write_json};
use tollgate_service::{CheckRequest, PendingCheck, Reply, render};
use tollgate_web::PendingResponse;

use super::{CheckApi, PreparedCall};

impl CheckApi {
    /// Decides one request: at once, or by the returned future if it has to wait for the store.
    pub(super) fn check<'a>(
        &'a self,
        call: PreparedCall,
        body: &'a [u8],
        reply: &'a mut Reply,
    ) -> Option<PendingResponse<'a>> {
        let request = match read_check(body) {
            Ok(request) if !self.may_ask(call, &request) => {
                OTHER_NAMESPACE.write(reply);
                return None;
            }
            Ok(request) => request,
            Err(error) => {
                write_body_error(&error, reply);
                return None;
            }
        };
        let pending = self.check_now(call, &request, reply)?;
        Some(Box::pin(async move {
            let lists = request.lists();
            let decision = self.service.decide_pending(&[request.request(&lists)], pending).await;
            self.write(call, &decision, reply);
        }))
    }

    /// Decides at once if possible. Separate from the part that waits: the decision is rendered here and not moved
    /// through the state of a future.
    fn check_now(&self, call: PreparedCall, request: &CheckRequest<'_>, reply: &mut Reply) -> Option<PendingCheck> {
        let lists = request.lists();
        match self.service.try_decide(&[request.request(&lists)]) {
            Ok(decision) => {
                self.write(call, &decision, reply);
                None
            }
            Err(pending) => Some(pending),
        }
    }

    pub(super) fn write(&self, call: PreparedCall, decision: &Decision, reply: &mut Reply) {
        render::write_decision(decision, &call.options(), &self.service.render, reply);
    }

    /// Decides each request on its own. One malformed item rejects the batch before anything is charged; a request that
    /// only the rules reject (such as a bad address) gets an error in its place.
    pub(super) async fn batch(&self, call: PreparedCall, body: &[u8], reply: &mut Reply) {
        let requests = match read_batch(body) {
            Ok(requests) => requests,
            Err(error) => return write_body_error(&error, reply),
        };
        if !requests.iter().all(|request| self.may_ask(call, request)) {
            return OTHER_NAMESPACE.write(reply);
        }
        write_json(200, "{\"results\":[", reply);
        self.service.decide_each(&requests, |decision| self.append(call, decision, reply)).await;
        reply.body.extend_from_slice(b"]}");
    }

    /// Appends one decision of a batch.
    fn append(&self, call: PreparedCall, decision: &Decision, reply: &mut Reply) {
        if !reply.body.ends_with(b"[") {
            reply.body.push(b',');
        }
        render::write_body(decision, &call.options(), &self.service.render, &mut reply.body);
    }
}
