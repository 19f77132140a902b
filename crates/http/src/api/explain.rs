//! `/v1/explain`: how every rule evaluates a request. Nothing is charged.

use tollgate_service::explain::ExplainRequest;
use tollgate_service::mask::Mask;
use tollgate_service::refusal::{BUSY_EXPLAINING, OTHER_NAMESPACE, write_body_error, write_json};
use tollgate_service::render::{ProblemDetails, write_problem};
use tollgate_service::{Reply, Unexplained};

use super::{DataApi, PreparedCall};

impl DataApi {
    /// Explains a request. Keys of other clients that rules mention are hidden.
    pub(super) async fn explain(&self, call: PreparedCall, body: &[u8], reply: &mut Reply) {
        let request = match ExplainRequest::read(body) {
            Ok(request) => request,
            Err(error) => return write_body_error(&error, reply),
        };
        if !self.service.may_ask(call.scope, request.namespace()) {
            return OTHER_NAMESPACE.write(reply);
        }
        match self.service.explain_any(&request).await {
            Ok(mut explanation) => {
                Mask::Hidden.conditions(&mut explanation);
                write_json(200, &explanation.to_string(), reply);
            }
            Err(Unexplained::Busy) => BUSY_EXPLAINING.write(reply),
            Err(Unexplained::Invalid(error)) => write_problem(&ProblemDetails::from(&error), reply),
        }
    }
}
