//! Implementation of `tollgate.v1.Tollgate`.

use std::collections::HashMap;
use std::sync::Arc;

use tollgate_proto::v1::tollgate_server::Tollgate;
use tollgate_proto::v1::{
    AcquireSlotRequest, AcquireSlotResponse, BatchCheckRequest, BatchCheckResponse, CheckRequest, CheckResponse,
    ExplainRequest, ExplainResponse, ExtendRequest, ExtendResponse, ReleaseSlotRequest, ReleaseSlotResponse,
    RenewSlotRequest, RenewSlotResponse, ReserveRequest, ReserveResponse, SettleRequest, SettleResponse,
    StreamChecksRequest,
};
use tonic::{Request, Response, Status, Streaming};

use super::convert::{self, other_namespace, response, ttl_ms};
use super::stream::CheckStream;
use tollgate_service::check_request::{BATCH_MAX, BodyError, COST_MAX};
use tollgate_service::data_tokens::TokenScope;
use tollgate_service::mask::Mask;
use tollgate_service::refusal::BUSY_EXPLAINING;
use tollgate_service::{CheckRequest as ServiceRequest, Extended, Service, SignedReceipt, Unexplained};

/// Implements the generated service trait.
#[derive(Clone)]
pub(super) struct TollgateService(pub(super) Arc<Service>);

#[tonic::async_trait]
impl Tollgate for TollgateService {
    type StreamChecksStream = CheckStream;

    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let TollgateService(service) = self;
        let scope = scope(&request);
        let request = request.into_inner();
        let check = self.check_request(scope, Some(&request))?;
        let decision = service.decide(&check).await;
        response(&decision, &service.render).map(Response::new)
    }

    async fn batch_check(&self, request: Request<BatchCheckRequest>) -> Result<Response<BatchCheckResponse>, Status> {
        let TollgateService(service) = self;
        let scope = scope(&request);
        let requests = request.into_inner().requests;
        if requests.is_empty() {
            return Err(Status::invalid_argument("missing_field: requests holds no request"));
        }
        if requests.len() > BATCH_MAX {
            return Err(Status::invalid_argument(format!("too_many: requests holds more than {BATCH_MAX} requests")));
        }
        let checks = requests.iter().enumerate().map(|(index, request)| {
            let named = |error: BodyError| BodyError { field: format!("requests[{index}].{}", error.field), ..error };
            convert::check_request(request).map_err(|error| convert::unreadable(&named(error)))
        });
        let checks = checks.collect::<Result<Vec<ServiceRequest<'_>>, Status>>()?;
        if !checks.iter().all(|check| service.may_ask(scope, check.namespace())) {
            return Err(other_namespace());
        }
        let mut results = Vec::with_capacity(checks.len());
        service.decide_each(&checks, |decision| results.push(convert::checked(decision, &service.render))).await;
        Ok(Response::new(BatchCheckResponse { results }))
    }

    async fn stream_checks(
        &self,
        request: Request<Streaming<StreamChecksRequest>>,
    ) -> Result<Response<CheckStream>, Status> {
        let (scope, token) = (scope(&request), request.extensions().get().cloned());
        Ok(Response::new(CheckStream::new(self.0.clone(), scope, token, request.into_inner())))
    }

    async fn reserve(&self, request: Request<ReserveRequest>) -> Result<Response<ReserveResponse>, Status> {
        let (decision, receipt) = self.hold(scope(&request), request.get_ref().request.as_ref()).await?;
        let (reservation, ttl) = receipt.map(|SignedReceipt { text, ttl }| (text, ttl)).unwrap_or_default();
        Ok(Response::new(ReserveResponse { decision: Some(decision), reservation, ttl_ms: ttl_ms(ttl) }))
    }

    async fn extend(&self, request: Request<ExtendRequest>) -> Result<Response<ExtendResponse>, Status> {
        let ExtendRequest { reservation, costs } = request.get_ref();
        let extended = self.0.extend(reservation, &amounts(costs)?).await.map_err(convert::api_error)?;
        let Extended { decision, receipt, slot_lost } = extended;
        let decision = Some(convert::response(&decision, &self.0.render)?);
        let (reservation, ttl) = receipt.map(|SignedReceipt { text, ttl }| (text, ttl)).unwrap_or_default();
        Ok(Response::new(ExtendResponse { decision, reservation, ttl_ms: ttl_ms(ttl), slot_lost }))
    }

    async fn settle(&self, request: Request<SettleRequest>) -> Result<Response<SettleResponse>, Status> {
        let SettleRequest { reservation, cost, mut costs } = request.into_inner();
        if let Some(cost) = cost.filter(|_| costs.is_empty()) {
            costs.insert(tollgate_core::Request::REQUESTS.to_owned(), cost);
        }
        let settled = self.0.settle(&reservation, &amounts(&costs)?).await.map_err(convert::api_error)?;
        Ok(Response::new(convert::settled(settled)))
    }

    async fn acquire_slot(
        &self,
        request: Request<AcquireSlotRequest>,
    ) -> Result<Response<AcquireSlotResponse>, Status> {
        let (decision, receipt) = self.hold(scope(&request), request.get_ref().request.as_ref()).await?;
        let (slot, ttl) = receipt.map(|SignedReceipt { text, ttl }| (text, ttl)).unwrap_or_default();
        Ok(Response::new(AcquireSlotResponse { decision: Some(decision), slot, ttl_ms: ttl_ms(ttl) }))
    }

    async fn renew_slot(&self, request: Request<RenewSlotRequest>) -> Result<Response<RenewSlotResponse>, Status> {
        let renewed = self.0.renew(&request.get_ref().slot).await;
        let (renewed, ttl) = renewed.map_err(convert::api_error)?;
        Ok(Response::new(RenewSlotResponse { renewed, ttl_ms: ttl_ms(ttl) }))
    }

    async fn release_slot(
        &self,
        request: Request<ReleaseSlotRequest>,
    ) -> Result<Response<ReleaseSlotResponse>, Status> {
        let released = self.0.release(&request.get_ref().slot).await.map_err(convert::api_error)?;
        Ok(Response::new(ReleaseSlotResponse { released }))
    }

    async fn explain(&self, request: Request<ExplainRequest>) -> Result<Response<ExplainResponse>, Status> {
        let check = self.check_request(scope(&request), request.get_ref().request.as_ref())?;
        match self.0.explain(&check).await {
            Ok(mut explanation) => {
                Mask::Hidden.conditions(&mut explanation);
                Ok(Response::new(ExplainResponse { json: explanation.to_string() }))
            }
            Err(Unexplained::Busy) => Err(convert::api_error(BUSY_EXPLAINING)),
            Err(Unexplained::Invalid(error)) => Err(convert::invalid_request(&error)),
        }
    }
}

impl TollgateService {
    /// Reads a request and checks that the caller's token covers its namespace.
    fn check_request<'a>(
        &self,
        scope: TokenScope,
        request: Option<&'a CheckRequest>,
    ) -> Result<ServiceRequest<'a>, Status> {
        let check = convert::nested_check_request(request)?;
        match self.0.may_ask(scope, check.namespace()) {
            true => Ok(check),
            false => Err(other_namespace()),
        }
    }

    async fn hold(
        &self,
        scope: TokenScope,
        request: Option<&CheckRequest>,
    ) -> Result<(CheckResponse, Option<SignedReceipt>), Status> {
        let check = self.check_request(scope, request)?;
        let (decision, receipt) = self.0.reserve(&check).await;
        Ok((response(&decision, &self.0.render)?, receipt))
    }
}

/// Amounts by meter, each in range.
fn amounts(costs: &HashMap<String, u64>) -> Result<Vec<(&str, u64)>, Status> {
    match costs.values().all(|amount| *amount <= COST_MAX) {
        true => Ok(costs.iter().map(|(meter, amount)| (meter.as_str(), *amount)).collect()),
        false => Err(convert::unreadable(&BodyError::bad_cost())),
    }
}

/// The scope of the caller's token, from the request extensions. A call without one covers nothing.
fn scope<T>(request: &Request<T>) -> TokenScope {
    request.extensions().get().copied().unwrap_or(TokenScope::NONE)
}
