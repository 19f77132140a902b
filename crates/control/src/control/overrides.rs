//! Questions about overrides.

use super::{Control, not_yet};
use crate::record::OverrideRecord;
use crate::{Instant, Listing, Page, Result};

/// Which overrides. What is `None` is not asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideFilter {
    /// Of these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// For this client.
    pub client_key: Option<String>,
    /// Of this rule.
    pub rule_id: Option<String>,
    /// That hold at this instant.
    pub holds_at: Option<Instant>,
}

impl Control {
    /// Overrides in the order of namespace and id.
    pub async fn overrides(&self, _filter: &OverrideFilter, _page: &Page) -> Result<Listing<OverrideRecord>> {
        not_yet()
    }

    /// One override.
    pub async fn overriding(&self, _namespace: &str, _override_id: &str) -> Result<OverrideRecord> {
        not_yet()
    }
}
