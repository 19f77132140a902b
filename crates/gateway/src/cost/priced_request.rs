//! Reads what a request costs before it is decided. Its body is read only where the cost depends on it; otherwise it
//! streams.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use hyper::body::Body;
use tollgate_cost::llm::{LlmDialect, LlmRequest, LlmSpec, OtherCalls, TokenUsage};
use tollgate_cost::{CostError, CostErrorKind, CostFacts, CostSpec, MeterAmounts, RequestCost, ResponseCost};
use tollgate_service::HeldRequest;
use tollgate_web::ReceivedBody;

use super::settlement::CostSettlement;
use crate::refusal::GatewayRefusal;
use crate::route_figures::RouteFigures;
use crate::spec::RouteSpec;
use crate::upstream::{BodyProgress, SentRequestBody, UpstreamError};

/// The head of a request, as far as its cost depends on it.
pub(crate) struct RequestHead<'a> {
    pub(crate) method: &'a Method,
    /// The canonical path.
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
}

/// What a request costs.
pub(crate) struct PricedRequest {
    spec: Option<Arc<CostSpec>>,
    cost: RequestCost,
    call: Option<LlmRequest>,
    amounts: MeterAmounts,
    has_length: bool,
}

/// The body to forward.
pub(crate) enum PricedBody {
    /// As it arrives, at most this long.
    Stream(ReceivedBody, Option<u64>),
    /// As it was read, and perhaps changed.
    Full(Bytes),
}

impl PricedRequest {
    /// Reads the cost of a request, and its body if the cost depends on it.
    pub(crate) async fn read(
        route: &RouteSpec,
        head: &RequestHead<'_>,
        body: ReceivedBody,
    ) -> Result<(PricedRequest, PricedBody), GatewayRefusal> {
        let length = content_length(head.headers);
        let Some(spec) = &route.cost else {
            return Ok((PricedRequest::unpriced(length), PricedBody::Stream(body, route.max_body)));
        };
        let shortest = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        let mut body = PricedBody::Stream(body, shortest(route.max_body, spec.request_bytes_max()));
        if let Some(most) = spec.body_bytes_max() {
            check_one_reading(head.headers)?;
            body = Box::pin(body.read(most)).await?;
        }
        let bytes = match &body {
            PricedBody::Full(bytes) => bytes.clone(),
            PricedBody::Stream(..) => Bytes::new(),
        };
        let RequestPrice { cost, call, amounts } = price(spec, head, length, &bytes)?;
        if let Some(rewritten) = call.as_ref().and_then(|call| call.rewritten(&bytes)) {
            body = PricedBody::Full(rewritten.into());
        }
        let has_length = length.is_some() || matches!(body, PricedBody::Full(_));
        Ok((PricedRequest { spec: Some(spec.clone()), cost, call, amounts, has_length }, body))
    }

    fn unpriced(length: Option<u64>) -> PricedRequest {
        PricedRequest {
            spec: None,
            cost: RequestCost::default(),
            call: None,
            amounts: MeterAmounts::default(),
            has_length: length.is_some(),
        }
    }

    /// The amounts to decide with: known ones, and estimates.
    pub(crate) fn amounts(&self) -> &MeterAmounts {
        &self.amounts
    }

    /// The same, for good.
    pub(crate) fn into_amounts(self) -> MeterAmounts {
        self.amounts
    }

    /// Whether amounts are settled after the response.
    pub(crate) fn is_settled(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.is_settled())
    }

    /// The API of a language model that is called.
    pub(crate) fn dialect(&self) -> Option<LlmDialect> {
        self.call.as_ref().map(|call| call.dialect)
    }

    /// What is settled when the request ends, if anything is: then it takes `held`, which has what is reserved.
    pub(crate) fn settlement(
        &mut self,
        held: &mut Option<HeldRequest>,
        figures: &Arc<RouteFigures>,
    ) -> Option<CostSettlement> {
        let spec = self.spec.clone().filter(|spec| spec.is_settled())?;
        let held = held.take();
        let response = ResponseCost::new(spec.clone(), &self.cost);
        Some(CostSettlement::new(spec, response, self.call.take(), held, !self.has_length, figures.clone()))
    }
}

impl PricedBody {
    /// Reads the body, at most `most` bytes of it.
    async fn read(self, most: usize) -> Result<PricedBody, GatewayRefusal> {
        let PricedBody::Stream(body, max) = self else { return Ok(self) };
        if body.is_end_stream() {
            return Ok(PricedBody::Stream(body, max));
        }
        let most = max.and_then(|max| usize::try_from(max).ok()).map_or(most, |max| max.min(most));
        let read = body.collect(most).await;
        read.map(PricedBody::Full).map_err(|error| UpstreamError::RequestBody(error).into())
    }

    /// The body as it is sent; `headers` are told its length.
    pub(crate) fn into_sent(self, headers: &mut HeaderMap, route: &RouteSpec) -> (SentRequestBody, BodyProgress) {
        match self {
            PricedBody::Stream(body, max) => {
                // Without it, a GET of unknown length would be taken for one without a body. HTTP/2 leaves it out.
                if !body.is_end_stream() && body.size_hint().exact().is_none() {
                    headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
                }
                SentRequestBody::stream(body, max, &route.request_headers)
            }
            PricedBody::Full(bytes) => {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
                headers.remove(header::TRAILER);
                SentRequestBody::full(bytes)
            }
        }
    }
}

/// What a request costs, by its head and body.
struct RequestPrice {
    cost: RequestCost,
    call: Option<LlmRequest>,
    amounts: MeterAmounts,
}

/// Reads what a request costs.
fn price(
    spec: &CostSpec,
    head: &RequestHead<'_>,
    content_length: Option<u64>,
    body: &[u8],
) -> Result<RequestPrice, CostError> {
    let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let method = head.method.as_str();
    let cost = spec.request(&CostFacts { method, query: head.query, content_type, content_length, body })?;
    let mut amounts = cost.amounts.clone();
    let call = spec.llm.as_ref().map(|llm| read_call(llm, head, body)).transpose()?.flatten();
    if let Some(llm) = &spec.llm {
        // Other calls use no tokens, which is an amount too: rules with `unmetered: reject` ask for one.
        let unused = || llm.meters.amounts(&TokenUsage::default());
        amounts.extend(&call.as_ref().map_or_else(unused, |call| call.reservation(llm)));
    }
    Ok(RequestPrice { cost, call, amounts })
}

/// A body that the server would decode to another text than the one that is priced is refused.
fn check_one_reading(headers: &HeaderMap) -> Result<(), CostError> {
    let text = |name| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
    let is_encoded = text(header::CONTENT_ENCODING).any(|coding| !coding.eq_ignore_ascii_case("identity"));
    let charsets = text(header::CONTENT_TYPE).flat_map(|kind| kind.split(';').skip(1)).filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    let is_other =
        |charset: &str| !["utf-8", "utf8", "us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known));
    match is_encoded || charsets.into_iter().any(is_other) || text(header::CONTENT_TYPE).count() > 1 {
        true => Err(CostError {
            kind: CostErrorKind::BadBody,
            message: "the body is to be sent as it is, in UTF-8, and with one Content-Type".into(),
        }),
        false => Ok(()),
    }
}

/// The call of a language model, if it is one. Only POST makes one, so that preflights of browsers pass.
fn read_call(llm: &LlmSpec, head: &RequestHead<'_>, body: &[u8]) -> Result<Option<LlmRequest>, CostError> {
    let is_call = *head.method == Method::POST || !body.is_empty();
    match !is_call && llm.others == OtherCalls::Pass {
        true => Ok(None),
        false => LlmRequest::read(llm, head.path, body),
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}
