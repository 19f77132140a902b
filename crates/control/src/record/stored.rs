//! What the things that are edited have in common: a table.

use serde_json::Value as Json;

use crate::db::{Row, Sql, Value};
use crate::{Instant, Kind, Result};

/// A row that can be edited. Its first two columns are its key, and its last is its version; a table whose key is one
/// column has the same in both.
pub(crate) trait Stored: Clone + PartialEq {
    /// What kind of thing it is.
    const KIND: Kind;
    /// The statements that its table takes.
    const TABLE: Table;

    /// Reads a row of [`Table::select`].
    fn read(row: &Row) -> Result<Self>;

    /// The values of a row, for [`Table::insert`].
    fn values(&self) -> Vec<Value>;

    /// What the audit and the API show.
    fn json(&self) -> Json;

    /// Its version.
    fn version(&self) -> i64;
}

/// Texts of SQL for one table. All are texts of this program; values are put in where `?` stands.
pub(crate) struct Table {
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

impl Table {
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
pub(crate) struct Stamp {
    pub(crate) created_at: Instant,
    pub(crate) updated_at: Instant,
    pub(crate) version: i64,
}

impl Stamp {
    pub(crate) fn values(self) -> [Value; 3] {
        [self.created_at.into(), self.updated_at.into(), self.version.into()]
    }
}
