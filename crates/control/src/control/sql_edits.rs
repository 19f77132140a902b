//! Rows that were written with SQL, past this program.
//!
//! Triggers note which rows those are (`tollgate_sql_edits`). A node that hears of it takes them over: each becomes a
//! change like any other, with a generation, a version and a row of the audit, so that all nodes follow it and a rollback
//! undoes it. What the audit said last of a thing is what it was before.

use serde_json::Value;
use tracing::warn;

use super::history::{substance, unreadable};
use super::{Control, tokens};
use crate::db::{Row, Sql, Tx, sql};
use crate::edit::of_the_fleet;
use crate::record::{ClientRecord, NamespaceRow, OverrideRecord, RuleModeRecord, RuleRow, Stored, document};
use crate::write_tx::Work;
use crate::{Author, Change, Error, Kind, Result};

/// Edits that become one generation: other writers wait for no more than these.
const BATCH: i64 = 500;
/// In milliseconds. Shorter than PostgreSQL waits before it looks for a deadlock and ends one side of it, which must not
/// be the one with the editor open.
const LOCK_TIMEOUT: &str = "300";

/// A row that was written with SQL.
struct SqlEdit {
    kind: Kind,
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
        let author = Author { id: "sql".to_owned(), name: row.shown(0)? };
        let (mut again, mut care) = (true, Care::None);
        loop {
            let mut work = Work::begin(self.pool()).await?;
            let taken = take_over(&mut work, &author.name, care).await;
            if care == Care::None && taken.as_ref().is_err_and(is_of_an_edit) {
                let _ = work.tx.rollback().await;
                care = Care::OfEach;
                continue;
            }
            if let Some((more, _)) = self.settle(work, &author, "sql", taken, &mut again).await? {
                return Ok(more);
            }
        }
    }
}

/// What happens to the other edits if one cannot be taken over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// None is taken over. Quick, and almost always enough.
    None,
    /// That one is left out, and they are taken over: each has a savepoint.
    OfEach,
}

/// Whether it is an edit that is at fault, not the database.
fn is_of_an_edit(error: &Error) -> bool {
    matches!(error, Error::Unexpected(_) | Error::Invalid(_) | Error::Conflict(_))
}

async fn take_over(work: &mut Work, written_by: &str, care: Care) -> Result<bool> {
    if work.tx.is_postgres() {
        work.tx.one(sql!("SELECT set_config('lock_timeout', $1, TRUE)", LOCK_TIMEOUT)).await?;
    }
    let edits = take(&mut work.tx, written_by).await?;
    let more = edits.len() as i64 == BATCH;
    let mut anything = false;
    for edit in &edits {
        if care == Care::OfEach {
            work.tx.run(sql!("SAVEPOINT edit")).await?;
        }
        let changed = match one(work, edit).await {
            Err(why) if care == Care::OfEach && is_of_an_edit(&why) => {
                work.tx.run(sql!("ROLLBACK TO SAVEPOINT edit")).await?;
                warn!(kind = edit.kind.name(), %why, "a row that was written with SQL is left out of the audit");
                Changed::Anything
            }
            changed => changed?,
        };
        match changed {
            Changed::Nothing => {}
            Changed::Into { before, after, usable } => {
                anything |= !usable;
                let (namespace, id) = (edit.namespace.clone(), edit.id.clone());
                work.note(Change { kind: edit.kind, namespace, id, before, after });
            }
            Changed::Anything => anything = true,
        }
    }
    if anything {
        work.note(of_the_fleet(Kind::Everything, "", None, None));
    }
    Ok(more)
}

async fn one(work: &mut Work, edit: &SqlEdit) -> Result<Changed> {
    match edit.kind {
        // Rules that make no sense are found with the rules of their namespace, which are read together.
        Kind::Rule => row::<RuleRow>(work, edit, "UPDATE rate_limit_rules SET version = ", |_| true).await,
        Kind::Override => {
            let makes_sense = |record: &OverrideRecord| document::overriding(&record.draft).is_ok();
            row(work, edit, "UPDATE rate_limit_overrides SET version = ", makes_sense).await
        }
        Kind::Client => {
            let makes_sense = |record: &ClientRecord| document::client(&record.client_key, &record.draft).is_ok();
            row(work, edit, "UPDATE clients SET version = ", makes_sense).await
        }
        Kind::RuleMode => {
            row::<RuleModeRecord>(work, edit, "UPDATE rate_limit_rule_modes SET version = ", |_| true).await
        }
        Kind::Namespace => {
            row::<NamespaceRow>(work, edit, "UPDATE rate_limit_namespaces SET version = ", |_| true).await
        }
        Kind::Token => token(work, edit).await,
        Kind::Mode | Kind::Everything => Ok(Changed::Anything),
    }
}

/// What became of a row.
enum Changed {
    /// It is what the audit says already.
    Nothing,
    /// Another row than before. One that no node can use makes all of them read everything anew: then each names it in its
    /// status.
    Into { before: Option<Value>, after: Option<Value>, usable: bool },
    /// The audit cannot say what it was, or nothing can say what it is: all nodes read everything anew.
    Anything,
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
    fn read(row: &Row) -> Result<SqlEdit> {
        let kind = Kind::named(&row.shown(0)?).unwrap_or(Kind::Everything);
        let existed = row.get(3)?;
        Ok(match (row.askable(1)?, row.askable(2)?) {
            (Some(namespace), Some(id)) => SqlEdit { kind, namespace, id, existed },
            _ => {
                warn!(
                    kind = kind.name(),
                    "a row that was written with SQL has a key that is not text in UTF-8 without NUL"
                );
                SqlEdit { kind: Kind::Everything, namespace: String::new(), id: String::new(), existed }
            }
        })
    }

    fn judge(&self, before: Option<Value>, after: Option<Value>, usable: bool) -> Changed {
        match (&before, &after) {
            (None, _) if self.existed => Changed::Anything,
            _ if substance(before.as_ref()) == substance(after.as_ref()) => Changed::Nothing,
            _ => Changed::Into { before, after, usable },
        }
    }
}

/// Rows that no node can use are told of as well, or what they become later would have come from nowhere.
async fn row<R: Stored>(
    work: &mut Work,
    edit: &SqlEdit,
    set_version: &'static str,
    makes_sense: impl Fn(&R) -> bool,
) -> Result<Changed> {
    let mut update = Sql::new(set_version, vec![]);
    update.and("?", [work.generation.into()]);
    R::TABLE.select_ids(&mut update, &edit.namespace, &[&edit.id]);
    work.tx.run(update).await?;
    let mut select = Sql::new(R::TABLE.select, vec![]);
    R::TABLE.select_ids(&mut select, &edit.namespace, &[&edit.id]);
    let (after, usable) = match work.tx.one(select).await? {
        None => (None, true),
        Some(row) => match R::read(&row) {
            Ok(record) => (Some(record.json()), makes_sense(&record)),
            Err(Error::Unexpected(why)) => (Some(unreadable(&why)), false),
            Err(error) => return Err(error),
        },
    };
    let before = last(work, edit).await?;
    Ok(edit.judge(before, after, usable))
}

async fn token(work: &mut Work, edit: &SqlEdit) -> Result<Changed> {
    let after = match tokens::find(&edit.id, &mut work.tx).await {
        Ok(token) => Some(token.json()),
        Err(Error::NotFound(_) | Error::Unexpected(_)) => None, // revoked, gone, or opens nothing
        Err(error) => return Err(error),
    };
    let before = last(work, edit).await?;
    Ok(edit.judge(before, after, true))
}

/// What the audit said last of a thing.
async fn last(work: &mut Work, edit: &SqlEdit) -> Result<Option<Value>> {
    let last = sql!(
        "SELECT after FROM audit WHERE id = $1 AND kind = $2 AND namespace = $3 ORDER BY number DESC LIMIT 1",
        &edit.id,
        edit.kind.name(),
        &edit.namespace,
    );
    let Some(row) = work.tx.one(last).await? else { return Ok(None) };
    let after: Option<String> = row.get(0)?;
    Ok(after.and_then(|after| serde_json::from_str(&after).ok()))
}
