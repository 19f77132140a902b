//! How anything is changed: one transaction, which stands in line with all others.
//!
//! A writer's first statement takes the lock on the one row of `tollgate_state`, and holds it to the end. So writers
//! follow each other, generations have no gaps, and their order is the order of commits: a node that has seen generation
//! 7 has missed nothing of 6. That costs parallel writing, which the rate of changes that people make does not need.
//!
//! While `writing` is set (a column in SQLite, a setting in PostgreSQL), which no other transaction ever sees, the triggers
//! on the tables note nothing: what is written here gets its audit here. Everything else is an edit with SQL (`sql_edits`).

use crate::audit::{self, Link, Occasion};
use crate::db::{Tx, sql};
use crate::{Author, Change, Control, Error, Instant, Kind, Result};

/// A change in the making.
pub(crate) struct Work {
    /// The transaction, in which this is the only writer.
    pub(crate) tx: Tx,
    /// The generation that this will be; the `version` of the records it touches.
    pub(crate) generation: i64,
    /// When, by the clock of the database: the one clock that all nodes share.
    pub(crate) at: Instant,
    /// What comes of it.
    pub(crate) ending: Ending,
    changes: Vec<Change>,
    last: Link,
}

/// What comes of the work that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is committed.
    Keep,
    /// It is undone: somebody only wanted to know.
    Undo,
}

impl Work {
    /// Notes a change, for the audit.
    pub(crate) fn note(&mut self, change: Change) {
        self.changes.push(change);
    }

    pub(super) async fn begin(control: &Control) -> Result<Work> {
        let mut tx = control.pool().write().await?;
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
        Ok(Work {
            tx,
            generation: row.get::<i64>(0)? + 1,
            at: row.get(3)?,
            ending: Ending::Keep,
            changes: Vec::new(),
            last: Link { number: row.get(1)?, hash: row.get(2)? },
        })
    }

    /// Writes the audit and commits; answers the generation that is in force then.
    async fn end(mut self, author: &Author, action: &str) -> Result<i64> {
        if self.ending == Ending::Undo {
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
        let occasion = Occasion { generation: self.generation, at: self.at, author, action };
        let last = audit::append(self.last, &occasion, &self.changes, &mut self.tx).await?;
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

impl Control {
    /// Does some work in one transaction, with everything that belongs to a change: the lock, the audit of what it
    /// noted, the generation, the word to all nodes. Answers what the work answers, and the generation in force then.
    ///
    /// Work that lost a race against somebody who writes to the tables directly is done once more, so it may keep
    /// nothing of its first attempt.
    pub(crate) async fn write<T>(
        &self,
        author: &Author,
        action: &str,
        mut work: impl AsyncFnMut(&mut Work) -> Result<T>,
    ) -> Result<(T, i64)> {
        let mut again = true;
        loop {
            let mut begun = Work::begin(self).await?;
            let done = work(&mut begun).await;
            if let Some(kept) = self.settle(begun, author, action, done, &mut again).await? {
                return Ok(kept);
            }
        }
    }

    /// Ends work that was begun: keeps it, or undoes it. `None` if it lost a race, and is to be done once more.
    pub(super) async fn settle<T>(
        &self,
        begun: Work,
        author: &Author,
        action: &str,
        done: Result<T>,
        again: &mut bool,
    ) -> Result<Option<(T, i64)>> {
        match done {
            Ok(answer) => {
                let generation = begun.end(author, action).await?;
                self.wake(generation);
                Ok(Some((answer, generation)))
            }
            Err(error) => {
                let once_more = std::mem::take(again) && begun.tx.lost_a_race();
                // What it complained about matters more than how its rollback went.
                let _ = begun.tx.rollback().await;
                if once_more { Ok(None) } else { Err(error) }
            }
        }
    }
}

/// Shorthand for the changes of things that belong to no namespace.
pub(crate) fn of_the_fleet(
    kind: Kind,
    id: &str,
    before: Option<serde_json::Value>,
    after: Option<serde_json::Value>,
) -> Change {
    Change { kind, namespace: String::new(), id: id.to_owned(), before, after }
}
