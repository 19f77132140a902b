//! Differences between generations, computed from the audit.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{AuditRecord, Control};
use crate::audit::{self, AuditRow};
use crate::db::{Sql, SqlRow, Tx, sql};
use crate::record::{
    ClientDraft, GrantDraft, NamespaceDraft, OverrideDraft, PlanDraft, RuleDraft, RuleModeDraft, document,
};
use crate::{Change, Edit, Error, Precondition, RecordKind, Result};

/// Most records that may differ between two compared generations.
const RECORDS_MAX: usize = 100_000;

/// Kind, namespace and id.
type RecordId = (RecordKind, String, String);

impl Control {
    /// The changes from generation `from` to generation `to`, which may be the earlier one.
    pub async fn diff(&self, from: i64, to: i64) -> Result<Vec<Change>> {
        let mut changes = self.between(from.min(to), Some(from.max(to))).await?;
        if from > to {
            changes.iter_mut().for_each(|change| std::mem::swap(&mut change.before, &mut change.after));
        }
        Ok(changes)
    }

    /// The edits that restore the state of a generation. Deleted records return with new versions.
    pub async fn rollback_edits(&self, generation: i64) -> Result<Vec<Edit>> {
        let changes = self.between(generation, None).await?;
        let mut edits =
            changes.iter().filter_map(|change| revert(change).transpose()).collect::<Result<Vec<Edit>>>()?;
        edits.sort_by_key(apply_order);
        Ok(edits)
    }

    /// The edit that reverts one change, by its number in the audit. Applying it fails if the record was changed since.
    /// A change of a namespace that the caller may not see is answered as one that does not exist.
    pub async fn revert_edit(&self, number: i64, may_see: impl Fn(&str) -> bool) -> Result<Edit> {
        let mut sql = Sql::new(audit::SELECT, vec![]);
        sql.and(" WHERE number = ?", [number.into()]);
        let row = self.read(async |tx| tx.one(sql).await).await?;
        let row = row.map(|row| AuditRow::read(&row)).transpose()?.filter(|row| may_see(&row.namespace));
        let row = row.ok_or_else(|| Error::NotFound(format!("change {number} in the audit")))?;
        let AuditRecord { generation, kind, namespace, id, before, after, .. } = AuditRecord::of(row)?;
        let expected = if after.is_some() { Precondition::Version(generation) } else { Precondition::Absent };
        let change = Change { kind, namespace, id, before, after };
        let Some(mut edit) = revert(&change)? else {
            let what = kind.name();
            return Err(Error::Conflict(format!("change {number} is of a {what}, which is not reverted this way")));
        };
        edit.set_expected(expected);
        Ok(edit)
    }

    /// The changes from one generation to a later one; to the present one if `to` is `None`.
    async fn between(&self, from: i64, to: Option<i64>) -> Result<Vec<Change>> {
        let mut tx = self.pool().read_long().await?;
        let present = present(&mut tx).await?;
        let to = to.unwrap_or(present);
        for generation in [from, to] {
            if !(0..=present).contains(&generation) {
                return Err(Error::NotFound(format!("generation {generation}; the present one is {present}")));
            }
        }
        let mut records: BTreeMap<RecordId, (Option<Value>, Option<Value>)> = BTreeMap::new();
        let mut sql = Sql::new(audit::SELECT, vec![]);
        sql.and(" WHERE generation > ? AND generation <= ? ORDER BY number", [from.into(), to.into()]);
        let fold = |row: SqlRow| {
            let record = AuditRecord::of(AuditRow::read(&row)?)?;
            let entry = records.entry((record.kind, record.namespace, record.id));
            entry.or_insert((record.before, None)).1 = record.after;
            if records.len() > RECORDS_MAX {
                return Err(Error::Conflict(format!(
                    "more than {RECORDS_MAX} records differ between generations {from} and {to}; take smaller steps"
                )));
            }
            Ok(())
        };
        tx.each(sql, fold).await?;
        let _ = tx.rollback().await;
        let records = records.into_iter().filter(|((kind, ..), (before, after))| {
            *kind != RecordKind::Everything && content(before.as_ref()) != content(after.as_ref())
        });
        let change = |((kind, namespace, id), (before, after))| Change { kind, namespace, id, before, after };
        Ok(records.map(change).collect())
    }
}

async fn present(tx: &mut Tx) -> Result<i64> {
    match tx.one(sql!("SELECT generation FROM tollgate_state")).await? {
        Some(row) => row.get(0),
        None => Err(Error::Schema("tollgate_state has lost its row; restore the database".to_owned())),
    }
}

/// A record without the fields that every change sets.
pub(super) fn content(record: Option<&Value>) -> Option<Value> {
    let mut record = record?.clone();
    if let Value::Object(fields) = &mut record {
        for name in ["created_at", "updated_at", "version"] {
            fields.remove(name);
        }
    }
    Some(record)
}

/// The audit's representation of an unreadable row.
pub(super) fn unreadable(why: &str) -> Value {
    json!({ UNREADABLE: why })
}

const UNREADABLE: &str = "unreadable";

/// The edit that reverts a change; `None` for tokens, keys and the mode. Overrides, grants and clients that no node could use were
/// not in force and are not restored.
fn revert(change: &Change) -> Result<Option<Edit>> {
    let (namespace, id, expect) = (change.namespace.clone(), change.id.clone(), Precondition::Anything);
    let before = change.before.as_ref().filter(|before| before.get(UNREADABLE).is_none());
    Ok(Some(match change.kind {
        RecordKind::Rule => {
            Edit::Rule { namespace, rule_id: id, to: before.map(RuleDraft::from_json).transpose()?, expect }
        }
        RecordKind::Override => {
            let to = before.map(OverrideDraft::from_json).transpose()?;
            let to = to.filter(|draft| document::overriding(draft).is_ok());
            Edit::Override { namespace, override_id: id, to, expect }
        }
        RecordKind::Grant => {
            let to = before.map(GrantDraft::from_json).transpose()?;
            let to = to.filter(|draft| document::grant(draft).is_ok());
            Edit::Grant { namespace, grant_id: id, to, expect }
        }
        RecordKind::RuleMode => {
            let to = before.map(RuleModeDraft::from_json).transpose()?;
            Edit::RuleMode { namespace, rule_id: id, to, expect }
        }
        RecordKind::Client => {
            let to = before.map(ClientDraft::from_json).transpose()?;
            let to = to.filter(|draft| document::client(&id, draft).is_ok());
            Edit::Client { namespace, client_key: id, to, expect }
        }
        RecordKind::Plan => {
            Edit::Plan { namespace, plan_id: id, to: before.map(PlanDraft::from_json).transpose()?, expect }
        }
        RecordKind::Namespace => {
            Edit::Namespace { namespace, to: before.map(NamespaceDraft::from_json).transpose()?, expect }
        }
        RecordKind::Token
        | RecordKind::Key
        | RecordKind::Webhook
        | RecordKind::Penalty
        | RecordKind::Mode
        | RecordKind::Counter
        | RecordKind::Everything => {
            return Ok(None);
        }
    }))
}

/// Position of an edit: records that others depend on are created first and deleted last.
fn apply_order(edit: &Edit) -> u8 {
    match edit {
        Edit::Namespace { .. } => 0,
        Edit::Rule { to: Some(_), .. } | Edit::Plan { .. } => 1,
        Edit::Override { .. } | Edit::Grant { .. } | Edit::RuleMode { .. } => 2,
        Edit::Rule { to: None, .. } => 3,
        Edit::Client { .. } => 4,
    }
}
