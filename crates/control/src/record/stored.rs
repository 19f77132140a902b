//! What the things that are edited have in common: a table.

use serde_json::Value as Json;

use crate::db::{Row, Value};
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
    /// The two columns of the key.
    pub(crate) key: &'static str,
    /// `INSERT INTO … (…) VALUES `.
    pub(crate) insert: &'static str,
    /// `(?, ?, …)`, one row.
    pub(crate) row: &'static str,
    /// ` ON CONFLICT … DO UPDATE SET …`.
    pub(crate) replace: &'static str,
    /// `DELETE FROM …`, without a condition.
    pub(crate) delete: &'static str,
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
