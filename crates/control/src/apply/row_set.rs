//! Rows of one table, held in memory while they are edited.

use std::collections::{BTreeMap, BTreeSet};

use crate::Result;
use crate::db::{Sql, Tx};
use crate::record::StoredRecord;

/// Namespace and id.
pub(super) type RecordKey = (String, String);

/// Most rows of one statement: well below the limit of bound values in both databases.
const CHUNK: usize = 500;

/// Rows by key: as they were read, and as they are after the edits.
pub(super) struct RowSet<R> {
    /// Rows as read; `None` if there is no such row.
    before: BTreeMap<RecordKey, Option<R>>,
    /// Rows that were changed since.
    now: BTreeMap<RecordKey, Option<R>>,
}

impl<R> Default for RowSet<R> {
    fn default() -> RowSet<R> {
        RowSet { before: BTreeMap::new(), now: BTreeMap::new() }
    }
}

impl<R: StoredRecord> RowSet<R> {
    /// Reads rows by their keys. Rows that were read before stay.
    pub(super) async fn read(&mut self, keys: BTreeSet<RecordKey>, tx: &mut Tx) -> Result<()> {
        let keys: Vec<RecordKey> = keys.into_iter().filter(|key| !self.before.contains_key(key)).collect();
        // A key that no database can store has no row; the validation of its field reports it later.
        for (namespace, ids) in chunks(keys.iter().filter(|key| is_valid_text_key(key))) {
            let mut sql = Sql::new(R::TABLE.select, vec![]);
            R::TABLE.select_ids(&mut sql, namespace, &ids);
            self.load(sql, tx).await?;
        }
        for key in keys {
            self.before.entry(key).or_insert(None);
        }
        Ok(())
    }

    /// Reads the rows that a statement selects and returns their number.
    pub(super) async fn load(&mut self, sql: Sql, tx: &mut Tx) -> Result<usize> {
        let rows = tx.all(sql).await?;
        for row in &rows {
            let key = (row.get(0)?, row.get(1)?);
            let record = R::read(row)?;
            self.before.entry(key).or_insert(Some(record));
        }
        Ok(rows.len())
    }

    /// Adds a row that was read.
    pub(super) fn put(&mut self, key: RecordKey, record: R) {
        self.before.entry(key).or_insert(Some(record));
    }

    /// A row after the edits.
    pub(super) fn get(&self, key: &RecordKey) -> Option<&R> {
        self.now.get(key).or_else(|| self.before.get(key))?.as_ref()
    }

    /// A row as it was read.
    pub(super) fn original(&self, key: &RecordKey) -> Option<&R> {
        self.before.get(key)?.as_ref()
    }

    /// Changes a row; `None` deletes it.
    pub(super) fn set(&mut self, key: RecordKey, record: Option<R>) {
        self.now.insert(key, record);
    }

    /// Keys of changed rows, with their new content.
    pub(super) fn changed(&self) -> impl Iterator<Item = (&RecordKey, Option<&R>)> {
        self.now.iter().map(|(key, record)| (key, record.as_ref()))
    }

    /// True if a row was changed.
    pub(super) fn is_changed(&self, key: &RecordKey) -> bool {
        self.now.contains_key(key)
    }

    /// All rows after the edits.
    pub(super) fn all(&self) -> impl Iterator<Item = (&RecordKey, &R)> {
        let untouched = self.before.iter().filter(|(key, _)| !self.now.contains_key(*key));
        untouched.chain(&self.now).filter_map(|(key, record)| Some((key, record.as_ref()?)))
    }

    /// Deletes the rows that were removed.
    pub(super) async fn delete(&self, tx: &mut Tx) -> Result<()> {
        let gone = self.changed().filter(|(key, record)| record.is_none() && self.original(key).is_some());
        for (namespace, ids) in chunks(gone.map(|(key, _)| key)) {
            let mut sql = Sql::new(R::TABLE.delete, vec![]);
            R::TABLE.select_ids(&mut sql, namespace, &ids);
            tx.run(sql).await?;
        }
        Ok(())
    }

    /// Writes the rows that are new or different.
    pub(super) async fn write(&self, tx: &mut Tx) -> Result<()> {
        let new: Vec<&R> = self
            .changed()
            .filter_map(|(key, record)| record.filter(|record| self.original(key) != Some(record)))
            .collect();
        for chunk in new.chunks(CHUNK) {
            let mut sql = Sql::new(R::TABLE.insert, vec![]);
            sql.and_listed("", R::TABLE.row, R::TABLE.replace, chunk.iter().map(|record| record.values()));
            tx.run(sql).await?;
        }
        Ok(())
    }
}

/// True if both databases can store this key.
pub(super) fn is_valid_text_key(key: &RecordKey) -> bool {
    !key.0.contains('\0') && !key.1.contains('\0')
}

/// Groups sorted keys by namespace, at most [`CHUNK`] in a group.
fn chunks<'a>(keys: impl Iterator<Item = &'a RecordKey>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut chunks: Vec<(&str, Vec<&str>)> = Vec::new();
    for (namespace, id) in keys {
        match chunks.last_mut() {
            Some((last, ids)) if *last == namespace && ids.len() < CHUNK => ids.push(id),
            _ => chunks.push((namespace, vec![id])),
        }
    }
    chunks
}
