//! Resets what a client has used.

use std::time::Duration;

use tokio::time::timeout;
use tollgate_core::{Attribute, Request};
use tollgate_engine::RequestCounters;
use tollgate_store::{StoreError, StoreErrorKind};

use crate::Service;

/// How long the store may take.
const RESET_TIMEOUT: Duration = Duration::from_secs(2);

/// Whose usage is forgotten, and which.
#[derive(Clone, Copy, Debug)]
pub struct CounterReset<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The key of the client.
    pub client: &'a str,
    /// The rule; `None` for all that apply.
    pub rule: Option<&'a str>,
    /// What rules ask for besides the client.
    pub endpoint: Option<&'a str>,
    /// Likewise.
    pub tier: Option<&'a str>,
}

impl Service {
    /// The usage that would be forgotten, with the names of its rules; none if no rule applies.
    pub fn counters_of(&self, reset: &CounterReset<'_>) -> RequestCounters {
        let CounterReset { namespace, client, rule, endpoint, tier } = *reset;
        let mut request = Request::new().in_namespace(namespace).with(Attribute::ClientKey, client);
        for (attribute, value) in [(Attribute::Endpoint, endpoint), (Attribute::Tier, tier)] {
            if let Some(value) = value {
                request = request.with(attribute, value);
            }
        }
        self.engine.counters_of(&request, |own| rule.is_none_or(|rule| own.name == rule))
    }

    /// Forgets usage.
    pub async fn reset_counters(&self, counters: &RequestCounters) -> Result<(), StoreError> {
        timeout(RESET_TIMEOUT, self.engine.forget_counters(counters)).await.unwrap_or_else(|_| {
            let detail = "no answer in time".to_owned();
            Err(StoreError { kind: StoreErrorKind::Indeterminate, detail })
        })
    }
}
