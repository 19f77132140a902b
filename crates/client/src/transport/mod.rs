//! How a call reaches the server: HTTP or gRPC, one answer for both.

mod connector;
mod grpc;
mod http;
mod json;
mod length;

use ::http::{HeaderName, HeaderValue};
use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;
use tollgate_core::{Purpose, Request, Span};

use crate::config::{ClientConfig, ClientConfigError};
use crate::failure::{CallError, RequestRejected};
use crate::reservation::RemoteSettlement;
use crate::{Outage, OutageKind, RemoteDecision};

/// The connections to a server, and the protocol on them.
pub(crate) enum Transport {
    Http(http::HttpTransport),
    Grpc(grpc::GrpcTransport),
}

/// A question for the server.
pub(crate) enum ServerCall<'a> {
    /// `by_status`: as an HTTP answer that can be passed on.
    Check {
        request: &'a Request<'a>,
        by_status: bool,
    },
    Batch(&'a [Request<'a>]),
    Reserve {
        request: &'a Request<'a>,
        by_status: bool,
    },
    Extend {
        receipt: &'a str,
        costs: &'a [(&'a str, u64)],
    },
    Settle {
        receipt: &'a str,
        costs: &'a [(&'a str, u64)],
    },
    AcquireSlot(&'a Request<'a>),
    Renew(&'a str),
    Release(&'a str),
    Usage(&'a Request<'a>),
}

/// What the server answered.
pub(crate) enum ServerAnswer {
    Decision(Box<DecisionAnswer>),
    Batch(Vec<Result<RemoteDecision, RequestRejected>>),
    Settled(RemoteSettlement),
    Renewed { held: bool, ttl: Option<Span> },
    Released(bool),
    Usage(Value),
}

/// A decision, and what came with it.
#[derive(Default)]
pub(crate) struct DecisionAnswer {
    pub(crate) decision: RemoteDecision,
    pub(crate) receipt: Option<String>,
    pub(crate) ttl: Option<Span>,
    pub(crate) slot_lost: bool,
    /// As HTTP, where that was asked for.
    pub(crate) answer: Option<HttpDecision>,
}

/// A decision as an HTTP answer for the caller of an application: only what concerns that caller.
#[derive(Clone, Debug, Default)]
pub struct HttpDecision {
    /// 200 if allowed; 429, 503 or the status that the server chose if refused.
    pub status: u16,
    /// The rate limit fields and `Retry-After`.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// The media type of the body, if refused.
    pub content_type: Option<HeaderValue>,
    /// The body, if refused.
    pub body: Bytes,
}

impl Transport {
    pub(crate) fn new(config: &ClientConfig) -> Result<Transport, ClientConfigError> {
        let url = config.check()?;
        Ok(match url.grpc {
            true => Transport::Grpc(grpc::GrpcTransport::new(url, config)?),
            false => Transport::Http(http::HttpTransport::new(url, config)?),
        })
    }

    /// Asks, by the deadline at the latest. Sends a call again only if no connection could be made.
    pub(crate) async fn ask(&self, call: &ServerCall<'_>, deadline: Instant) -> Result<ServerAnswer, CallError> {
        call.check()?;
        match self.attempt(call, deadline).await {
            Err(CallError::Outage(Outage { kind: OutageKind::Connect, .. })) if Instant::now() < deadline => {
                self.attempt(call, deadline).await
            }
            answer => answer,
        }
    }

    async fn attempt(&self, call: &ServerCall<'_>, deadline: Instant) -> Result<ServerAnswer, CallError> {
        let asked = async {
            match self {
                Transport::Http(http) => http.ask(call, deadline).await,
                Transport::Grpc(grpc) => grpc.ask(call, deadline).await,
            }
        };
        // Boxed: the future of a network call is large, and decisions from units at hand should not contain it.
        match tokio::time::timeout_at(deadline, Box::pin(asked)).await {
            Ok(answer) => answer,
            Err(_) => Err(Outage::new(OutageKind::Timeout, "its connection is closed").into()),
        }
    }
}

impl ServerCall<'_> {
    /// Rejects what exists only for programs that embed the engine, and what is longer than a server reads.
    fn check(&self) -> Result<(), CallError> {
        let requests = match self {
            ServerCall::Check { request, .. } | ServerCall::Reserve { request, .. } => std::slice::from_ref(*request),
            ServerCall::AcquireSlot(request) | ServerCall::Usage(request) => std::slice::from_ref(*request),
            ServerCall::Batch(requests) => requests,
            _ => &[],
        };
        let travels = |request: &Request<'_>| {
            matches!(request.purpose, Purpose::Consume | Purpose::Peek) && request.limit.is_none()
        };
        if !requests.iter().all(travels) {
            return Err(CallError::Rejected(RequestRejected {
                code: "unsupported".to_owned(),
                detail: "reports, mentions and limits of the caller exist only in the embedded engine".to_owned(),
            }));
        }
        match self {
            // The server says it of each item.
            ServerCall::Batch(_) => Ok(()),
            _ => requests.iter().try_for_each(length::check).map_err(CallError::Rejected),
        }
    }
}
