//! Overrides, grants and modes of rules that go: they go too, each as a change of its own.

use std::collections::BTreeSet;

use serde_json::Value;
use tollgate_rules::plan::rule_name;

use super::plan::record_change;
use super::row_set::is_valid_text_key;
use super::{ChangePlan, RecordKey};
use crate::db::Sql;
use crate::record::{GrantRecord, OverrideRecord, PlanDraft, StoredRecord};
use crate::write_tx::WriteTx;
use crate::{ChangeSet, Dependents, Edit, Error, Result};

/// Most overrides, and most grants, that are deleted with their rules: each is a row of the audit, in one transaction.
const CASCADE_MAX: usize = 10_000;

impl ChangePlan {
    /// Reads what depends on the rules that the edits delete, alone or with their plan. Plans have been read.
    pub(super) async fn read_dependents(&mut self, change_set: &ChangeSet, write: &mut WriteTx) -> Result<()> {
        if change_set.dependents == Dependents::Keep {
            return Ok(());
        }
        let (mut modes, mut rules) = (BTreeSet::new(), BTreeSet::new());
        for edit in &change_set.edits {
            match edit {
                Edit::Rule { namespace, rule_id, to: None, .. } => {
                    let key = (namespace.clone(), rule_id.clone());
                    if is_valid_text_key(&key) {
                        self.read_overrides_and_grants(
                            namespace,
                            std::slice::from_ref(rule_id),
                            &format!("rule {rule_id} has"),
                            write,
                        )
                        .await?;
                        modes.insert(key);
                    }
                }
                Edit::Plan { namespace, plan_id, to, .. } => {
                    let key = (namespace.clone(), plan_id.clone());
                    let dropped = self.dropped_rules(&key, to.as_ref());
                    if dropped.is_empty() {
                        continue;
                    }
                    let full = dropped.iter().map(|name| rule_name(plan_id, name));
                    let names: Vec<String> = full.chain(dropped.iter().cloned()).collect();
                    self.read_overrides_and_grants(
                        namespace,
                        &names,
                        &format!("plan {plan_id} and its rules have"),
                        write,
                    )
                    .await?;
                    modes.extend(names.iter().map(|name| (namespace.clone(), name.clone())));
                    rules.extend(dropped.into_iter().map(|name| (namespace.clone(), name)));
                }
                _ => {}
            }
        }
        self.modes.read(modes, &mut write.tx).await?;
        self.rules.read(rules, &mut write.tx).await
    }

    async fn read_overrides_and_grants(
        &mut self,
        namespace: &str,
        rules: &[String],
        what: &str,
        write: &mut WriteTx,
    ) -> Result<()> {
        let overrides = of_rules(OverrideRecord::TABLE.select, namespace, rules);
        bounded(self.overrides.load(overrides, &mut write.tx).await?, what, "overrides")?;
        let grants = of_rules(GrantRecord::TABLE.select, namespace, rules);
        bounded(self.grants.load(grants, &mut write.tx).await?, what, "grants")
    }

    /// Names within plans of the rules that a plan contains now and would not contain after an edit.
    fn dropped_rules(&self, plan: &RecordKey, to: Option<&PlanDraft>) -> Vec<String> {
        let before: BTreeSet<String> = self.plans.get(plan).map(|record| names(&record.draft)).unwrap_or_default();
        let after = to.map(names).unwrap_or_default();
        before.difference(&after).cloned().collect()
    }

    /// Deletes what depends on rules that a plan does not contain any more, after the edit of the plan: by the names of
    /// these rules, and by the names within plans that no other rule has.
    pub(super) fn cascade_plan(&mut self, plan: &RecordKey, before: Option<&PlanDraft>, change_set: &ChangeSet) {
        let now = self.plans.get(plan).map(|record| names(&record.draft)).unwrap_or_default();
        let gone: Vec<String> = before.map(names).unwrap_or_default().difference(&now).cloned().collect();
        if gone.is_empty() {
            return;
        }
        let of_namespace = self.plans.all().filter(|(key, _)| key.0 == plan.0);
        let in_plans: BTreeSet<String> = of_namespace.flat_map(|(_, record)| names(&record.draft)).collect();
        for name in gone {
            self.cascade(&(plan.0.clone(), rule_name(&plan.1, &name)));
            let is_of_file = change_set.file_rule(&plan.0, &name).is_some()
                || change_set.file_rules_in_plans(&plan.0, &name).next().is_some();
            let short = (plan.0.clone(), name);
            if !is_of_file && !in_plans.contains(&short.1) && self.rules.get(&short).is_none() {
                self.cascade(&short);
            }
        }
    }

    /// Deletes the overrides, the grants and the mode of a rule.
    pub(super) fn cascade(&mut self, rule: &RecordKey) {
        let is_named = |namespace: &str, rule_id: &str| namespace == rule.0 && rule_id == rule.1;
        let overrides = self.overrides.all().filter(|(_, record)| is_named(&record.namespace, &record.draft.rule_id));
        for key in overrides.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            record_change(&mut self.overrides, &mut self.changes, key, None);
        }
        let grants = self.grants.all().filter(|(_, record)| is_named(&record.namespace, &record.draft.rule_id));
        for key in grants.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            record_change(&mut self.grants, &mut self.changes, key, None);
        }
        if self.modes.get(rule).is_some() {
            record_change(&mut self.modes, &mut self.changes, rule.clone(), None);
        }
    }
}

/// Names within plans of the rules that a plan contains.
fn names(plan: &PlanDraft) -> BTreeSet<String> {
    let name = |limit: &Value| limit.get("name").and_then(Value::as_str).map(str::to_owned);
    plan.limits.iter().filter_map(name).filter(|name| !name.contains('\0')).collect()
}

fn of_rules(select: &'static str, namespace: &str, rules: &[String]) -> Sql {
    let mut sql = Sql::new(select, vec![]);
    sql.and(" WHERE namespace = ?", [namespace.into()]);
    sql.and_in("rule_id", Some(rules));
    sql.and(" LIMIT ?", [i64::try_from(CASCADE_MAX + 1).unwrap_or(i64::MAX).into()]);
    sql
}

fn bounded(count: usize, what: &str, kind: &str) -> Result<()> {
    match count {
        count if count > CASCADE_MAX => Err(Error::Conflict(format!(
            "the {what} more than {CASCADE_MAX} {kind}; delete those first, in several steps"
        ))),
        _ => Ok(()),
    }
}
