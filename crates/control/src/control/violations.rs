//! Who was refused, by key and minute. Written behind, in batches; not audited.

use super::{Control, not_yet};
use crate::{Instant, Listing, Page, Result};

/// Refusals of one key by one rule in one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Whose.
    pub namespace: String,
    /// Who was refused.
    pub client_key: String,
    /// What was asked for: the path that was refused first in that minute.
    pub endpoint: String,
    /// Which rule refused.
    pub rule_id: String,
    /// The minute's first instant.
    pub minute: Instant,
    /// How often.
    pub request_count: i64,
    /// The limit that was in force.
    pub limit_value: i64,
}

/// A violation as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolationRecord {
    /// Its id.
    pub violation_id: i64,
    /// What happened.
    pub violation: Violation,
}

/// Which violations. What is `None` is not asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViolationFilter {
    /// Of these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Of this client.
    pub client_key: Option<String>,
    /// Of this endpoint.
    pub endpoint: Option<String>,
    /// Of this rule.
    pub rule_id: Option<String>,
    /// Not before.
    pub from: Option<Instant>,
    /// Before.
    pub to: Option<Instant>,
}

/// What offenders are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Clients.
    Client,
    /// Rules.
    Rule,
    /// Endpoints.
    Endpoint,
}

/// Somebody or something, and how often it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offender {
    /// Whose.
    pub namespace: String,
    /// The client, the rule or the endpoint.
    pub what: String,
    /// How often, in all.
    pub request_count: i64,
    /// The last minute it happened in.
    pub last: Instant,
}

impl Control {
    /// Adds counts to what is there for the same key, rule and minute.
    pub async fn record_violations(&self, _violations: &[Violation]) -> Result<()> {
        not_yet()
    }

    /// Violations, the latest first.
    pub async fn violations(&self, _filter: &ViolationFilter, _page: &Page) -> Result<Listing<ViolationRecord>> {
        not_yet()
    }

    /// Those with the most refusals, the worst first.
    pub async fn offenders(&self, _by: By, _filter: &ViolationFilter, _limit: u32) -> Result<Vec<Offender>> {
        not_yet()
    }

    /// Deletes what is older, at most so many rows at once; answers how many it were.
    pub async fn prune_violations(&self, _before: Instant, _most: u32) -> Result<u64> {
        not_yet()
    }
}
