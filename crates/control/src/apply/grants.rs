//! Edits of grants.

use std::collections::BTreeSet;

use tollgate_rules::RuleFile;
use tollgate_rules::check::across;
use tollgate_rules::problem::Problem;

use super::check::{EditErrors, split};
use super::plan::{check_precondition, record_change};
use super::rule_suggestions::RuleSuggestions;
use super::{ChangePlan, RecordKey};
use crate::record::{GrantDraft, GrantRecord, document};
use crate::write_tx::WriteTx;
use crate::{ChangeSet, FieldError, Precondition, RecordKind, Result};

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
        let mut suggestions = RuleSuggestions::new(change_set);
        for (key, record) in &touched {
            let Ok(spec) = document::grant(&record.draft) else { continue };
            let rules = self.specs_after(&(key.0.clone(), spec.rule.clone()), change_set);
            let file = RuleFile { namespace: key.0.clone(), rules, grants: vec![spec.clone()], ..RuleFile::default() };
            for problem in across(&file) {
                let Some((_, rest)) = split("grants", &problem.field) else { continue };
                let message = problem.message.replace("grants[0].", "");
                let mut problem = Problem { field: rest.to_owned(), message, ..problem };
                if problem.code == "unknown-rule" {
                    problem = problem.help(suggestions.help(&key.0, &spec.rule, write).await?);
                }
                document::of_grant(vec![problem])
                    .into_iter()
                    .for_each(|fault| errors.add(RecordKind::Grant, key, fault));
            }
        }
        Ok(())
    }
}
