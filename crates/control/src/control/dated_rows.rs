//! Rows that are kept for a while: deleted by age, and so that there are not too many.

use super::Control;
use crate::db::{Sql, Tx, sql};
use crate::{Instant, Result};

/// Rows that are kept for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatedRows {
    /// Violations, by their minute.
    Violations,
    /// Usage of quotas, by the end of its period.
    Usage,
    /// Deliveries of webhooks, by the event.
    Deliveries,
    /// Penalties, by their end.
    Penalties,
}

/// How rows are found.
struct DatedTable {
    name: &'static str,
    key: &'static str,
    date: &'static str,
    /// The order in which the oldest rows come first, by an index.
    order: &'static str,
}

impl DatedRows {
    fn table(self) -> DatedTable {
        match self {
            DatedRows::Violations => DatedTable {
                name: "rate_limit_violations",
                key: "violation_id",
                date: "violated_at",
                order: "violated_at, violation_id",
            },
            DatedRows::Usage => {
                DatedTable { name: "quota_usage", key: "usage_id", date: "period_end", order: "period_end, usage_id" }
            }
            DatedRows::Deliveries => {
                DatedTable { name: "webhook_deliveries", key: "delivery_id", date: "created_at", order: "delivery_id" }
            }
            DatedRows::Penalties => {
                DatedTable { name: "rate_limit_penalties", key: "bucket, node", date: "ends_at", order: "ends_at" }
            }
        }
    }
}

impl Control {
    /// The date before which rows must be deleted to keep at most `most`; `None` if there are not more. Rows of one
    /// date go together.
    pub async fn surplus(&self, rows: DatedRows, most: u32) -> Result<Option<Instant>> {
        let DatedTable { name, date, .. } = rows.table();
        let mut query = sql!("SELECT ");
        let from = [date, " FROM ", name, " ORDER BY ", date, " DESC LIMIT 1 OFFSET "];
        append(&mut query, &from);
        query.and("?", [most.into()]);
        let row = self.read(async move |tx| tx.one(query).await).await?;
        let date: Option<Instant> = row.map(|row| row.get(0)).transpose()?;
        Ok(date.map(|date| Instant(date.0.saturating_add(1))))
    }

    /// Deletes rows with an earlier date, at most `most`, the oldest first, and returns their number.
    pub async fn prune(&self, rows: DatedRows, before: Instant, most: u32) -> Result<u64> {
        let DatedTable { name, key, date, order } = rows.table();
        let mut delete = sql!("DELETE FROM ");
        append(&mut delete, &[name, " WHERE (", key, ") IN (SELECT ", key, " FROM ", name, " WHERE ", date]);
        delete.and(" < ?", [before.into()]);
        append(&mut delete, &[" ORDER BY ", order]);
        delete.and(" LIMIT ?)", [most.into()]);
        self.write_unaudited(async move |tx: &mut Tx| tx.run(delete.clone()).await).await
    }
}

fn append(statement: &mut Sql, parts: &[&'static str]) {
    parts.iter().for_each(|part| statement.and(part, []));
}
