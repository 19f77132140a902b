//! Questions about clients, and about how namespaces read requests.

use super::{Control, not_yet};
use crate::record::{ClientRecord, NamespaceDraft};
use crate::{Listing, Page, Result};

/// Which clients. What is `None` is not asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFilter {
    /// Of these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Of this tier.
    pub tier: Option<String>,
    /// Of this organisation.
    pub organisation: Option<String>,
    /// Whose key begins so; taken literally.
    pub prefix: Option<String>,
}

impl Control {
    /// Clients in the order of namespace and key.
    pub async fn clients(&self, _filter: &ClientFilter, _page: &Page) -> Result<Listing<ClientRecord>> {
        not_yet()
    }

    /// One client.
    pub async fn client(&self, _namespace: &str, _client_key: &str) -> Result<ClientRecord> {
        not_yet()
    }

    /// Every namespace that has rules, overrides, clients or settings, with its settings.
    pub async fn namespaces(&self) -> Result<Vec<(String, NamespaceDraft)>> {
        not_yet()
    }
}
