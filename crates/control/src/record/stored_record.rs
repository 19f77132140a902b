//! What the things that are edited have in common: a table.

use serde_json::Value as JsonValue;

use crate::db::{Sql, SqlRow, SqlValue};
use crate::{Instant, RecordKind, Result};

/// A row that can be edited. Its first two columns are its key, and its last is its version; a table whose key is one
/// column has the same in both.
pub(crate) trait StoredRecord: Clone + PartialEq {
    /// What kind of thing it is.
    const KIND: RecordKind;
    /// The statements that its table takes.
    const TABLE: TableSql;

    /// Reads a row of [`TableSql::select`].
    fn read(row: &SqlRow) -> Result<Self>;

    /// The values of a row, for [`TableSql::insert`].
    fn values(&self) -> Vec<SqlValue>;

    /// What the audit and the API show.
    fn json(&self) -> JsonValue;

    /// Its version.
    fn version(&self) -> i64;
}

/// Texts of SQL for one table. All are texts of this program; values are put in where `?` stands.
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
    /// Goes on with ` WHERE namespace = … AND id IN (…)`. Not with pairs of both: SQLite would look at every row.
    pub(crate) fn select_ids(&self, sql: &mut Sql, namespace: &str, ids: &[&str]) {
        sql.and(" WHERE namespace = ? AND ", [namespace.into()]);
        sql.and(self.id, []);
        sql.and_listed(" IN (", "?", ")", ids.iter().map(|id| vec![(*id).into()]));
    }

    /// Goes on with ` ORDER BY` the key.
    pub(crate) fn in_order(&self, sql: &mut Sql) {
        sql.and(" ORDER BY namespace, ", []);
        sql.and(self.id, []);
    }
}

/// When a row was made, changed, and by which generation.
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
