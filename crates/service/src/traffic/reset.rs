//! Resets what a client has used.

use std::time::Duration;

use tokio::time::timeout;
use tollgate_core::{Attribute, Request};
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
    /// Forgets usage. Returns the names of the rules whose buckets were forgotten.
    pub async fn reset_counters(&self, reset: &CounterReset<'_>) -> Result<Vec<String>, StoreError> {
        let CounterReset { namespace, client, rule, endpoint, tier } = *reset;
        let mut request = Request::new().in_namespace(namespace).with(Attribute::ClientKey, client);
        for (attribute, value) in [(Attribute::Endpoint, endpoint), (Attribute::Tier, tier)] {
            if let Some(value) = value {
                request = request.with(attribute, value);
            }
        }
        let is_wanted = |own: &tollgate_ruleset::Rule| rule.is_none_or(|rule| own.name == rule);
        timeout(RESET_TIMEOUT, self.engine.forget_of(&request, is_wanted)).await.unwrap_or_else(|_| {
            let detail = "no answer in time".to_owned();
            Err(StoreError { kind: StoreErrorKind::Indeterminate, detail })
        })
    }
}
