//! Rows that were written with SQL, past this program.
//!
//! Triggers note which rows those are (`tollgate_sql_edits`). A node that hears of it takes them over: each becomes a
//! change like any other, with a generation, a version and a row of the audit, so that all nodes follow it and a rollback
//! undoes it. What the audit said last of a thing is what it was before.

use serde_json::Value;
use tracing::warn;

use super::history::{substance, unreadable};
use super::{Control, tokens};
use crate::db::{Sql, SqlRow, Tx, sql};
use crate::edit::fleet_change;
use crate::record::{ClientRecord, NamespaceRow, OverrideRecord, RuleModeRecord, RuleRow, StoredRecord, document};
use crate::write_tx::WriteTx;
use crate::{Author, Change, Error, RecordKind, Result};

/// Edits that become one generation: other writers wait for no more than these.
const BATCH: i64 = 500;
/// In milliseconds. Shorter than PostgreSQL waits before it looks for a deadlock and ends one side of it, which must not
/// be the one with the editor open.
const LOCK_TIMEOUT: &str = "300";

/// A row that was written with SQL.
struct SqlEdit {
    kind: RecordKind,
    namespace: String,
    id: String,
    /// Whether it was there before.
    existed: bool,
}

impl Control {
    /// Takes over what was written with SQL, some of it at a time. True if there may be more.
    pub async fn take_over_sql_edits(&self) -> Result<bool> {
        let pending = sql!("SELECT written_by FROM tollgate_sql_edits LIMIT 1");
        let Some(row) = self.read(async move |tx| tx.one(pending).await).await? else { return Ok(false) };
        let author = Author { id: "sql".to_owned(), name: row.lossy_text(0)? };
        let (mut again, mut policy) = (true, ErrorPolicy::AbortBatch);
        loop {
            let mut write = WriteTx::begin(self.pool()).await?;
            let taken = take_over(&mut write, &author.name, policy).await;
            if policy == ErrorPolicy::AbortBatch && taken.as_ref().is_err_and(is_of_an_edit) {
                let _ = write.tx.rollback().await;
                policy = ErrorPolicy::SkipEdit;
                continue;
            }
            if let Some((more, _)) = self.finish_write(write, &author, "sql", taken, &mut again).await? {
                return Ok(more);
            }
        }
    }
}

/// What happens to the other edits if one cannot be taken over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ErrorPolicy {
    /// None is taken over. Quick, and almost always enough.
    AbortBatch,
    /// That one is left out, and they are taken over: each has a savepoint.
    SkipEdit,
}

/// Whether it is an edit that is at fault, not the database.
fn is_of_an_edit(error: &Error) -> bool {
    matches!(error, Error::Unexpected(_) | Error::Invalid(_) | Error::Conflict(_))
}

async fn take_over(write: &mut WriteTx, written_by: &str, policy: ErrorPolicy) -> Result<bool> {
    if write.tx.is_postgres() {
        write.tx.one(sql!("SELECT set_config('lock_timeout', $1, TRUE)", LOCK_TIMEOUT)).await?;
    }
    let edits = take(&mut write.tx, written_by).await?;
    let more = edits.len() as i64 == BATCH;
    let mut anything = false;
    for edit in &edits {
        if policy == ErrorPolicy::SkipEdit {
            write.tx.run(sql!("SAVEPOINT edit")).await?;
        }
        let changed = match one(write, edit).await {
            Err(why) if policy == ErrorPolicy::SkipEdit && is_of_an_edit(&why) => {
                write.tx.run(sql!("ROLLBACK TO SAVEPOINT edit")).await?;
                warn!(kind = edit.kind.name(), %why, "a row that was written with SQL is left out of the audit");
                Changed::Unknown
            }
            changed => changed?,
        };
        match changed {
            Changed::Not => {}
            Changed::To { before, after, usable } => {
                anything |= !usable;
                let (namespace, id) = (edit.namespace.clone(), edit.id.clone());
                write.record(Change { kind: edit.kind, namespace, id, before, after });
            }
            Changed::Unknown => anything = true,
        }
    }
    if anything {
        write.record(fleet_change(RecordKind::Everything, "", None, None));
    }
    Ok(more)
}

async fn one(write: &mut WriteTx, edit: &SqlEdit) -> Result<Changed> {
    match edit.kind {
        // Rules that make no sense are found with the rules of their namespace, which are read together.
        RecordKind::Rule => row::<RuleRow>(write, edit, "UPDATE rate_limit_rules SET version = ", |_| true).await,
        RecordKind::Override => {
            let makes_sense = |record: &OverrideRecord| document::overriding(&record.draft).is_ok();
            row(write, edit, "UPDATE rate_limit_overrides SET version = ", makes_sense).await
        }
        RecordKind::Client => {
            let makes_sense = |record: &ClientRecord| document::client(&record.client_key, &record.draft).is_ok();
            row(write, edit, "UPDATE clients SET version = ", makes_sense).await
        }
        RecordKind::RuleMode => {
            row::<RuleModeRecord>(write, edit, "UPDATE rate_limit_rule_modes SET version = ", |_| true).await
        }
        RecordKind::Namespace => {
            row::<NamespaceRow>(write, edit, "UPDATE rate_limit_namespaces SET version = ", |_| true).await
        }
        RecordKind::Token => token(write, edit).await,
        RecordKind::Mode | RecordKind::Everything => Ok(Changed::Unknown),
    }
}

/// What became of a row.
enum Changed {
    /// It is what the audit says already.
    Not,
    /// Another row than before. One that no node can use makes all of them read everything anew: then each names it in its
    /// status.
    To { before: Option<Value>, after: Option<Value>, usable: bool },
    /// The audit cannot say what it was, or nothing can say what it is: all nodes read everything anew.
    Unknown,
}

/// Takes edits out, except those whose rows other transactions still write.
async fn take(tx: &mut Tx, written_by: &str) -> Result<Vec<SqlEdit>> {
    let mut statement = sql!(
        "DELETE FROM tollgate_sql_edits WHERE (kind, namespace, id) IN \
         (SELECT kind, namespace, id FROM tollgate_sql_edits"
    );
    // SQLite knows no roles: the same is always meant, whatever stands there.
    if tx.is_postgres() {
        statement.and(" WHERE written_by = ?", [written_by.into()]);
    }
    statement.and(" ORDER BY kind, namespace, id LIMIT ?", [BATCH.into()]);
    statement.and(if tx.is_postgres() { " FOR UPDATE SKIP LOCKED" } else { "" }, []);
    statement.and(") RETURNING kind, namespace, id, existed", []);
    let rows = tx.all(statement).await?;
    rows.iter().map(SqlEdit::read).collect()
}

impl SqlEdit {
    fn read(row: &SqlRow) -> Result<SqlEdit> {
        let kind = RecordKind::named(&row.lossy_text(0)?).unwrap_or(RecordKind::Everything);
        let existed = row.get(3)?;
        Ok(match (row.valid_text(1)?, row.valid_text(2)?) {
            (Some(namespace), Some(id)) => SqlEdit { kind, namespace, id, existed },
            _ => {
                warn!(
                    kind = kind.name(),
                    "a row that was written with SQL has a key that is not text in UTF-8 without NUL"
                );
                SqlEdit { kind: RecordKind::Everything, namespace: String::new(), id: String::new(), existed }
            }
        })
    }

    fn classify(&self, before: Option<Value>, after: Option<Value>, usable: bool) -> Changed {
        match (&before, &after) {
            (None, _) if self.existed => Changed::Unknown,
            _ if substance(before.as_ref()) == substance(after.as_ref()) => Changed::Not,
            _ => Changed::To { before, after, usable },
        }
    }
}

/// Rows that no node can use are told of as well, or what they become later would have come from nowhere.
async fn row<R: StoredRecord>(
    write: &mut WriteTx,
    edit: &SqlEdit,
    set_version: &'static str,
    makes_sense: impl Fn(&R) -> bool,
) -> Result<Changed> {
    let mut update = Sql::new(set_version, vec![]);
    update.and("?", [write.generation.into()]);
    R::TABLE.select_ids(&mut update, &edit.namespace, &[&edit.id]);
    write.tx.run(update).await?;
    let mut select = Sql::new(R::TABLE.select, vec![]);
    R::TABLE.select_ids(&mut select, &edit.namespace, &[&edit.id]);
    let (after, usable) = match write.tx.one(select).await? {
        None => (None, true),
        Some(row) => match R::read(&row) {
            Ok(record) => (Some(record.json()), makes_sense(&record)),
            Err(Error::Unexpected(why)) => (Some(unreadable(&why)), false),
            Err(error) => return Err(error),
        },
    };
    let before = last(write, edit).await?;
    Ok(edit.classify(before, after, usable))
}

async fn token(write: &mut WriteTx, edit: &SqlEdit) -> Result<Changed> {
    let after = match tokens::find(&edit.id, &mut write.tx).await {
        Ok(token) => Some(token.json()),
        Err(Error::NotFound(_) | Error::Unexpected(_)) => None, // revoked, gone, or opens nothing
        Err(error) => return Err(error),
    };
    let before = last(write, edit).await?;
    Ok(edit.classify(before, after, true))
}

/// What the audit said last of a thing.
async fn last(write: &mut WriteTx, edit: &SqlEdit) -> Result<Option<Value>> {
    let last = sql!(
        "SELECT after FROM audit WHERE id = $1 AND kind = $2 AND namespace = $3 ORDER BY number DESC LIMIT 1",
        &edit.id,
        edit.kind.name(),
        &edit.namespace,
    );
    let Some(row) = write.tx.one(last).await? else { return Ok(None) };
    let after: Option<String> = row.get(0)?;
    Ok(after.and_then(|after| serde_json::from_str(&after).ok()))
}
