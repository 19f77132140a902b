//! How anything is changed: one transaction, which stands in line with all others.
//!
//! A writer's first statement takes the lock on the one row of `tollgate_state`, and holds it to the end. So writers
//! follow each other, generations have no gaps, and their order is the order of commits: a node that has seen generation
//! 7 has missed nothing of 6. That costs parallel writing, which the rate of changes that people make does not need.
//!
//! While `writing` is set (a column in SQLite, a setting in PostgreSQL), which no other transaction ever sees, the triggers
//! on the tables note nothing: what is written here gets its audit here. Everything else is an edit with SQL (`sql_edits`).

use crate::audit::{self, ChainHead, GenerationMeta};
use crate::db::{DatabasePool, Tx, sql};
use crate::{Author, Change, Error, Instant, Result};

/// A change in the making.
pub(crate) struct WriteTx {
    /// The transaction, in which this is the only writer.
    pub(crate) tx: Tx,
    /// The generation that this will be; the `version` of the records it touches.
    pub(crate) generation: i64,
    /// When, by the clock of the database: the one clock that all nodes share.
    pub(crate) at: Instant,
    /// What comes of it.
    pub(crate) completion: Completion,
    changes: Vec<Change>,
    last: ChainHead,
}

/// What comes of the work that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// It is committed.
    Commit,
    /// It is undone: somebody only wanted to know.
    Rollback,
}

impl WriteTx {
    /// Notes a change, for the audit.
    pub(crate) fn record(&mut self, change: Change) {
        self.changes.push(change);
    }

    pub(crate) async fn begin(pool: &DatabasePool) -> Result<WriteTx> {
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

    /// Writes the audit and commits; answers the generation that is in force then.
    pub(crate) async fn finish(mut self, author: &Author, action: &str) -> Result<i64> {
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
