//! The table of each kind of record.

use serde_json::Value as JsonValue;

use crate::db::{Sql, SqlRow, SqlValue};
use crate::{Instant, RecordKind, Result};

/// A row that can be edited. The first two columns are the key, the last is the version; a table with one key column
/// repeats it.
pub(crate) trait StoredRecord: Clone + PartialEq {
    /// The kind of record.
    const KIND: RecordKind;
    /// The statements of its table.
    const TABLE: TableSql;

    /// Reads a row of [`TableSql::select`].
    fn read(row: &SqlRow) -> Result<Self>;

    /// The values of a row, for [`TableSql::insert`].
    fn values(&self) -> Vec<SqlValue>;

    /// The representation in the audit and the API.
    fn json(&self) -> JsonValue;

    /// The version.
    fn version(&self) -> i64;
}

/// SQL for one table; `?` stands for a bound value.
pub(crate) struct TableSql {
    /// `SELECT … FROM …`, without a condition.
    pub(crate) select: &'static str,
    /// The second column of the key; the first is `namespace`.
    pub(crate) id: &'static str,
    /// `INSERT INTO … (…) VALUES `.
    pub(crate) insert: &'static str,
    /// `(?, ?, …)`, one row.
    pub(crate) row: &'static str,
    /// ` ON CONFLICT … DO UPDATE SET …`.
    pub(crate) replace: &'static str,
    /// `DELETE FROM …`, without a condition.
    pub(crate) delete: &'static str,
}

impl TableSql {
    /// Appends ` WHERE namespace = … AND id IN (…)`. Not pairs of both: SQLite would scan the table.
    pub(crate) fn select_ids(&self, sql: &mut Sql, namespace: &str, ids: &[&str]) {
        sql.and(" WHERE namespace = ? AND ", [namespace.into()]);
        sql.and(self.id, []);
        sql.and_listed(" IN (", "?", ")", ids.iter().map(|id| vec![(*id).into()]));
    }

    /// Appends ` ORDER BY` the key.
    pub(crate) fn in_order(&self, sql: &mut Sql) {
        sql.and(" ORDER BY namespace, ", []);
        sql.and(self.id, []);
    }
}

/// Times and version of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowStamp {
    pub(crate) created_at: Instant,
    pub(crate) updated_at: Instant,
    pub(crate) version: i64,
}

impl RowStamp {
    pub(crate) fn values(self) -> [SqlValue; 3] {
        [self.created_at.into(), self.updated_at.into(), self.version.into()]
    }
}
