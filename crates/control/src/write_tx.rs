//! The transaction of all changes.
//!
//! The first statement of a writer locks the one row of `tollgate_state` until the end. So writers are serialized,
//! generations have no gaps, and their order is the order of commits: a node that has seen generation 7 has missed
//! nothing of 6. The price is no concurrent writing, which the rate of changes by people does not need.
//!
//! While `writing` is set (a column in SQLite, a setting in PostgreSQL), which no other transaction sees, the triggers
//! of the tables record nothing: this transaction writes its own audit. Every other write is an SQL edit (`sql_edits`).
//! Every role of PostgreSQL may change a setting, so the triggers there also require that the transaction has updated
//! `tollgate_state`, as the first statement does.

use crate::audit::{self, ChainHead, GenerationMeta};
use crate::db::{DatabaseFuture, DatabasePool, Tx, sql};
use crate::{Author, Change, Error, Instant, Result};

/// A transaction that changes records.
pub(crate) struct WriteTx {
    /// The transaction; it holds the lock of all writers.
    pub(crate) tx: Tx,
    /// The generation being made, and the `version` of the changed records.
    pub(crate) generation: i64,
    /// The time of the change, by the database's clock, which all nodes share.
    pub(crate) at: Instant,
    /// How the transaction ends.
    pub(crate) completion: Completion,
    changes: Vec<Change>,
    last: ChainHead,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// It is committed.
    Commit,
    /// It is rolled back: a dry run or a repetition.
    Rollback,
}

impl WriteTx {
    /// Records a change for the audit.
    pub(crate) fn record(&mut self, change: Change) {
        self.changes.push(change);
    }

    pub(crate) fn begin(pool: &DatabasePool) -> DatabaseFuture<'_, WriteTx> {
        Box::pin(WriteTx::lock(pool))
    }

    async fn lock(pool: &DatabasePool) -> Result<WriteTx> {
        let mut tx = pool.write().await?;
        let lock = match tx.is_postgres() {
            true => {
                sql!(
                    "UPDATE tollgate_state SET generation = generation RETURNING generation, audit_number, audit_hash, \
                     clock_timestamp(), set_config('tollgate.writing', 'on', TRUE)"
                )
            }
            false => sql!(
                "UPDATE tollgate_state SET writing = TRUE \
                 RETURNING generation, audit_number, audit_hash, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"
            ),
        };
        let Some(row) = tx.one(lock).await? else {
            return Err(Error::Schema("tollgate_state has lost its row; restore the database".to_owned()));
        };
        Ok(WriteTx {
            tx,
            generation: row.get::<i64>(0)? + 1,
            at: row.get(3)?,
            completion: Completion::Commit,
            changes: Vec::new(),
            last: ChainHead { number: row.get(1)?, hash: row.get(2)? },
        })
    }

    /// Writes the audit and commits; returns the generation then in force.
    pub(crate) fn finish<'a>(self, author: &'a Author, action: &'a str) -> DatabaseFuture<'a, i64> {
        Box::pin(self.end(author, action))
    }

    async fn end(mut self, author: &Author, action: &str) -> Result<i64> {
        if self.completion == Completion::Rollback {
            self.tx.rollback().await?;
            return Ok(self.generation - 1);
        }
        if !self.tx.is_postgres() {
            self.tx.run(sql!("UPDATE tollgate_state SET writing = FALSE")).await?;
        }
        if self.changes.is_empty() {
            self.tx.commit().await?;
            return Ok(self.generation - 1);
        }
        let meta = GenerationMeta { generation: self.generation, at: self.at, author, action };
        let last = audit::append(self.last, &meta, &self.changes, &mut self.tx).await?;
        self.tx
            .run(sql!(
                "INSERT INTO generations (generation, at, author, author_name, action, changes) \
                 VALUES ($1, $2, $3, $4, $5, $6)",
                self.generation,
                self.at,
                &author.id,
                &author.name,
                action,
                i64::try_from(self.changes.len()).unwrap_or(i64::MAX),
            ))
            .await?;
        self.tx
            .run(sql!(
                "UPDATE tollgate_state SET generation = $1, audit_number = $2, audit_hash = $3",
                self.generation,
                last.number,
                last.hash,
            ))
            .await?;
        if self.tx.is_postgres() {
            self.tx.one(sql!("SELECT pg_notify('tollgate_generation', $1)", self.generation.to_string())).await?;
        }
        self.tx.commit().await?;
        Ok(self.generation)
    }
}
