//! Edits of grants.

use std::collections::BTreeSet;

use tollgate_rules::check::across;
use tollgate_rules::problem::Problem;
use tollgate_rules::{RuleFile, nearest};

use super::check::{EditErrors, split};
use super::plan::{check_precondition, record_change};
use super::{ChangePlan, RecordKey};
use crate::db::sql;
use crate::record::{GrantDraft, GrantRecord, document};
use crate::write_tx::WriteTx;
use crate::{ChangeSet, FieldError, Precondition, RecordKind, Result};

/// Most names of rules among which the nearest to a misspelt one is looked for.
const NAMES_MAX: i64 = 1_000;

impl ChangePlan {
    pub(super) fn grant(
        &mut self,
        key: RecordKey,
        to: Option<&GrantDraft>,
        expect: Precondition,
        write: &WriteTx,
    ) -> Result<Vec<FieldError>> {
        let before = self.grants.get(&key);
        check_precondition(expect, RecordKind::Grant, &key, before)?;
        let to = to.map(|draft| GrantDraft { valid_from: draft.valid_from.or(Some(write.at)), ..draft.clone() });
        if before.map(|before| &before.draft) == to.as_ref() {
            return Ok(Vec::new());
        }
        if let Some(draft) = &to {
            let mut faults: Vec<FieldError> = document::bad_id("namespace", &key.0).into_iter().collect();
            faults.extend(document::bad_id("grant_id", &key.1));
            faults.extend(document::grant(draft).err().unwrap_or_default());
            if !faults.is_empty() {
                return Ok(faults);
            }
        }
        let stamp = write.stamp(before.map(|before| before.created_at));
        let record = to.map(|draft| GrantRecord {
            namespace: key.0.clone(),
            grant_id: key.1.clone(),
            draft,
            created_at: stamp.created_at,
            updated_at: stamp.updated_at,
            version: stamp.version,
        });
        record_change(&mut self.grants, &mut self.changes, key, record);
        Ok(Vec::new())
    }

    /// A grant must be of a quota that is counted for its client. A rule that stops being a quota keeps its grants,
    /// which then count for nothing.
    pub(super) async fn validate_grants(
        &mut self,
        errors: &mut EditErrors,
        change_set: &ChangeSet,
        write: &mut WriteTx,
    ) -> Result<()> {
        let touched: Vec<(RecordKey, GrantRecord)> =
            self.grants.changed().filter_map(|(key, record)| Some((key.clone(), record?.clone()))).collect();
        let of = |(key, record): &(RecordKey, GrantRecord)| (key.0.clone(), record.draft.rule_id.clone());
        let rule_keys: BTreeSet<RecordKey> = touched.iter().map(of).collect();
        self.rules.read(rule_keys, &mut write.tx).await?;
        for (key, record) in &touched {
            let Ok(spec) = document::grant(&record.draft) else { continue };
            let rules = self.specs_after(&(key.0.clone(), spec.rule.clone()), change_set);
            let file = RuleFile { namespace: key.0.clone(), rules, grants: vec![spec.clone()], ..RuleFile::default() };
            for problem in across(&file) {
                let Some((_, rest)) = split("grants", &problem.field) else { continue };
                let message = problem.message.replace("grants[0].", "");
                let mut problem = Problem { field: rest.to_owned(), message, ..problem };
                if problem.code == "unknown-rule" {
                    problem = problem.help(suggestion(&key.0, &spec.rule, change_set, write).await?);
                }
                document::of_grant(vec![problem])
                    .into_iter()
                    .for_each(|fault| errors.add(RecordKind::Grant, key, fault));
            }
        }
        Ok(())
    }
}

/// The rule that may be meant: one of the database, or of those of files that the change set brings along.
async fn suggestion(namespace: &str, name: &str, change_set: &ChangeSet, write: &mut WriteTx) -> Result<String> {
    let rows = sql!("SELECT rule_id FROM rate_limit_rules WHERE namespace = $1 LIMIT $2", namespace, NAMES_MAX);
    let mut names = Vec::new();
    for row in write.tx.all(rows).await? {
        names.push(row.lossy_text(0)?);
    }
    let in_files = change_set.file_rules.iter().filter(|(whose, _)| whose == namespace);
    names.extend(in_files.filter_map(|(_, spec)| spec.name.clone()));
    Ok(match nearest(name, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "name a quota of this namespace".to_owned(),
    })
}
