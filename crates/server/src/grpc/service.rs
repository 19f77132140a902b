//! Tollgate's own service, as tonic calls it.

use std::sync::Arc;

use tollgate_proto::v1::tollgate_server::Tollgate;
use tollgate_proto::v1::{
    AcquireSlotRequest, AcquireSlotResponse, BatchCheckRequest, BatchCheckResponse, CheckRequest, CheckResponse,
    ExplainRequest, ExplainResponse, ReleaseSlotRequest, ReleaseSlotResponse, RenewSlotRequest, RenewSlotResponse,
    ReserveRequest, ReserveResponse, SettleRequest, SettleResponse, StreamChecksRequest,
};
use tonic::{Request, Response, Status, Streaming};

use super::call::other_namespace;
use super::convert::{self, response, ttl_ms};
use super::stream::Answers;
use crate::admin::Mask;
use crate::api::explain::Unexplained;
use crate::api::hold::{self, Receipt};
use crate::api::read::{Asked, BATCH_MAX, COST_MAX, Fault};
use crate::api::refuse::BUSY_EXPLAINING;
use crate::api::seal::Kind;
use crate::api::tokens::Pass;
use crate::api::{Shared, check, explain};

/// Answers for Tollgate.
#[derive(Clone)]
pub(super) struct Service(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl Tollgate for Service {
    type StreamChecksStream = Answers;

    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let Service(shared) = self;
        let pass = pass(&request);
        let request = request.into_inner();
        let asked = self.asked_in(pass, Some(&request))?;
        let decision = check::decide(shared, &asked).await;
        response(&decision).map(Response::new)
    }

    async fn batch_check(&self, request: Request<BatchCheckRequest>) -> Result<Response<BatchCheckResponse>, Status> {
        let Service(shared) = self;
        let pass = pass(&request);
        let requests = request.into_inner().requests;
        if requests.is_empty() {
            return Err(Status::invalid_argument("missing_field: requests holds no request"));
        }
        if requests.len() > BATCH_MAX {
            return Err(Status::invalid_argument(format!("too_many: requests holds more than {BATCH_MAX} requests")));
        }
        let asked = requests.iter().enumerate().map(|(place, request)| {
            let named = |fault: Fault| Fault { field: format!("requests[{place}].{}", fault.field), ..fault };
            convert::asked(request).map_err(|fault| convert::unreadable(&named(fault)))
        });
        let asked = asked.collect::<Result<Vec<Asked<'_>>, Status>>()?;
        if !asked.iter().all(|asked| shared.may_ask(pass, asked.namespace())) {
            return Err(other_namespace());
        }
        let mut results = Vec::with_capacity(asked.len());
        check::decide_each(shared, &asked, |decision| results.push(convert::checked(decision))).await;
        Ok(Response::new(BatchCheckResponse { results }))
    }

    async fn stream_checks(
        &self,
        request: Request<Streaming<StreamChecksRequest>>,
    ) -> Result<Response<Answers>, Status> {
        let (pass, token) = (pass(&request), request.extensions().get().cloned());
        Ok(Response::new(Answers::new(self.0.clone(), pass, token, request.into_inner())))
    }

    async fn reserve(&self, request: Request<ReserveRequest>) -> Result<Response<ReserveResponse>, Status> {
        let (decision, receipt) =
            self.hold(pass(&request), request.get_ref().request.as_ref(), Kind::Reservation).await?;
        let reservation = receipt.map(|receipt| receipt.text).unwrap_or_default();
        Ok(Response::new(ReserveResponse { decision: Some(decision), reservation }))
    }

    async fn settle(&self, request: Request<SettleRequest>) -> Result<Response<SettleResponse>, Status> {
        let SettleRequest { reservation, cost } = request.into_inner();
        if cost > COST_MAX {
            return Err(convert::unreadable(&Fault::bad_cost()));
        }
        let settled = hold::settle(&self.0, &reservation, cost).await.map_err(convert::refused)?;
        let (refunded, extended) = (settled.refunded as u64, settled.extended as u64);
        Ok(Response::new(SettleResponse { settled: !settled.repeated, refunded, extended }))
    }

    async fn acquire_slot(
        &self,
        request: Request<AcquireSlotRequest>,
    ) -> Result<Response<AcquireSlotResponse>, Status> {
        let (decision, receipt) = self.hold(pass(&request), request.get_ref().request.as_ref(), Kind::Slot).await?;
        let (slot, ttl) = receipt.map(|Receipt { text, ttl }| (text, ttl)).unwrap_or_default();
        Ok(Response::new(AcquireSlotResponse { decision: Some(decision), slot, ttl_ms: ttl_ms(ttl) }))
    }

    async fn renew_slot(&self, request: Request<RenewSlotRequest>) -> Result<Response<RenewSlotResponse>, Status> {
        let renewed = hold::renew(&self.0, &request.get_ref().slot).await;
        let (renewed, ttl) = renewed.map_err(convert::refused)?;
        Ok(Response::new(RenewSlotResponse { renewed, ttl_ms: ttl_ms(ttl) }))
    }

    async fn release_slot(
        &self,
        request: Request<ReleaseSlotRequest>,
    ) -> Result<Response<ReleaseSlotResponse>, Status> {
        let released = hold::release(&self.0, &request.get_ref().slot).await.map_err(convert::refused)?;
        Ok(Response::new(ReleaseSlotResponse { released }))
    }

    async fn explain(&self, request: Request<ExplainRequest>) -> Result<Response<ExplainResponse>, Status> {
        let asked = self.asked_in(pass(&request), request.get_ref().request.as_ref())?;
        match explain::explained(&self.0, &asked).await {
            Ok(mut explanation) => {
                Mask::Hidden.conditions(&mut explanation);
                Ok(Response::new(ExplainResponse { json: explanation.to_string() }))
            }
            Err(Unexplained::Busy) => Err(convert::refused(BUSY_EXPLAINING)),
            Err(Unexplained::Unreadable(error)) => Err(convert::of_rules(&error)),
        }
    }
}

impl Service {
    /// The request that a message carries, if the caller's token is for its namespace.
    fn asked_in<'a>(&self, pass: Pass, request: Option<&'a CheckRequest>) -> Result<Asked<'a>, Status> {
        let asked = convert::asked_in(request)?;
        match self.0.may_ask(pass, asked.namespace()) {
            true => Ok(asked),
            false => Err(other_namespace()),
        }
    }

    async fn hold(
        &self,
        pass: Pass,
        request: Option<&CheckRequest>,
        kind: Kind,
    ) -> Result<(CheckResponse, Option<Receipt>), Status> {
        let asked = self.asked_in(pass, request)?;
        let (decision, receipt) = hold::hold(&self.0, &asked, kind).await;
        Ok((response(&decision)?, receipt))
    }
}

/// What the caller's token is for. Every call carries it; without it, a call would be for nothing.
fn pass<T>(request: &Request<T>) -> Pass {
    request.extensions().get().copied().unwrap_or(Pass::NONE)
}
