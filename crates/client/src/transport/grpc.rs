//! gRPC: the same calls over one HTTP/2 connection.

use std::error::Error as _;

use hyper_util::client::legacy::{Client as HyperClient, Error as HyperError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::time::Duration;
use tokio::time::Instant;
use tollgate_core::{Attribute, Purpose, Request};
use tollgate_proto::v1::tollgate_client::TollgateClient;
use tollgate_proto::v1::{self, checked};
use tonic::body::Body;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Code, Status};

use super::connector::ServerConnector;
use super::http::bearer;
use super::{DecisionAnswer, ServerAnswer, ServerCall};
use crate::client_url::ClientUrl;
use crate::config::{ClientConfig, ClientConfigError};
use crate::decision::mode_of;
use crate::failure::{BODY_TOO_LARGE, CallError, Outage, OutageKind, RequestRejected};
use crate::reservation::RemoteSettlement;
use crate::{RemoteDecision, RuleResult, Span};

/// Longest message that is read.
const MESSAGE_MAX: usize = 1 << 20;
/// How long a connection may be silent before it is probed, and how long the answer may take.
const PROBE_EVERY: Duration = Duration::from_secs(20);
const PROBE_WITHIN: Duration = Duration::from_secs(5);

pub(crate) struct GrpcTransport {
    client: TollgateClient<HyperClient<ServerConnector, Body>>,
    authorization: Option<MetadataValue<Ascii>>,
}

impl GrpcTransport {
    pub(super) fn new(url: ClientUrl, config: &ClientConfig) -> Result<GrpcTransport, ClientConfigError> {
        let connector = ServerConnector::new(&url, config, &["h2"])?;
        let mut builder = HyperClient::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_only(true)
            .http2_keep_alive_interval(PROBE_EVERY)
            .http2_keep_alive_timeout(PROBE_WITHIN);
        let origin = url.base.parse().map_err(|_| ClientConfigError(format!("`{}` is no URL", config.url)))?;
        let client = TollgateClient::with_origin(builder.build(connector), origin);
        let authorization = bearer(config.token.as_deref())?;
        let authorization = authorization.and_then(|value| MetadataValue::try_from(value.as_bytes()).ok());
        Ok(GrpcTransport { client: client.max_decoding_message_size(MESSAGE_MAX), authorization })
    }

    pub(super) async fn ask(&self, call: &ServerCall<'_>, deadline: Instant) -> Result<ServerAnswer, CallError> {
        self.call(call, deadline).await.map_err(|status| failure(&status))
    }

    async fn call(&self, call: &ServerCall<'_>, deadline: Instant) -> Result<ServerAnswer, Status> {
        let mut client = self.client.clone();
        Ok(match call {
            ServerCall::Check { request, .. } => {
                let answer = client.check(self.framed(message(request), deadline)).await?.into_inner();
                decided(Some(answer), String::new(), None, false)?
            }
            ServerCall::Batch(requests) => {
                let batch = v1::BatchCheckRequest { requests: requests.iter().map(message).collect() };
                let answer = client.batch_check(self.framed(batch, deadline)).await?.into_inner();
                if answer.results.len() != requests.len() {
                    return Err(Status::data_loss("a batch of another length"));
                }
                ServerAnswer::Batch(answer.results.into_iter().map(checked_result).collect::<Result<_, _>>()?)
            }
            ServerCall::Reserve { request, .. } => {
                let reserve = v1::ReserveRequest { request: Some(message(request)) };
                let answer = client.reserve(self.framed(reserve, deadline)).await?.into_inner();
                decided(answer.decision, answer.reservation, answer.ttl_ms, false)?
            }
            ServerCall::Extend { receipt, costs } => {
                let extend = v1::ExtendRequest { reservation: (*receipt).to_owned(), costs: amounts(costs) };
                let answer = client.extend(self.framed(extend, deadline)).await?.into_inner();
                decided(answer.decision, answer.reservation, answer.ttl_ms, answer.slot_lost)?
            }
            ServerCall::Settle { receipt, costs } => {
                let settle =
                    v1::SettleRequest { reservation: (*receipt).to_owned(), cost: None, costs: amounts(costs) };
                ServerAnswer::Settled(settled(client.settle(self.framed(settle, deadline)).await?.into_inner()))
            }
            ServerCall::AcquireSlot(request) => {
                let acquire = v1::AcquireSlotRequest { request: Some(message(request)) };
                let answer = client.acquire_slot(self.framed(acquire, deadline)).await?.into_inner();
                decided(answer.decision, answer.slot, answer.ttl_ms, false)?
            }
            ServerCall::Renew(receipt) => {
                let renew = v1::RenewSlotRequest { slot: (*receipt).to_owned() };
                let answer = client.renew_slot(self.framed(renew, deadline)).await?.into_inner();
                ServerAnswer::Renewed { held: answer.renewed, ttl: answer.ttl_ms.map(Span::from_millis) }
            }
            ServerCall::Release(receipt) => {
                let release = v1::ReleaseSlotRequest { slot: (*receipt).to_owned() };
                ServerAnswer::Released(client.release_slot(self.framed(release, deadline)).await?.into_inner().released)
            }
            ServerCall::Usage(_) => return Err(Status::unimplemented("usage is asked over HTTP")),
        })
    }

    /// A message with the token and what is left of the time.
    fn framed<T>(&self, message: T, deadline: Instant) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        request.set_timeout(deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
        if let Some(authorization) = &self.authorization {
            request.metadata_mut().insert("authorization", authorization.clone());
        }
        request
    }
}

fn message(request: &Request<'_>) -> v1::CheckRequest {
    let known = Attribute::ALL.into_iter().filter_map(|attribute| {
        let value = request.get(attribute)?;
        Some((attribute.name().to_owned(), value.to_owned()))
    });
    let custom = request.custom.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    v1::CheckRequest {
        namespace: request.namespace.to_owned(),
        attributes: known.chain(custom).collect(),
        cost: Some(request.cost),
        peek: request.purpose == Purpose::Peek,
        costs: amounts(request.costs),
    }
}

fn amounts<C: FromIterator<(String, u64)>>(costs: &[(&str, u64)]) -> C {
    costs.iter().map(|(meter, amount)| ((*meter).to_owned(), *amount)).collect()
}

fn decided(
    decision: Option<v1::CheckResponse>,
    receipt: String,
    ttl_ms: Option<u64>,
    slot_lost: bool,
) -> Result<ServerAnswer, Status> {
    let decision = decision.ok_or_else(|| Status::data_loss("an answer without a decision"))?;
    Ok(ServerAnswer::Decision(Box::new(DecisionAnswer {
        decision: converted(decision),
        receipt: Some(receipt).filter(|receipt| !receipt.is_empty()),
        ttl: ttl_ms.map(Span::from_millis),
        slot_lost,
        answer: None,
    })))
}

fn converted(response: v1::CheckResponse) -> RemoteDecision {
    let rules = response.rules.into_iter().map(|ruling| RuleResult {
        rule: ruling.rule,
        allowed: ruling.allowed,
        limit: ruling.limit,
        remaining: ruling.remaining,
        shadow: !ruling.enforced,
    });
    RemoteDecision {
        allowed: response.allowed,
        limit: response.limit,
        remaining: response.remaining,
        reset_at: response.reset_at,
        retry_after: response.retry_after_ms.map(Span::from_millis),
        never: response.never,
        rule: Some(response.rule).filter(|rule| !rule.is_empty()),
        mode: mode_of(&response.mode),
        generation: response.generation,
        delay: Span::from_millis(response.delay_ms),
        reason: None,
        error_code: Some(response.error_code).filter(|code| !code.is_empty()),
        violated_rule: None,
        rules: rules.collect(),
    }
}

fn checked_result(result: v1::Checked) -> Result<Result<RemoteDecision, RequestRejected>, Status> {
    match result.result {
        Some(checked::Result::Decision(decision)) => Ok(Ok(converted(decision))),
        Some(checked::Result::Fault(v1::Fault { code, field, detail })) => {
            Ok(Err(RequestRejected { code, detail: format!("{field}: {detail}") }))
        }
        None => Err(Status::data_loss("an item without a result")),
    }
}

fn settled(response: v1::SettleResponse) -> RemoteSettlement {
    RemoteSettlement {
        settled: response.settled,
        refunded: response.refunded,
        extended: response.extended,
        above: response.above.into_iter().collect(),
        uncharged: response.uncharged.into_iter().map(|one| (one.rule, one.units)).collect(),
    }
}

/// What a status means. The message of a rejected request begins with a stable code.
fn failure(status: &Status) -> CallError {
    let (code, detail) = status.message().split_once(": ").unwrap_or((status.message(), ""));
    let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match status.code() {
        Code::InvalidArgument if is_code => {
            CallError::Rejected(RequestRejected { code: code.to_owned(), detail: detail.to_owned() })
        }
        Code::FailedPrecondition => CallError::Rejected(RequestRejected {
            code: if is_code { code.to_owned() } else { "replaced_receipt".to_owned() },
            detail: status.message().to_owned(),
        }),
        // Only of messages that are too long: a refusal is a decision.
        Code::ResourceExhausted => CallError::Rejected(RequestRejected {
            code: BODY_TOO_LARGE.to_owned(),
            detail: status.message().to_owned(),
        }),
        Code::InvalidArgument | Code::Unimplemented => Outage::new(OutageKind::Rejected, status.message()).into(),
        Code::Unauthenticated | Code::PermissionDenied => {
            Outage::new(OutageKind::Unauthorized, "configure a token of this server and namespace").into()
        }
        Code::DeadlineExceeded => Outage::new(OutageKind::Timeout, "by the server's clock").into(),
        Code::DataLoss => Outage::new(OutageKind::Unreadable, status.message()).into(),
        code if could_not_connect(status) => Outage::new(OutageKind::Connect, code.description()).into(),
        code => Outage::new(OutageKind::Broken, code.description()).into(),
    }
}

fn could_not_connect(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.downcast_ref::<HyperError>().is_some_and(HyperError::is_connect) {
            return true;
        }
        cause = error.source();
    }
    false
}
