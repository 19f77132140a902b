//! Queries of the audit and of generations.

use serde_json::{Value, json};

use super::Control;
use crate::audit::{self, AuditRow, ChainHead};
use crate::db::{Sql, SqlRow, sql};
use crate::page::cursor;
use crate::{Error, Instant, Listing, Page, RecordKind, Result};

/// Selects rows of the audit; `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Rows of these namespaces. Rows without a namespace (tokens, the mode) only match `None`.
    pub namespaces: Option<Vec<String>>,
    /// The kind of record.
    pub kind: Option<RecordKind>,
    /// The id of the record.
    pub id: Option<String>,
    /// The author's id.
    pub author: Option<String>,
    /// At or after.
    pub from: Option<Instant>,
    /// Before.
    pub to: Option<Instant>,
}

/// A row of the audit. Rows are never changed; each carries a hash over itself and the row before.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRecord {
    /// Counts up from 1, without gaps.
    pub number: i64,
    /// The generation of the change.
    pub generation: i64,
    /// When the change was made.
    pub at: Instant,
    /// The author: a token's id, `cli`, `node` or `sql`.
    pub author: String,
    /// The token's name at that time.
    pub author_name: String,
    /// The purpose of the change, such as `create` or `rollback to 12`.
    pub action: String,
    /// The kind of the changed record.
    pub kind: RecordKind,
    /// Its namespace; empty for records without one.
    pub namespace: String,
    /// Its id.
    pub id: String,
    /// The record before.
    pub before: Option<Value>,
    /// The record after.
    pub after: Option<Value>,
    /// SHA-256 over this row and the previous hash, in hex.
    pub hash: String,
}

/// A generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationRecord {
    /// Its number.
    pub generation: i64,
    /// When it was made.
    pub at: Instant,
    /// Its author's id.
    pub author: String,
    /// The token's name at that time.
    pub author_name: String,
    /// The purpose of the change.
    pub action: String,
    /// The number of changed records.
    pub changes: i64,
}

/// The result of verifying the hash chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Number of rows read.
    pub rows: i64,
    /// The first row that was altered or that follows a missing one.
    pub broken_at: Option<i64>,
}

impl AuditRecord {
    /// The representation in the API.
    pub fn json(&self) -> Value {
        json!({
            "number": self.number,
            "generation": self.generation,
            "at": self.at.to_string(),
            "author": self.author,
            "author_name": self.author_name,
            "action": self.action,
            "kind": self.kind.name(),
            "namespace": self.namespace,
            "id": self.id,
            "before": self.before,
            "after": self.after,
            "hash": self.hash,
        })
    }

    pub(super) fn of(entry: AuditRow) -> Result<AuditRecord> {
        let json = |text: Option<String>| {
            let read = text.map(|text| serde_json::from_str(&text)).transpose();
            read.map_err(|error| Error::Unexpected(format!("row {} of the audit: {error}", entry.link.number)))
        };
        let kind = RecordKind::named(&entry.kind);
        let unknown = || Error::Unexpected(format!("row {} of the audit: unknown kind", entry.link.number));
        Ok(AuditRecord {
            kind: kind.ok_or_else(unknown)?,
            before: json(entry.before)?,
            after: json(entry.after)?,
            number: entry.link.number,
            generation: entry.generation,
            at: entry.at,
            author: entry.author,
            author_name: entry.author_name,
            action: entry.action,
            namespace: entry.namespace,
            id: entry.id,
            hash: entry.link.hash,
        })
    }
}

impl GenerationRecord {
    /// The representation in the API.
    pub fn json(&self) -> Value {
        json!({
            "generation": self.generation,
            "at": self.at.to_string(),
            "author": self.author,
            "author_name": self.author_name,
            "action": self.action,
            "changes": self.changes,
        })
    }

    fn read(row: &SqlRow) -> Result<GenerationRecord> {
        Ok(GenerationRecord {
            generation: row.get(0)?,
            at: row.get(1)?,
            author: row.get(2)?,
            author_name: row.get(3)?,
            action: row.get(4)?,
            changes: row.get(5)?,
        })
    }
}

impl Control {
    /// Rows of the audit, the latest first.
    pub async fn audit(&self, filter: &AuditFilter, page: &Page) -> Result<Listing<AuditRecord>> {
        let mut sql = Sql::new(audit::SELECT, vec![]);
        sql.and(" WHERE TRUE", []);
        sql.and_in("namespace", filter.namespaces.as_deref());
        sql.and_if(" AND kind = ?", filter.kind.map(RecordKind::name));
        sql.and_if(" AND id = ?", filter.id.as_ref());
        sql.and_if(" AND author = ?", filter.author.as_ref());
        sql.and_if(" AND at >= ?", filter.from);
        sql.and_if(" AND at < ?", filter.to);
        sql.and_if(" AND number < ?", page.after_number()?);
        sql.and(" ORDER BY number DESC", []);
        let read = |row: &SqlRow| AuditRow::read(row).and_then(AuditRecord::of);
        self.list_latest(sql, page, read, |record| record.number).await
    }

    /// Generations of these namespaces, the latest first; `None` for all.
    pub async fn generations(&self, namespaces: Option<&[String]>, page: &Page) -> Result<Listing<GenerationRecord>> {
        let mut sql = sql!("SELECT generation, at, author, author_name, action, changes FROM generations WHERE TRUE");
        if namespaces.is_some() {
            sql.and(" AND EXISTS (SELECT 1 FROM audit WHERE audit.generation = generations.generation", []);
            sql.and_in("audit.namespace", namespaces);
            sql.and(")", []);
        }
        sql.and_if(" AND generation < ?", page.after_number()?);
        sql.and(" ORDER BY generation DESC", []);
        self.list_latest(sql, page, GenerationRecord::read, |record| record.generation).await
    }

    async fn list_latest<T>(
        &self,
        mut sql: Sql,
        page: &Page,
        read: impl Fn(&SqlRow) -> Result<T>,
        number: impl Fn(&T) -> i64,
    ) -> Result<Listing<T>> {
        let limit = page.limit();
        sql.and(" LIMIT ?", [i64::try_from(limit + 1).unwrap_or(i64::MAX).into()]);
        let rows = self.read(async |tx| tx.all(sql).await).await?;
        let entries: Vec<T> = rows.iter().take(limit).map(read).collect::<Result<_>>()?;
        let last = entries.last().filter(|_| rows.len() > limit);
        let next = last.map(|record| cursor(&json!(number(record))));
        Ok(Listing { entries, next })
    }

    /// Verifies the whole chain up to the end that `tollgate_state` records.
    pub async fn verify_audit(&self) -> Result<Verified> {
        let mut tx = self.pool().read_long().await?;
        let end = tx.one(sql!("SELECT audit_number, audit_hash FROM tollgate_state")).await?;
        let end = match &end {
            Some(row) => ChainHead { number: row.get(0)?, hash: row.get(1)? },
            None => return Err(Error::Schema("tollgate_state has lost its row; restore the database".to_owned())),
        };
        let mut last = ChainHead::default();
        let mut verified = Verified { rows: 0, broken_at: None };
        let mut sql = Sql::new(audit::SELECT, vec![]);
        sql.and(" ORDER BY number", []);
        let follow = |row: SqlRow| {
            verified.rows += 1;
            let number: i64 = row.get(0)?;
            // An unreadable row was altered.
            let follows = AuditRow::read(&row)
                .is_ok_and(|entry| entry.link.number == last.number + 1 && entry.link.hash == entry.hash(&last.hash));
            if verified.broken_at.is_none() && !follows {
                verified.broken_at = Some(number);
            }
            last = ChainHead { number, hash: row.get(11).unwrap_or_default() };
            Ok(())
        };
        tx.each(sql, follow).await?;
        let _ = tx.rollback().await;
        if verified.broken_at.is_none() && last != end {
            verified.broken_at = Some(last.number + 1);
        }
        Ok(verified)
    }
}
