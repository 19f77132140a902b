//! Questions about rules.

use super::{Control, not_yet};
use crate::record::RuleRecord;
use crate::{Listing, Page, Result};

/// Which rules. What is `None` is not asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFilter {
    /// Of these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// With this endpoint pattern, spelled alike.
    pub endpoint: Option<String>,
    /// That ask for this tier, alone or among others.
    pub tier: Option<String>,
    /// For this client.
    pub client_key: Option<String>,
    /// With this name.
    pub name: Option<String>,
    /// On or off.
    pub enabled: Option<bool>,
}

impl Control {
    /// Rules in the order of namespace and id.
    pub async fn rules(&self, _filter: &RuleFilter, _page: &Page) -> Result<Listing<RuleRecord>> {
        not_yet()
    }

    /// One rule.
    pub async fn rule(&self, _namespace: &str, _rule_id: &str) -> Result<RuleRecord> {
        not_yet()
    }
}
