//! Queries of rules.

use super::Control;
use crate::db::{Connections, Sql};
use crate::record::{RuleRecord, RuleRow, StoredRecord};
use crate::{Listing, Page, Result};

/// Selects rules; `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFilter {
    /// In these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// With exactly this endpoint pattern.
    pub endpoint: Option<String>,
    /// With this tier, alone or among others.
    pub tier: Option<String>,
    /// For this client.
    pub client_key: Option<String>,
    /// With this name.
    pub name: Option<String>,
    /// Enabled or disabled.
    pub enabled: Option<bool>,
    /// With this text in the id, the name or the endpoint, in any case.
    pub search: Option<String>,
}

impl Control {
    /// Rules, sorted by namespace and id.
    pub async fn rules(&self, filter: &RuleFilter, page: &Page) -> Result<Listing<RuleRecord>> {
        let mut sql = Sql::new(RuleRow::TABLE.select, vec![]);
        sql.and(" WHERE TRUE", []);
        sql.and_in("namespace", filter.namespaces.as_deref());
        let [endpoint, tier, client_key, search] = match self.pool().connections {
            Connections::Sqlite { .. } => SQLITE,
            Connections::Postgres(_) => POSTGRES,
        };
        if let Some(value) = &filter.endpoint {
            sql.and(endpoint, [value.into(), value.into()]);
        }
        if let Some(value) = &filter.client_key {
            sql.and(client_key, [value.into(), value.into()]);
        }
        if let Some(value) = &filter.search {
            sql.and(search, [value.into(), value.into(), value.into()]);
        }
        sql.and_if(tier, filter.tier.as_ref());
        sql.and_if(" AND name = ?", filter.name.as_ref());
        sql.and_if(" AND enabled = ?", filter.enabled);
        let rows = self.list::<RuleRow>(sql, page).await?;
        Ok(Listing { entries: rows.entries.iter().map(RuleRow::record).collect(), next: rows.next })
    }

    /// One rule.
    pub async fn rule(&self, namespace: &str, rule_id: &str) -> Result<RuleRecord> {
        self.find::<RuleRow>(namespace, rule_id).await.map(|row| row.record())
    }
}

/// Conditions on endpoint, tier and client, and the search: in their own column, or alone or among others in `match`. Text in SQLite
/// that is not JSON matches nothing.
const SQLITE: [&str; 4] = [
    " AND (endpoint = ? OR CASE WHEN json_valid(\"match\") THEN \
     EXISTS (SELECT 1 FROM json_each(\"match\", '$.endpoint') WHERE value = ?) END)",
    " AND CASE WHEN json_valid(\"match\") THEN EXISTS (SELECT 1 FROM json_each(\"match\", '$.tier') WHERE value = ?) END",
    " AND (client_key = ? OR CASE WHEN json_valid(\"match\") THEN \
     EXISTS (SELECT 1 FROM json_each(\"match\", '$.client_key') WHERE value = ?) END)",
    " AND (instr(lower(rule_id), lower(?)) > 0 OR instr(lower(name), lower(?)) > 0 \
     OR instr(lower(coalesce(endpoint, '')), lower(?)) > 0)",
];
const POSTGRES: [&str; 4] = [
    " AND (endpoint = ? OR \"match\" -> 'endpoint' @> to_jsonb(CAST(? AS TEXT)))",
    " AND \"match\" -> 'tier' @> to_jsonb(CAST(? AS TEXT))",
    " AND (client_key = ? OR \"match\" -> 'client_key' @> to_jsonb(CAST(? AS TEXT)))",
    " AND (strpos(lower(rule_id), lower(?)) > 0 OR strpos(lower(name), lower(?)) > 0 \
     OR strpos(lower(coalesce(endpoint, '')), lower(?)) > 0)",
];
