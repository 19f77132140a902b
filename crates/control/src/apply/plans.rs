//! Plans after the edits of a change set: what they extend, and the clients that have them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tollgate_rules::problem::{Problem, quote};
use tollgate_rules::{PlanSpec, RuleSpec, check, nearest, plan};

use super::check::EditErrors;
use super::{ChangePlan, RecordKey};
use crate::db::{Sql, sql};
use crate::error::field_error;
use crate::record::{ClientRecord, PlanRecord, RuleRow, StoredRecord, client_plans};
use crate::write_tx::WriteTx;
use crate::{ChangeSet, Error, FieldError, RecordKind, Result};

/// Clients of a deleted plan that the refusal names.
const NAMED_MAX: usize = 3;

impl ChangePlan {
    /// Reads all plans of the namespaces that the edits touch: there are few.
    pub(super) async fn read_plans(&mut self, namespaces: &BTreeSet<&str>, write: &mut WriteTx) -> Result<()> {
        for namespace in namespaces.iter().filter(|namespace| !namespace.contains('\0')) {
            let mut sql = Sql::new(PlanRecord::TABLE.select, vec![]);
            sql.and(" WHERE namespace = ?", [(*namespace).into()]);
            for row in write.tx.all(sql).await? {
                // A row that SQL broke is quarantined, and keeps no other edit from being made.
                if let Ok(record) = PlanRecord::read(&row) {
                    self.plans.put((record.namespace.clone(), record.plan_id.clone()), record);
                }
            }
        }
        Ok(())
    }

    /// The valid plans of a namespace after the edits.
    fn plan_specs(&self, namespace: &str) -> Vec<PlanSpec> {
        let settings = self.settings(namespace);
        let own = self.plans.all().filter(|(key, _)| key.0 == namespace);
        own.filter_map(|(_, record)| record.spec(&settings).ok()).collect()
    }

    /// The rules of plans that an override may mean by this name: the one of that name, or all with it in their plan.
    pub(super) fn plan_rules(&self, namespace: &str, name: &str) -> Vec<RuleSpec> {
        let rules = plan::expand(&self.plan_specs(namespace));
        match rules.iter().find(|rule| rule.name.as_deref() == Some(name)) {
            Some(rule) => vec![rule.clone()],
            None => {
                let is_named = |rule: &RuleSpec| rule.plan.as_ref().is_some_and(|origin| origin.name == name);
                rules.into_iter().filter(is_named).collect()
            }
        }
    }

    /// A rule that is not there may be one of a plan.
    pub(super) fn of_plan(&self, rule: &RecordKey, error: Error) -> Error {
        let plan = self.plans.get(&plan_of(rule));
        match (error, plan, rule.1.split_once('.')) {
            (Error::NotFound(_) | Error::Stale { version: None, .. }, Some(plan), Some((_, name)))
                if plan.contains(name) =>
            {
                plan.holds_rule(name)
            }
            (error, _, _) => error,
        }
    }

    /// Plans must fit each other, and clients must have plans that exist.
    pub(super) async fn validate_plans(
        &self,
        errors: &mut EditErrors,
        change_set: &ChangeSet,
        write: &mut WriteTx,
    ) -> Result<()> {
        let changed: BTreeSet<&String> = self.plans.changed().map(|(key, _)| &key.0).collect();
        for namespace in changed {
            for problem in check::plans(&self.plan_specs(namespace)) {
                self.report_plan_problem(namespace, problem, errors)?;
            }
        }
        for (key, record) in self.plans.changed() {
            match record {
                None => self.refuse_if_assigned(key, write).await?,
                Some(_) => self.refuse_taken_names(key, errors, write).await?,
            }
        }
        self.refuse_names_of_plans(errors);
        self.validate_assignments(errors, change_set);
        Ok(())
    }

    fn report_plan_problem(&self, namespace: &str, problem: Problem, errors: &mut EditErrors) -> Result<()> {
        let path = problem.field.strip_prefix("plans.").unwrap_or_default();
        let (plan_id, field) = path.split_once('.').unwrap_or((path, ""));
        let key = (namespace.to_owned(), plan_id.to_owned());
        if self.plans.is_changed(&key) {
            errors.add(RecordKind::Plan, &key, FieldError { field: field.to_owned(), ..FieldError::from(problem) });
            return Ok(());
        }
        let parent = self.plans.get(&key).and_then(|record| record.draft.extends.clone()).unwrap_or_default();
        let is_touched = self.plans.is_changed(&(namespace.to_owned(), parent.clone()));
        match is_touched || problem.code == "duplicate-default" {
            true => Err(Error::Conflict(format!(
                "the plan {} would be left invalid: {}; change it first",
                quote(plan_id),
                problem.message
            ))),
            false => Ok(()), // it was so before
        }
    }

    /// A plan that clients have cannot be deleted.
    async fn refuse_if_assigned(&self, key: &RecordKey, write: &mut WriteTx) -> Result<()> {
        // Steps are JSON lists: in the order of the index they stand together.
        let mut sql = Sql::new(ClientRecord::TABLE.select, vec![]);
        sql.and(
            " WHERE namespace = ? AND (plan = ? OR (plan >= '[' AND plan < ?))",
            [(&key.0).into(), (&key.1).into(), "\\".into()],
        );
        let mut assigned = AssignedClients::default();
        let find = |row: crate::db::SqlRow| {
            let Ok(client) = ClientRecord::read(&row) else { return Ok(()) };
            let client_key = (client.namespace.clone(), client.client_key.clone());
            if !self.clients.is_changed(&client_key) {
                assigned.add(&client, &key.1);
            }
            Ok(())
        };
        write.tx.each(sql, find).await?;
        let changed = self.clients.changed().filter_map(|(_, record)| record);
        changed.filter(|client| client.namespace == key.0).for_each(|client| assigned.add(client, &key.1));
        match assigned.count {
            0 => Ok(()),
            _ => Err(Error::Conflict(format!(
                "clients have the plan {}: {assigned}; assign another first",
                quote(&key.1)
            ))),
        }
    }

    /// Rules of the plan must not have the names of other rules.
    async fn refuse_taken_names(&self, key: &RecordKey, errors: &mut EditErrors, write: &mut WriteTx) -> Result<()> {
        let rows = sql!(
            "SELECT rule_id FROM rate_limit_rules WHERE namespace = $1 AND rule_id >= $2 AND rule_id < $3",
            &key.0,
            format!("{}.", key.1),
            format!("{}/", key.1),
        );
        let mut stored: BTreeSet<String> = BTreeSet::new();
        for row in write.tx.all(rows).await? {
            stored.insert(row.lossy_text(0)?);
        }
        let specs = self.plan_specs(&key.0);
        let Some(spec) = specs.iter().find(|spec| spec.name == key.1) else { return Ok(()) };
        let is_rule = |name: &str| {
            let rule = (key.0.clone(), name.to_owned());
            let changed: Option<Option<&RuleRow>> = self.rules.is_changed(&rule).then(|| self.rules.get(&rule));
            changed.map_or(stored.contains(name), |row| row.is_some())
        };
        for (number, limit) in spec.limits.iter().enumerate() {
            let name = plan::rule_name(&key.1, limit.name.as_deref().unwrap_or_default());
            if is_rule(&name) {
                let message = format!("there is a rule with the name {}", quote(&name));
                let fault =
                    field_error(&format!("limits[{number}].name"), "duplicate-name", &message, "use another name");
                errors.add(RecordKind::Plan, key, fault);
            }
        }
        Ok(())
    }

    /// Rules must not have the names of rules of plans.
    fn refuse_names_of_plans(&self, errors: &mut EditErrors) {
        let mut taken: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let dotted = self.rules.changed().filter(|(key, row)| row.is_some() && key.1.contains('.'));
        for (key, _) in dotted {
            let names = taken.entry(&key.0).or_insert_with(|| {
                plan::expand(&self.plan_specs(&key.0)).into_iter().filter_map(|rule| rule.name).collect()
            });
            if names.contains(&key.1) && !self.plans.is_changed(&plan_of(key)) {
                let message = format!("a plan has a rule with the name {}", quote(&key.1));
                errors.add(RecordKind::Rule, key, field_error("rule_id", "duplicate-name", &message, "use another id"));
            }
        }
    }

    fn validate_assignments(&self, errors: &mut EditErrors, change_set: &ChangeSet) {
        for (key, client) in self.clients.changed() {
            let Some(client) = client else { continue };
            for name in client_plans(&client.draft) {
                let of_file = || change_set.file_plans.iter().filter(|(namespace, _)| *namespace == key.0);
                let is_known = self.plans.get(&(key.0.clone(), name.clone())).is_some()
                    || of_file().any(|(_, plan)| *plan == name);
                if is_known {
                    continue;
                }
                let stored = self.plans.all().filter(|(plan, _)| plan.0 == key.0).map(|(plan, _)| plan.1.as_str());
                let help = match nearest(&name, stored.chain(of_file().map(|(_, plan)| plan.as_str()))) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "create the plan first".to_owned(),
                };
                let message = format!("there is no plan with the name {}", quote(&name));
                errors.add(RecordKind::Client, key, field_error("plan", check::UNKNOWN_PLAN, &message, &help));
            }
        }
    }
}

/// The plan that a rule of this name would be of.
fn plan_of(rule: &RecordKey) -> RecordKey {
    (rule.0.clone(), rule.1.split('.').next().unwrap_or_default().to_owned())
}

/// Clients that have a plan: the first ones, and their number.
#[derive(Default)]
struct AssignedClients {
    named: Vec<String>,
    count: usize,
}

impl AssignedClients {
    fn add(&mut self, client: &ClientRecord, plan: &str) {
        if client_plans(&client.draft).any(|own| own == plan) {
            self.count += 1;
            if self.named.len() < NAMED_MAX {
                self.named.push(quote(&client.client_key));
            }
        }
    }
}

impl fmt::Display for AssignedClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named.join(", "))?;
        match self.count - self.named.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
