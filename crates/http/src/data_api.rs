//! The handler of the data listener: forward-auth below its prefix, the check API everywhere else.

use std::sync::{Arc, OnceLock};

use tollgate_config::AuthSettings;
use tollgate_net::{Drain, NetLimits, Peer};
use tollgate_service::{Reply, Service};
use tollgate_web::{Handler, Head, HttpError, HttpMetrics, PendingResponse};

use crate::api::{CheckApi, PreparedCall, UsageQuery};
use crate::forward_auth::{AuthCheck, ForwardAuth, PREFIX, below_prefix, write_disabled, write_unreadable_head};

/// Dependencies and settings of the data API.
pub struct DataApiConfig {
    /// Decides requests.
    pub service: Arc<Service>,
    /// Caps on bodies.
    pub limits: NetLimits,
    /// Health checks fail once a drain is announced.
    pub drain: Drain,
    /// Counts responses.
    pub metrics: Arc<HttpMetrics>,
    /// The URL of the admin API, for callers that use one of its paths here; empty until its listener is bound.
    pub admin_url: Arc<OnceLock<String>>,
    /// Settings of forward-auth, which may be off.
    pub auth: AuthSettings,
}

/// The data API of one listener.
pub struct DataApi {
    api: CheckApi,
    auth: Option<ForwardAuth>,
    metrics: Arc<HttpMetrics>,
}

/// State from the head, kept while the body is read.
#[derive(Debug)]
pub enum PreparedData {
    /// A call of the check API.
    Call(PreparedCall),
    /// A question for usage.
    Usage(Box<UsageQuery>),
    /// A check sent by a proxy.
    Auth(Box<AuthCheck>),
}

impl DataApi {
    /// The data API of a listener.
    pub fn new(config: DataApiConfig) -> DataApi {
        let auth = ForwardAuth::new(config.service.clone(), &config.auth, config.limits.max_body);
        let DataApiConfig { service, limits, drain, metrics, admin_url, .. } = config;
        DataApi { api: CheckApi { service, limits, drain, admin_url }, auth, metrics }
    }
}

impl Handler for DataApi {
    type Prepared = PreparedData;

    fn prepare(&self, peer: &Peer, head: &Head<'_>, reply: &mut Reply) -> Option<(PreparedData, usize)> {
        let Some(below) = below_prefix(head.path) else {
            let (call, max_body) = self.api.prepare(head, reply)?;
            let usage = self.api.usage_query(call, head).map(|query| PreparedData::Usage(Box::new(query)));
            return Some((usage.unwrap_or(PreparedData::Call(call)), max_body));
        };
        match &self.auth {
            Some(auth) => {
                let prepared = auth.prepare(peer, head, below, reply);
                prepared.map(|(check, max_body)| (PreparedData::Auth(Box::new(check)), max_body))
            }
            None => {
                write_disabled(reply);
                None
            }
        }
    }

    async fn handle(&self, prepared: &PreparedData, body: &[u8], reply: &mut Reply) {
        if let Some(pending) = self.begin(prepared, body, reply) {
            pending.await;
        }
    }

    fn begin<'a>(
        &'a self,
        prepared: &'a PreparedData,
        body: &'a [u8],
        reply: &'a mut Reply,
    ) -> Option<PendingResponse<'a>> {
        match prepared {
            PreparedData::Call(call) => self.api.begin(call, body, reply),
            PreparedData::Usage(query) => Some(Box::pin(self.api.usage(query, reply))),
            PreparedData::Auth(check) => self.auth.as_ref()?.begin(check, reply),
        }
    }

    /// Allowed for forward-auth: a proxy passes on its client's header fields, and forward-auth checks the fields that
    /// it reads by itself.
    fn may_repeat(&self, head: &Head<'_>) -> bool {
        self.auth.is_some() && below_prefix(head.path).is_some()
    }

    fn reject(&self, error: HttpError, reply: &mut Reply) {
        // A proxy that understands only 403 takes any other status for a failure of the limiter; clients could provoke
        // it.
        let only_403 = self.auth.as_ref().is_some_and(ForwardAuth::denies_with_403);
        match error {
            HttpError::Malformed(_) | HttpError::TargetTooLong | HttpError::HeadTooLarge | HttpError::Expectation
                if only_403 =>
            {
                write_unreadable_head(reply);
            }
            error => self.api.reject(error, reply),
        }
    }

    fn completed(&self, prepared: Option<&PreparedData>, status: u16) {
        let path = match prepared {
            None => "",
            Some(PreparedData::Call(call)) => call.path(),
            Some(PreparedData::Usage(query)) => query.call.path(),
            Some(PreparedData::Auth(_)) => PREFIX,
        };
        self.metrics.responded(path, status);
    }
}
