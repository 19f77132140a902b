//! Queries of overrides.

use super::Control;
use crate::db::Sql;
use crate::record::{OverrideRecord, StoredRecord};
use crate::{Instant, Listing, Page, Result};

/// Selects overrides; `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideFilter {
    /// In these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// For this client.
    pub client_key: Option<String>,
    /// Of this rule.
    pub rule_id: Option<String>,
    /// In force at this instant.
    pub holds_at: Option<Instant>,
}

impl Control {
    /// Overrides, sorted by namespace and id.
    pub async fn overrides(&self, filter: &OverrideFilter, page: &Page) -> Result<Listing<OverrideRecord>> {
        let mut sql = Sql::new(OverrideRecord::TABLE.select, vec![]);
        sql.and(" WHERE TRUE", []);
        sql.and_in("namespace", filter.namespaces.as_deref());
        sql.and_if(" AND client_key = ?", filter.client_key.as_ref());
        sql.and_if(" AND rule_id = ?", filter.rule_id.as_ref());
        sql.and_if(" AND (valid_from IS NULL OR valid_from <= ?)", filter.holds_at);
        sql.and_if(" AND valid_until > ?", filter.holds_at);
        self.list(sql, page).await
    }

    /// One override.
    pub async fn overriding(&self, namespace: &str, override_id: &str) -> Result<OverrideRecord> {
        self.find(namespace, override_id).await
    }
}
