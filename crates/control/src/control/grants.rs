//! Queries of grants.

use super::{Control, Snapshot};
use crate::Quarantined;
use crate::db::Sql;
use crate::record::{GrantRecord, StoredRecord, document};
use crate::{Instant, Listing, Page, Result};

/// Selects grants; `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantFilter {
    /// In these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// To this client.
    pub client_key: Option<String>,
    /// Of this rule.
    pub rule_id: Option<String>,
    /// Started and not ended at this instant. Whether its period is over depends on the client's calendar.
    pub holds_at: Option<Instant>,
}

impl Control {
    /// Grants, sorted by namespace and id.
    pub async fn grants(&self, filter: &GrantFilter, page: &Page) -> Result<Listing<GrantRecord>> {
        let mut sql = Sql::new(GrantRecord::TABLE.select, vec![]);
        sql.and(" WHERE TRUE", []);
        sql.and_in("namespace", filter.namespaces.as_deref());
        sql.and_if(" AND client_key = ?", filter.client_key.as_ref());
        sql.and_if(" AND rule_id = ?", filter.rule_id.as_ref());
        sql.and_if(" AND valid_from <= ?", filter.holds_at);
        sql.and_if(" AND (valid_until IS NULL OR valid_until > ?)", filter.holds_at);
        self.list(sql, page).await
    }

    /// One grant.
    pub async fn grant(&self, namespace: &str, grant_id: &str) -> Result<GrantRecord> {
        self.find(namespace, grant_id).await
    }
}

impl Snapshot {
    /// All grants, including those that have ended.
    pub async fn grants(&mut self, mut take: impl FnMut(Result<GrantRecord, Quarantined>)) -> Result<()> {
        let validate = |record: GrantRecord| document::grant(&record.draft).map(|_| record);
        self.each(None, validate, &mut take).await
    }

    /// The grants to one client. Invalid ones are left out.
    pub async fn grants_to(&mut self, namespace: &str, client_key: &str) -> Result<Vec<GrantRecord>> {
        let mut sql = Sql::new(GrantRecord::TABLE.select, vec![]);
        sql.and(" WHERE client_key = ? AND namespace = ? ORDER BY grant_id", [client_key.into(), namespace.into()]);
        let rows = self.tx.all(sql).await?;
        let records = rows.iter().filter_map(|row| GrantRecord::read(row).ok());
        Ok(records.filter(|record| document::grant(&record.draft).is_ok()).collect())
    }
}
