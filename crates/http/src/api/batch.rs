//! `/v1/check/batch`.

use tollgate_service::check_request::read_batch;
use tollgate_service::refusal::{OTHER_NAMESPACE, write_body_error, write_json};
use tollgate_service::{Decision, Reply, render};

use super::{DataApi, PreparedCall};

impl DataApi {
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
