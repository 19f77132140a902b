//! Queries of plans.

use super::Control;
use crate::Result;
use crate::db::Sql;
use crate::record::{PlanRecord, StoredRecord};

impl Control {
    /// One plan.
    pub async fn plan(&self, namespace: &str, plan_id: &str) -> Result<PlanRecord> {
        self.find(namespace, plan_id).await
    }

    /// The plans of these namespaces, sorted by namespace and name; `None` for all. They are few and not paged. Rows that
    /// cannot be read are left out.
    pub async fn plans(&self, namespaces: Option<&[String]>) -> Result<Vec<PlanRecord>> {
        let mut sql = Sql::new(PlanRecord::TABLE.select, vec![]);
        sql.and(" WHERE TRUE", []);
        sql.and_in("namespace", namespaces);
        PlanRecord::TABLE.in_order(&mut sql);
        let rows = self.read(async |tx| tx.all(sql).await).await?;
        Ok(rows.iter().filter_map(|row| PlanRecord::read(row).ok()).collect())
    }
}
