//! Pages of rows, sorted by key.

use serde_json::json;

use super::Control;
use crate::db::{Sql, Tx};
use crate::page::{cursor, cursor_part};
use crate::record::StoredRecord;
use crate::{Error, Listing, Page, RecordKind, Result};

impl Control {
    /// A page of the rows that `sql` selects: the select of the table, and conditions.
    ///
    /// An unreadable row is logged and left out: it must not hide all others.
    pub(super) async fn list<R: StoredRecord>(&self, mut sql: Sql, page: &Page) -> Result<Listing<R>> {
        let limit = page.limit();
        if let Some((namespace, id)) = page.after_key()? {
            sql.and(" AND (namespace, ", []);
            sql.and(R::TABLE.id, []);
            let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).ok().filter(|text| !text.contains('\0'));
            match (text(&namespace), text(&id)) {
                (Some(namespace), Some(id)) => sql.and(") > (?, ?)", [namespace.into(), id.into()]),
                // In SQLite a key may not be text.
                _ => sql
                    .and(") > (CAST(? AS TEXT), CAST(? AS TEXT))", [namespace.as_slice().into(), id.as_slice().into()]),
            }
        }
        R::TABLE.in_order(&mut sql);
        sql.and(" LIMIT ?", [i64::try_from(limit + 1).unwrap_or(i64::MAX).into()]);
        let rows = self.read(async |tx| tx.all(sql).await).await?;
        let mut listing = Listing { entries: Vec::new(), next: None };
        for (index, row) in rows.iter().enumerate() {
            if index == limit {
                break;
            }
            match R::read(row) {
                Ok(record) => listing.entries.push(record),
                Err(error) => {
                    tracing::warn!(
                        kind = R::KIND.name(),
                        id = loggable_id(R::KIND, &row.lossy_text(1)?),
                        "unreadable row left out: {error}"
                    )
                }
            }
            if index + 1 == limit && rows.len() > limit {
                listing.next = Some(cursor(&json!([cursor_part(row.bytes(0)?), cursor_part(row.bytes(1)?)])));
            }
        }
        Ok(listing)
    }

    /// One row by its key.
    pub(super) async fn find<R: StoredRecord>(&self, namespace: &str, id: &str) -> Result<R> {
        self.read(async |tx| find::<R>(tx, namespace, id).await)
            .await?
            .ok_or_else(|| Error::NotFound(format!("{} {id} in the namespace {namespace}", R::KIND.name())))
    }
}

/// One row by its key, if it exists.
pub(super) async fn find<R: StoredRecord>(tx: &mut Tx, namespace: &str, id: &str) -> Result<Option<R>> {
    let mut sql = Sql::new(R::TABLE.select, vec![]);
    R::TABLE.select_ids(&mut sql, namespace, &[id]);
    tx.one(sql).await?.as_ref().map(R::read).transpose()
}

/// Keys of clients are not logged.
fn loggable_id(kind: RecordKind, id: &str) -> &str {
    if kind == RecordKind::Client { "(a client)" } else { id }
}
