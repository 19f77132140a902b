//! Queries of the modes set for single rules.

use super::Control;
use crate::Result;
use crate::db::Sql;
use crate::record::{RuleModeRecord, StoredRecord};

impl Control {
    /// The mode set for a rule.
    pub async fn rule_mode(&self, namespace: &str, rule_id: &str) -> Result<RuleModeRecord> {
        self.find(namespace, rule_id).await
    }

    /// The modes set in these namespaces; `None` for all. They are few and not paged: a mode is set for days.
    pub async fn rule_modes(&self, namespaces: Option<&[String]>) -> Result<Vec<RuleModeRecord>> {
        let mut sql = Sql::new(RuleModeRecord::TABLE.select, vec![]);
        sql.and(" WHERE TRUE", []);
        sql.and_in("namespace", namespaces);
        RuleModeRecord::TABLE.in_order(&mut sql);
        let rows = self.read(async |tx| tx.all(sql).await).await?;
        Ok(rows.iter().filter_map(|row| RuleModeRecord::read(row).ok()).collect())
    }
}
