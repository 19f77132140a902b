//! Rows that were written with SQL instead of the API.
//!
//! Triggers record their keys in `tollgate_sql_edits`. A node turns each into a change with a generation, a version and
//! an audit row, so that all nodes follow it and a rollback reverts it. The last audit row of a record is recorded as its
//! state before.

use serde_json::Value;
use tracing::warn;

use super::history::{content, unreadable};
use super::{Control, tokens};
use crate::db::{DatabaseFuture, Sql, SqlRow, Tx, sql};
use crate::edit::fleet_change;
use crate::record::{
    ApiKeyRecord, ClientRecord, GrantRecord, NamespaceRow, OverrideRecord, PlanRecord, RuleModeRecord, RuleRow,
    StoredRecord, document,
};
use crate::write_tx::WriteTx;
use crate::{Author, Change, Error, RecordKind, Result};

/// Most edits of one generation, to bound the wait of other writers.
const BATCH: i64 = 500;
/// In milliseconds. Shorter than PostgreSQL's `deadlock_timeout`: a deadlock must not end the transaction of the person
/// who edits.
const LOCK_TIMEOUT: &str = "300";

/// A row that was written with SQL.
struct SqlEdit {
    kind: RecordKind,
    namespace: String,
    id: String,
    /// True if it existed before.
    existed: bool,
}

impl Control {
    /// Records SQL edits, one batch at a time. True if there may be more.
    pub async fn record_sql_edits(&self) -> Result<bool> {
        let pending = sql!("SELECT written_by FROM tollgate_sql_edits LIMIT 1");
        let Some(row) = self.read(async move |tx| tx.one(pending).await).await? else { return Ok(false) };
        let author = Author { id: "sql".to_owned(), name: row.lossy_text(0)? };
        let (mut may_retry, mut policy) = (true, ErrorPolicy::AbortBatch);
        loop {
            let mut write = WriteTx::begin(self.pool()).await?;
            let recorded = record_batch(&mut write, &author.name, policy).await;
            if policy == ErrorPolicy::AbortBatch && recorded.as_ref().is_err_and(is_of_an_edit) {
                let _ = write.tx.rollback().await;
                policy = ErrorPolicy::SkipEdit;
                continue;
            }
            if let Some((more, _)) = self.finish_write(write, &author, "sql", recorded, &mut may_retry).await? {
                return Ok(more);
            }
        }
    }
}

/// What to do if an edit of a batch cannot be recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ErrorPolicy {
    /// Record none of the batch. Fast, and almost always sufficient.
    AbortBatch,
    /// Skip that edit and record the others: each has a savepoint.
    SkipEdit,
}

/// True if the edit is at fault, not the database.
fn is_of_an_edit(error: &Error) -> bool {
    matches!(error, Error::Unexpected(_) | Error::Invalid(_) | Error::Conflict(_))
}

async fn record_batch(write: &mut WriteTx, written_by: &str, policy: ErrorPolicy) -> Result<bool> {
    if write.tx.is_postgres() {
        write.tx.one(sql!("SELECT set_config('lock_timeout', $1, TRUE)", LOCK_TIMEOUT)).await?;
    }
    let edits = take_batch(&mut write.tx, written_by).await?;
    let more = edits.len() as i64 == BATCH;
    let mut anything = false;
    for edit in &edits {
        if policy == ErrorPolicy::SkipEdit {
            write.tx.run(sql!("SAVEPOINT edit")).await?;
        }
        let changed = match record_edit(write, edit).await {
            Err(why) if policy == ErrorPolicy::SkipEdit && is_of_an_edit(&why) => {
                write.tx.run(sql!("ROLLBACK TO SAVEPOINT edit")).await?;
                warn!(kind = edit.kind.name(), %why, "cannot record an SQL edit in the audit; skipped");
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

fn record_edit<'a>(write: &'a mut WriteTx, edit: &'a SqlEdit) -> DatabaseFuture<'a, Changed> {
    Box::pin(record_edit_of_kind(write, edit))
}

async fn record_edit_of_kind(write: &mut WriteTx, edit: &SqlEdit) -> Result<Changed> {
    match edit.kind {
        // Invalid rules are found when all rules of their namespace are read.
        RecordKind::Rule => {
            record_row::<RuleRow>(write, edit, "UPDATE rate_limit_rules SET version = ", |_| true).await
        }
        RecordKind::Override => {
            let is_valid = |record: &OverrideRecord| document::overriding(&record.draft).is_ok();
            record_row(write, edit, "UPDATE rate_limit_overrides SET version = ", is_valid).await
        }
        RecordKind::Grant => {
            let is_valid = |record: &GrantRecord| document::grant(&record.draft).is_ok();
            record_row(write, edit, "UPDATE rate_limit_grants SET version = ", is_valid).await
        }
        RecordKind::Client => {
            let is_valid = |record: &ClientRecord| document::client(&record.client_key, &record.draft).is_ok();
            record_row(write, edit, "UPDATE clients SET version = ", is_valid).await
        }
        RecordKind::RuleMode => {
            record_row::<RuleModeRecord>(write, edit, "UPDATE rate_limit_rule_modes SET version = ", |_| true).await
        }
        // Invalid plans are found when their namespace is read.
        RecordKind::Plan => {
            record_row::<PlanRecord>(write, edit, "UPDATE rate_limit_plans SET version = ", |_| true).await
        }
        RecordKind::Namespace => {
            record_row::<NamespaceRow>(write, edit, "UPDATE rate_limit_namespaces SET version = ", |_| true).await
        }
        RecordKind::Token => record_token(write, edit).await,
        RecordKind::Key => {
            record_row::<ApiKeyRecord>(write, edit, "UPDATE rate_limit_keys SET version = ", |_| true).await
        }
        RecordKind::Webhook | RecordKind::Penalty | RecordKind::Mode | RecordKind::Counter | RecordKind::Everything => {
            Ok(Changed::Unknown)
        }
    }
}

/// How a row changed.
enum Changed {
    /// It equals the last audit row.
    Not,
    /// It changed. If no node can use it, all nodes load everything, so that each reports it in its status.
    To { before: Option<Value>, after: Option<Value>, usable: bool },
    /// Its old or its new content is unknown: all nodes load everything.
    Unknown,
}

/// Removes edits from the table, except those whose rows other transactions are writing.
async fn take_batch(tx: &mut Tx, written_by: &str) -> Result<Vec<SqlEdit>> {
    let mut statement = sql!(
        "DELETE FROM tollgate_sql_edits WHERE (kind, namespace, id) IN \
         (SELECT kind, namespace, id FROM tollgate_sql_edits"
    );
    // SQLite has no roles: there is one writer.
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
                warn!(kind = kind.name(), "an SQL edit has a key that is not UTF-8 text without NUL");
                SqlEdit { kind: RecordKind::Everything, namespace: String::new(), id: String::new(), existed }
            }
        })
    }

    fn classify(&self, before: Option<Value>, after: Option<Value>, usable: bool) -> Changed {
        match (&before, &after) {
            (None, _) if self.existed => Changed::Unknown,
            _ if content(before.as_ref()) == content(after.as_ref()) => Changed::Not,
            _ => Changed::To { before, after, usable },
        }
    }
}

/// Unusable rows are recorded as well, or a later repair would have no state before.
async fn record_row<R: StoredRecord>(
    write: &mut WriteTx,
    edit: &SqlEdit,
    set_version: &'static str,
    is_valid: impl Fn(&R) -> bool,
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
            Ok(record) => (Some(record.json()), is_valid(&record)),
            Err(Error::Unexpected(why)) => (Some(unreadable(&why)), false),
            Err(error) => return Err(error),
        },
    };
    let before = last_audited(write, edit).await?;
    Ok(edit.classify(before, after, usable))
}

async fn record_token(write: &mut WriteTx, edit: &SqlEdit) -> Result<Changed> {
    let after = match tokens::find(&edit.id, &mut write.tx).await {
        Ok(token) => Some(token.json()),
        Err(Error::NotFound(_) | Error::Unexpected(_)) => None, // revoked, deleted or invalid
        Err(error) => return Err(error),
    };
    let before = last_audited(write, edit).await?;
    Ok(edit.classify(before, after, true))
}

/// The last audited content of a record.
async fn last_audited(write: &mut WriteTx, edit: &SqlEdit) -> Result<Option<Value>> {
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
