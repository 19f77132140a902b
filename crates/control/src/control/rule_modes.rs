//! Questions about the switches of single rules.

use super::Control;
use crate::Result;
use crate::db::Sql;
use crate::record::{RuleModeRecord, StoredRecord};

impl Control {
    /// The switch of a rule, if it has one.
    pub async fn rule_mode(&self, namespace: &str, rule_id: &str) -> Result<RuleModeRecord> {
        self.find(namespace, rule_id).await
    }

    /// All switches of these namespaces; of all, if none is named. There are few: a switch is for days, not for good.
    pub async fn rule_modes(&self, namespaces: Option<&[String]>) -> Result<Vec<RuleModeRecord>> {
        let mut sql = Sql::new(RuleModeRecord::TABLE.select, vec![]);
        sql.and(" WHERE TRUE", []);
        sql.and_in("namespace", namespaces);
        RuleModeRecord::TABLE.in_order(&mut sql);
        let rows = self.read(async |tx| tx.all(sql).await).await?;
        Ok(rows.iter().filter_map(|row| RuleModeRecord::read(row).ok()).collect())
    }
}
