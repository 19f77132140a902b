//! The hash chain of the audit.
//!
//! Every row carries a SHA-256 over the hash of the row before and over its own content. Changing a row requires
//! changing all later ones, and the last hash is also in `tollgate_state`, in backups and in logs.

use aws_lc_rs::digest;
use serde_json::Value;

use crate::db::{Sql, SqlRow, Tx};
use crate::hex::hex;
use crate::{Author, Change, Instant, Result};

/// Most rows of one statement.
const CHUNK: usize = 500;

/// The end of the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChainHead {
    /// Number of the last row; 0 before the first.
    pub(crate) number: i64,
    /// Its hash in hex; empty before the first.
    pub(crate) hash: String,
}

/// What all changes of one generation share.
pub(crate) struct GenerationMeta<'a> {
    pub(crate) generation: i64,
    pub(crate) at: Instant,
    pub(crate) author: &'a Author,
    pub(crate) action: &'a str,
}

/// A row of the audit.
pub(crate) struct AuditRow {
    pub(crate) link: ChainHead,
    pub(crate) generation: i64,
    pub(crate) at: Instant,
    pub(crate) author: String,
    pub(crate) author_name: String,
    pub(crate) action: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) id: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

/// The columns, in the order of [`AuditRow::read`].
pub(crate) const SELECT: &str = "SELECT number, generation, at, author, author_name, action, kind, namespace, id, \
                                 before, after, hash FROM audit";
const INSERT: &str = "INSERT INTO audit (number, generation, at, author, author_name, action, kind, namespace, id, \
                      before, after, hash) VALUES ";

/// Appends a row for each change and returns the new end of the chain.
pub(crate) async fn append(
    last: ChainHead,
    meta: &GenerationMeta<'_>,
    changes: &[Change],
    tx: &mut Tx,
) -> Result<ChainHead> {
    let mut last = last;
    for chunk in changes.chunks(CHUNK) {
        let mut sql = Sql::new(INSERT, vec![]);
        let rows = chunk.iter().map(|change| {
            let entry = AuditRow::of(&last, meta, change);
            last = entry.link.clone();
            entry.values()
        });
        sql.and_listed("", "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "", rows);
        tx.run(sql).await?;
    }
    Ok(last)
}

impl AuditRow {
    fn of(last: &ChainHead, meta: &GenerationMeta<'_>, change: &Change) -> AuditRow {
        let mut entry = AuditRow {
            link: ChainHead { number: last.number + 1, hash: String::new() },
            generation: meta.generation,
            at: meta.at,
            author: meta.author.id.clone(),
            author_name: meta.author.name.clone(),
            action: meta.action.to_owned(),
            kind: change.kind.name().to_owned(),
            namespace: change.namespace.clone(),
            id: change.id.clone(),
            before: change.before.as_ref().map(Value::to_string),
            after: change.after.as_ref().map(Value::to_string),
        };
        entry.link.hash = entry.hash(&last.hash);
        entry
    }

    /// Reads a row of [`SELECT`].
    pub(crate) fn read(row: &SqlRow) -> Result<AuditRow> {
        Ok(AuditRow {
            link: ChainHead { number: row.get(0)?, hash: row.get(11)? },
            generation: row.get(1)?,
            at: row.get(2)?,
            author: row.get(3)?,
            author_name: row.get(4)?,
            action: row.get(5)?,
            kind: row.get(6)?,
            namespace: row.get(7)?,
            id: row.get(8)?,
            before: row.get(9)?,
            after: row.get(10)?,
        })
    }

    fn values(self) -> Vec<crate::db::SqlValue> {
        vec![
            self.link.number.into(),
            self.generation.into(),
            self.at.into(),
            self.author.into(),
            self.author_name.into(),
            self.action.into(),
            self.kind.into(),
            self.namespace.into(),
            self.id.into(),
            self.before.into(),
            self.after.into(),
            self.link.hash.into(),
        ]
    }

    /// The hash of this row after the row with hash `before`. Every field is preceded by its presence and its length,
    /// so that no two rows have the same encoding.
    pub(crate) fn hash(&self, before: &str) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        let mut field = |bytes: Option<&[u8]>| {
            context.update(&[u8::from(bytes.is_some())]);
            context.update(&(bytes.map_or(0, <[u8]>::len) as u64).to_be_bytes());
            context.update(bytes.unwrap_or_default());
        };
        field(Some(before.as_bytes()));
        for number in [self.link.number, self.generation, self.at.0] {
            field(Some(&number.to_be_bytes()));
        }
        let texts = [&self.author, &self.author_name, &self.action, &self.kind, &self.namespace, &self.id];
        texts.into_iter().for_each(|text| field(Some(text.as_bytes())));
        [&self.before, &self.after].into_iter().for_each(|text| field(text.as_ref().map(String::as_bytes)));
        hex(context.finish().as_ref())
    }
}
