//! Explains a request against the rules in force. Nothing is charged.

use serde_json::Value;
use smallvec::SmallVec;
use tollgate_core::Request;
use tollgate_ruleset::RequestError;
use tollgate_store::Store;

use super::{ExplainRequest, ExplainedRequest};
use crate::CheckRequest;
use crate::rls::read::ParsedRls;
use crate::service::Service;

/// Most listed rules that do not apply; further ones are only counted.
const UNMATCHED_MAX: usize = 100;
/// Attempts, if the rules change during an explanation.
const TRIES: usize = 3;

/// Why there is no explanation.
#[derive(Debug)]
pub enum Unexplained {
    /// The request cannot be read.
    Invalid(RequestError),
    /// Another explanation is running.
    Busy,
}

impl Service {
    /// The explanation of a request, as JSON. It names the keys of other clients that rules mention: mask it for
    /// callers that may not see them.
    pub async fn explain(&self, request: &CheckRequest<'_>) -> Result<Value, Unexplained> {
        let lists = request.lists();
        self.explain_request(request.request(&lists).peek()).await
    }

    /// The same for a request in either format.
    pub async fn explain_any(&self, request: &ExplainRequest<'_>) -> Result<Value, Unexplained> {
        let message = match request {
            ExplainRequest::Check(request) => return self.explain(request).await,
            ExplainRequest::Descriptor(message) => message,
        };
        let invalid = |message: String| {
            let field = "descriptors".to_owned();
            Unexplained::Invalid(RequestError { code: "bad_descriptor", field, message })
        };
        let parsed = ParsedRls::read(message, &self.engine.rules().rules);
        let parsed = parsed.map_err(|error| invalid(error.to_string()))?;
        match parsed.requests(0).first() {
            Some(request) if !parsed.has_refunds() => self.explain_request(request.peek()).await,
            _ => Err(invalid("negative hits refund units: there is no decision to explain".to_owned())),
        }
    }

    async fn explain_request(&self, request: Request<'_>) -> Result<Value, Unexplained> {
        let unused: SmallVec<[(&str, u64); 2]> = request.costs.iter().map(|(meter, _)| (*meter, 0)).collect();
        let Ok(_permit) = self.explaining.try_acquire() else { return Err(Unexplained::Busy) };
        let mut json = Value::Null;
        for _ in 0..TRIES {
            let pinned = self.engine.rules();
            let explanations = pinned.rules.explain(&request, self.clock.wall()).map_err(Unexplained::Invalid)?;
            let before = self.engine.look(&request.cost(0).with_costs(&unused)).await;
            let decision = self.engine.look(&request).await;
            let known = pinned.rules.client_attributes(&request, self.clock.wall());
            let case = ExplainedRequest { before, decision, shared: self.engine.store().is_shared(), known };
            json = case.json(&explanations, UNMATCHED_MAX);
            if [&case.before, &case.decision].iter().all(|decision| decision.generation() == pinned.number) {
                break;
            }
        }
        Ok(json)
    }
}
