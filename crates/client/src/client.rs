//! The client: every call, and what decides when there is no answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tollgate_core::{Clock, Request, Span};

use crate::config::{ClientConfig, ClientConfigError, OnError};
use crate::failure::{CallError, Outage, OutageKind, RequestRejected};
use crate::guard::ServerBreaker;
use crate::local::LocalLimiter;
use crate::outage::OutageReporter;
use crate::reservation::{RemoteReservation, RemoteSettlement};
use crate::transport::{DecisionAnswer, HttpDecision, ServerAnswer, ServerCall, Transport};
use crate::waiting_line::WaitingLines;
use crate::{RemoteDecision, decision};

/// A client of one server. Clones share its connections, its breaker and its fallback limiter.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<ClientShared>);

pub(crate) struct ClientShared {
    transport: Transport,
    breaker: ServerBreaker,
    local: Option<LocalLimiter>,
    policy: OnError,
    timeout: Duration,
    reporter: OutageReporter,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) lines: WaitingLines,
}

impl Client {
    /// A client with these settings. Connects when it is first used.
    pub fn new(config: ClientConfig) -> Result<Client, ClientConfigError> {
        let transport = Transport::new(&config)?;
        let local = config.fallback.map(|limit| LocalLimiter::new(limit, config.clock.clone()));
        Ok(Client(Arc::new(ClientShared {
            transport,
            breaker: ServerBreaker::new(config.clock.clone()),
            local,
            policy: config.policy(),
            timeout: Duration::from(config.timeout),
            reporter: OutageReporter::new(config.hook),
            clock: config.clock,
            lines: WaitingLines::default(),
        })))
    }

    /// A client of this server with the default settings.
    pub fn connect(url: impl Into<String>) -> Result<Client, ClientConfigError> {
        Client::new(ClientConfig::new(url))
    }

    /// A client of the server that `TOLLGATE_URL` and `TOLLGATE_DATA_TOKEN` name.
    pub fn from_env() -> Result<Client, ClientConfigError> {
        Client::new(ClientConfig::from_env())
    }

    /// May this request pass? Fails only if its path or method is at fault: answer 400 then, and do not let it pass.
    pub async fn check(&self, request: &Request<'_>) -> Result<RemoteDecision, RequestRejected> {
        let answer = self.decide(request, ServerCall::Check { request, by_status: false }).await?;
        Ok(answer.decision)
    }

    /// The same, with the HTTP answer for the caller of an application as the server writes it. There is none if the fail
    /// policy decided, and over gRPC.
    pub async fn check_answer(
        &self,
        request: &Request<'_>,
    ) -> Result<(RemoteDecision, Option<HttpDecision>), RequestRejected> {
        let answer = self.decide(request, ServerCall::Check { request, by_status: true }).await?;
        Ok((answer.decision, answer.answer))
    }

    /// May each of these pass? Each is decided by itself, in order, in one call.
    pub async fn check_batch(&self, requests: &[Request<'_>]) -> Vec<Result<RemoteDecision, RequestRejected>> {
        if requests.is_empty() {
            return Vec::new();
        }
        match self.ask(&ServerCall::Batch(requests)).await {
            Ok(ServerAnswer::Batch(results)) => results,
            Ok(_) => requests.iter().map(|request| self.decide_without(&unexpected(), request)).map(Ok).collect(),
            Err(CallError::Outage(outage)) => {
                requests.iter().map(|request| Ok(self.decide_without(&outage, request))).collect()
            }
            Err(CallError::Rejected(rejected)) => {
                requests.iter().map(|request| self.decide_rejected(rejected.clone(), request)).collect()
            }
        }
    }

    /// Charges estimates now; takes a slot of every concurrency rule that applies. A refusal has no reservation, and
    /// neither has what the fail policy allowed: there is nothing to settle then.
    pub async fn reserve(
        &self,
        request: &Request<'_>,
    ) -> Result<(RemoteDecision, Option<RemoteReservation>), RequestRejected> {
        let answer = self.decide(request, ServerCall::Reserve { request, by_status: false }).await?;
        Ok((answer.decision, RemoteReservation::of(answer.receipt, answer.ttl)))
    }

    /// [`reserve`](Client::reserve), with the HTTP answer as in [`check_answer`](Client::check_answer).
    pub async fn reserve_answer(
        &self,
        request: &Request<'_>,
    ) -> Result<(RemoteDecision, Option<HttpDecision>, Option<RemoteReservation>), RequestRejected> {
        let answer = self.decide(request, ServerCall::Reserve { request, by_status: true }).await?;
        Ok((answer.decision, answer.answer, RemoteReservation::of(answer.receipt, answer.ttl)))
    }

    /// Charges further amounts of a reservation that goes on, all or nothing, and renews its slots. If it is allowed, the
    /// reservation is replaced in place; otherwise it is as it was.
    pub async fn extend(
        &self,
        reservation: &mut RemoteReservation,
        costs: &[(&str, u64)],
    ) -> Result<RemoteDecision, CallError> {
        match self.ask(&ServerCall::Extend { receipt: &reservation.receipt, costs }).await? {
            ServerAnswer::Decision(answer) => {
                reservation.is_lost |= answer.slot_lost;
                if let Some(receipt) = answer.receipt.filter(|_| answer.decision.allowed) {
                    reservation.receipt = receipt;
                }
                Ok(answer.decision)
            }
            _ => Err(unexpected().into()),
        }
    }

    /// The real amounts: refunds what was estimated too high, charges what was estimated too low, releases the slots.
    /// Meters without an amount keep their estimate. Can be repeated after an [`Outage`]: it happens once.
    pub async fn settle(
        &self,
        reservation: &RemoteReservation,
        costs: &[(&str, u64)],
    ) -> Result<RemoteSettlement, CallError> {
        match self.ask(&ServerCall::Settle { receipt: &reservation.receipt, costs }).await? {
            ServerAnswer::Settled(settled) => Ok(settled),
            _ => Err(unexpected().into()),
        }
    }

    /// A sign of life of a reservation that holds slots; false if they are lost.
    pub async fn renew(&self, reservation: &RemoteReservation) -> Result<bool, CallError> {
        self.renew_receipt(&reservation.receipt).await.map(|(held, _)| held)
    }

    /// What a client has used of every rule, as the server's JSON. Charges nothing.
    pub async fn usage(&self, client: &Request<'_>) -> Result<Value, CallError> {
        match self.ask(&ServerCall::Usage(client)).await? {
            ServerAnswer::Usage(usage) => Ok(usage),
            _ => Err(unexpected().into()),
        }
    }

    pub(crate) async fn renew_receipt(&self, receipt: &str) -> Result<(bool, Option<Span>), CallError> {
        match self.ask(&ServerCall::Renew(receipt)).await? {
            ServerAnswer::Renewed { held, ttl } => Ok((held, ttl)),
            _ => Err(unexpected().into()),
        }
    }

    pub(crate) async fn release_receipt(&self, receipt: &str) -> Result<bool, CallError> {
        match self.ask(&ServerCall::Release(receipt)).await? {
            ServerAnswer::Released(released) => Ok(released),
            _ => Err(unexpected().into()),
        }
    }

    /// Asks for a decision; without an answer the fail policy decides.
    pub(crate) async fn decide(
        &self,
        request: &Request<'_>,
        call: ServerCall<'_>,
    ) -> Result<Box<DecisionAnswer>, RequestRejected> {
        let decision = match self.ask(&call).await {
            Ok(ServerAnswer::Decision(answer)) => return Ok(answer),
            Ok(_) => self.decide_without(&unexpected(), request),
            Err(CallError::Rejected(rejected)) => self.decide_rejected(rejected, request)?,
            Err(CallError::Outage(outage)) => self.decide_without(&outage, request),
        };
        Ok(Box::new(DecisionAnswer { decision, ..DecisionAnswer::default() }))
    }

    /// One call, through the breaker.
    pub(crate) async fn ask(&self, call: &ServerCall<'_>) -> Result<ServerAnswer, CallError> {
        let Some(pass) = self.0.breaker.try_pass() else {
            return Err(Outage::new(OutageKind::CircuitOpen, "nothing was sent").into());
        };
        let answer = self.0.transport.ask(call, Instant::now() + self.0.timeout).await;
        match &answer {
            Err(CallError::Outage(outage)) if outage.kind.blames_the_server() => pass.failed(),
            _ => pass.succeeded(),
        }
        answer
    }

    /// A request that the server rejected: the endpoint comes from the application's caller, the rest from the application.
    fn decide_rejected(
        &self,
        rejected: RequestRejected,
        request: &Request<'_>,
    ) -> Result<RemoteDecision, RequestRejected> {
        match rejected.is_endpoint() {
            true => Err(rejected),
            false => Ok(self.decide_without(&Outage::new(OutageKind::Rejected, &rejected), request)),
        }
    }

    /// The decision of the fail policy.
    pub(crate) fn decide_without(&self, outage: &Outage, request: &Request<'_>) -> RemoteDecision {
        self.0.reporter.report(outage, self.0.clock.now());
        match (self.0.policy, &self.0.local) {
            (OnError::Local, Some(local)) => local.decide(request),
            (OnError::Closed | OnError::Local, _) => decision::RemoteDecision {
                retry_after: Some(Span::SECOND),
                error_code: Some("limiter_unavailable".to_owned()),
                ..RemoteDecision::made_here(false, "closed")
            },
            (OnError::Open, _) => RemoteDecision::made_here(true, "open"),
        }
    }

    /// The limit of the limiter in this process, if there is one.
    pub fn fallback_limit(&self) -> Option<&tollgate_core::Limit> {
        self.0.local.as_ref().map(LocalLimiter::limit)
    }

    /// The longest time that one call takes.
    pub fn timeout(&self) -> Span {
        Span::from(self.0.timeout)
    }
}

fn unexpected() -> Outage {
    Outage::new(OutageKind::Unreadable, "an answer to another question")
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("policy", &self.0.policy)
            .field("timeout", &self.0.timeout)
            .finish_non_exhaustive()
    }
}
