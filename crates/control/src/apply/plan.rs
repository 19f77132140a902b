//! Edits applied to rows in memory.

use std::collections::{BTreeSet, HashMap};

use tollgate_rules::RuleSpec;

use super::rule_suggestions::unknown_rule;
use super::{RecordKey, RowSet};
use crate::record::{
    ClientDraft, ClientRecord, GrantRecord, NamespaceDraft, NamespaceRow, OverrideDraft, OverrideRecord, PlanDraft,
    PlanRecord, RowStamp, RuleColumns, RuleDraft, RuleModeDraft, RuleModeRecord, RuleRow, StoredRecord, document,
};
use crate::write_tx::WriteTx;
use crate::{Change, ChangeSet, Dependents, Edit, Error, FieldError, Precondition, RecordKind, Result};

/// The rows that a change set touches or depends on, and the changes to them.
#[derive(Default)]
pub(crate) struct ChangePlan {
    pub(super) namespaces: RowSet<NamespaceRow>,
    pub(super) rules: RowSet<RuleRow>,
    pub(super) overrides: RowSet<OverrideRecord>,
    pub(super) grants: RowSet<GrantRecord>,
    pub(super) modes: RowSet<RuleModeRecord>,
    pub(super) clients: RowSet<ClientRecord>,
    pub(super) plans: RowSet<PlanRecord>,
    /// Specifications of the rules that were created or changed.
    pub(super) specs: HashMap<RecordKey, RuleSpec>,
    pub(super) changes: Vec<Change>,
    faults: Vec<FieldError>,
}

impl ChangePlan {
    /// Reads every row that the edits name, and what depends on rules to be deleted.
    pub(super) async fn read(&mut self, change_set: &ChangeSet, write: &mut WriteTx) -> Result<()> {
        let mut keys: HashMap<RecordKind, BTreeSet<RecordKey>> = HashMap::new();
        let mut namespaces: BTreeSet<&str> = BTreeSet::new();
        for edit in &change_set.edits {
            let (kind, key) = key_of(edit);
            namespaces.insert(edit.namespace());
            if matches!(kind, RecordKind::Rule | RecordKind::Namespace | RecordKind::Plan) {
                keys.entry(RecordKind::Namespace).or_default().insert((key.0.clone(), key.0.clone()));
            }
            if matches!(edit, Edit::RuleMode { to: Some(_), .. }) {
                keys.entry(RecordKind::Rule).or_default().insert(key.clone());
            }
            keys.entry(kind).or_default().insert(key);
        }
        let mut keys = |kind| keys.remove(&kind).unwrap_or_default();
        self.namespaces.read(keys(RecordKind::Namespace), &mut write.tx).await?;
        self.rules.read(keys(RecordKind::Rule), &mut write.tx).await?;
        self.overrides.read(keys(RecordKind::Override), &mut write.tx).await?;
        self.grants.read(keys(RecordKind::Grant), &mut write.tx).await?;
        self.modes.read(keys(RecordKind::RuleMode), &mut write.tx).await?;
        self.plans.read(keys(RecordKind::Plan), &mut write.tx).await?;
        self.read_plans(&namespaces, write).await?;
        self.read_dependents(change_set, write).await?;
        self.clients.read(keys(RecordKind::Client), &mut write.tx).await
    }

    /// Applies the edits to the rows, in their order.
    pub(super) fn apply_edits(&mut self, change_set: &ChangeSet, write: &WriteTx) -> Result<()> {
        let settings = self.settings_after(change_set);
        let several = change_set.edits.len() > 1;
        for (index, edit) in change_set.edits.iter().enumerate() {
            let (_, key) = key_of(edit);
            let faults = match edit {
                Edit::Rule { to, expect, .. } => {
                    let settings = settings.get(&key.0).cloned().unwrap_or_default();
                    self.rule(key, to.as_ref(), *expect, &settings, change_set.dependents, write)?
                }
                Edit::Override { to, expect, .. } => self.overriding(key, to.as_ref(), *expect, write)?,
                Edit::Grant { to, expect, .. } => self.grant(key, to.as_ref(), *expect, write)?,
                Edit::RuleMode { to, expect, .. } => self.rule_mode(key, to.as_ref(), *expect, change_set, write)?,
                Edit::Client { to, expect, .. } => self.client(key, to.as_ref(), *expect, write)?,
                Edit::Plan { to, expect, .. } => {
                    let settings = settings.get(&key.0).cloned().unwrap_or_default();
                    self.plan(key, to.as_ref(), *expect, &settings, change_set, write)?
                }
                Edit::Namespace { to, expect, .. } => self.namespace(key, to.as_ref(), *expect, write)?,
            };
            self.faults.extend(faults.into_iter().map(|fault| at(several.then_some(index), fault)));
        }
        match self.faults.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(std::mem::take(&mut self.faults))),
        }
    }

    /// Settings of the namespaces after the edits.
    fn settings_after(&self, change_set: &ChangeSet) -> HashMap<String, NamespaceDraft> {
        let mut settings: HashMap<String, NamespaceDraft> =
            self.namespaces.all().map(|(key, row)| (key.0.clone(), row.draft.clone())).collect();
        for edit in &change_set.edits {
            if let Edit::Namespace { namespace, to, .. } = edit {
                settings.insert(namespace.clone(), to.clone().unwrap_or_default());
            }
        }
        settings
    }

    fn rule(
        &mut self,
        key: RecordKey,
        to: Option<&RuleDraft>,
        expect: Precondition,
        settings: &NamespaceDraft,
        dependents: Dependents,
        write: &WriteTx,
    ) -> Result<Vec<FieldError>> {
        let before = self.rules.get(&key);
        check_precondition(expect, RecordKind::Rule, &key, before).map_err(|error| self.of_plan(&key, error))?;
        let Some(draft) = to else {
            if before.is_some() {
                if dependents == Dependents::Delete {
                    self.cascade(&key);
                }
                self.specs.remove(&key);
                record_change(&mut self.rules, &mut self.changes, key, None);
            }
            return Ok(Vec::new());
        };
        let mut faults: Vec<FieldError> = document::bad_id("namespace", &key.0).into_iter().collect();
        let (columns, spec) = match RuleColumns::of(&key.1, draft, &document::settings(settings)) {
            Ok(read) if faults.is_empty() => read,
            Ok(_) => return Ok(faults),
            Err(more) => {
                faults.extend(more);
                return Ok(faults);
            }
        };
        if before.is_none_or(|before| before.columns != columns) {
            let stamp = write.stamp(before.map(|before| before.stamp.created_at));
            let row = RuleRow { namespace: key.0.clone(), rule_id: key.1.clone(), columns, stamp };
            self.specs.insert(key.clone(), spec);
            record_change(&mut self.rules, &mut self.changes, key, Some(row));
        }
        Ok(Vec::new())
    }

    fn overriding(
        &mut self,
        key: RecordKey,
        to: Option<&OverrideDraft>,
        expect: Precondition,
        write: &WriteTx,
    ) -> Result<Vec<FieldError>> {
        let before = self.overrides.get(&key);
        check_precondition(expect, RecordKind::Override, &key, before)?;
        if before.map(|before| &before.draft) == to {
            return Ok(Vec::new());
        }
        if let Some(draft) = to {
            let mut faults: Vec<FieldError> = document::bad_id("namespace", &key.0).into_iter().collect();
            faults.extend(document::bad_id("override_id", &key.1));
            faults.extend(document::overriding(draft).err().unwrap_or_default());
            if !faults.is_empty() {
                return Ok(faults);
            }
        }
        let stamp = write.stamp(before.map(|before| before.created_at));
        let record = to.map(|draft| OverrideRecord {
            namespace: key.0.clone(),
            override_id: key.1.clone(),
            draft: draft.clone(),
            created_at: stamp.created_at,
            updated_at: stamp.updated_at,
            version: stamp.version,
        });
        record_change(&mut self.overrides, &mut self.changes, key, record);
        Ok(Vec::new())
    }

    fn rule_mode(
        &mut self,
        key: RecordKey,
        to: Option<&RuleModeDraft>,
        expect: Precondition,
        change_set: &ChangeSet,
        write: &WriteTx,
    ) -> Result<Vec<FieldError>> {
        let before = self.modes.get(&key);
        check_precondition(expect, RecordKind::RuleMode, &key, before)?;
        if before.map(|before| &before.draft) == to {
            return Ok(Vec::new());
        }
        if let Some(draft) = to {
            let is_of_plan = |rule: RuleSpec| rule.name.as_ref() == Some(&key.1);
            if self.rules.get(&key).is_none()
                && change_set.file_rule(&key.0, &key.1).is_none()
                && !self.plan_rules(&key.0, &key.1).into_iter().any(is_of_plan)
            {
                return Err(unknown_rule(&key.0, &key.1));
            }
            let mut faults = Vec::new();
            document::short_text("reason", &draft.reason, document::REASON_BYTES_MAX, &mut faults);
            if !faults.is_empty() {
                return Ok(faults);
            }
        }
        let stamp = write.stamp(before.map(|before| before.created_at));
        let record = to.map(|draft| RuleModeRecord {
            namespace: key.0.clone(),
            rule_id: key.1.clone(),
            draft: draft.clone(),
            created_at: stamp.created_at,
            updated_at: stamp.updated_at,
            version: stamp.version,
        });
        record_change(&mut self.modes, &mut self.changes, key, record);
        Ok(Vec::new())
    }

    fn client(
        &mut self,
        key: RecordKey,
        to: Option<&ClientDraft>,
        expect: Precondition,
        write: &WriteTx,
    ) -> Result<Vec<FieldError>> {
        let before = self.clients.get(&key);
        check_precondition(expect, RecordKind::Client, &key, before)?;
        if before.map(|before| &before.draft) == to {
            return Ok(Vec::new());
        }
        if let Some(draft) = to {
            let mut faults: Vec<FieldError> = document::bad_id("namespace", &key.0).into_iter().collect();
            faults.extend(document::client(&key.1, draft).err().unwrap_or_default());
            if !faults.is_empty() {
                return Ok(faults);
            }
        }
        let stamp = write.stamp(before.map(|before| before.created_at));
        let record = to.map(|draft| ClientRecord {
            namespace: key.0.clone(),
            client_key: key.1.clone(),
            draft: draft.clone(),
            created_at: stamp.created_at,
            updated_at: stamp.updated_at,
            version: stamp.version,
        });
        record_change(&mut self.clients, &mut self.changes, key, record);
        Ok(Vec::new())
    }

    fn plan(
        &mut self,
        key: RecordKey,
        to: Option<&PlanDraft>,
        expect: Precondition,
        settings: &NamespaceDraft,
        change_set: &ChangeSet,
        write: &WriteTx,
    ) -> Result<Vec<FieldError>> {
        let before = self.plans.get(&key).cloned();
        check_precondition(expect, RecordKind::Plan, &key, before.as_ref())?;
        if before.as_ref().map(|before| &before.draft) == to {
            return Ok(Vec::new());
        }
        if let Some(draft) = to {
            let mut faults: Vec<FieldError> = document::bad_id("namespace", &key.0).into_iter().collect();
            faults.extend(document::plan(&key.1, draft, &document::settings(settings)).err().unwrap_or_default());
            if !faults.is_empty() {
                return Ok(faults);
            }
        }
        let stamp = write.stamp(before.as_ref().map(|before| before.created_at));
        let record = to.map(|draft| PlanRecord {
            namespace: key.0.clone(),
            plan_id: key.1.clone(),
            draft: draft.clone(),
            created_at: stamp.created_at,
            updated_at: stamp.updated_at,
            version: stamp.version,
        });
        let recorded = self.changes.len();
        record_change(&mut self.plans, &mut self.changes, key.clone(), record);
        if change_set.dependents == Dependents::Delete {
            self.cascade_plan(&key, before.as_ref().map(|before| &before.draft), change_set);
        }
        // Dependents go first, as those of a rule do.
        self.changes.get_mut(recorded..).into_iter().for_each(|changes| changes.rotate_left(1));
        Ok(Vec::new())
    }

    fn namespace(
        &mut self,
        key: RecordKey,
        to: Option<&NamespaceDraft>,
        expect: Precondition,
        write: &WriteTx,
    ) -> Result<Vec<FieldError>> {
        check_precondition(expect, RecordKind::Namespace, &key, self.namespaces.get(&key))?;
        // A row that holds only defaults is not stored.
        let to = to.filter(|draft| **draft != NamespaceDraft::default());
        if self.namespaces.get(&key).map(|before| &before.draft) == to {
            return Ok(Vec::new());
        }
        let mut faults: Vec<FieldError> = document::bad_id("namespace", &key.0).into_iter().collect();
        faults.extend(to.and_then(document::namespace));
        if faults.is_empty() {
            let row = to.map(|draft| NamespaceRow {
                namespace: key.0.clone(),
                draft: draft.clone(),
                version: write.generation,
            });
            record_change(&mut self.namespaces, &mut self.changes, key, row);
        }
        Ok(faults)
    }

    /// Writes the difference and returns all changes.
    pub(super) async fn write(self, write: &mut WriteTx) -> Result<Vec<Change>> {
        let tx = &mut write.tx;
        // Deletions come first, to free names. Dependent rows are deleted before their rule and written after it.
        self.overrides.delete(tx).await?;
        self.grants.delete(tx).await?;
        self.modes.delete(tx).await?;
        self.rules.delete(tx).await?;
        self.clients.delete(tx).await?;
        self.plans.delete(tx).await?;
        self.namespaces.delete(tx).await?;
        self.namespaces.write(tx).await?;
        self.rules.write(tx).await.map_err(|error| match error {
            Error::Conflict(_) => Error::Conflict(
                "another rule of this namespace has the same client_key, endpoint and name; give it another name"
                    .to_owned(),
            ),
            other => other,
        })?;
        self.plans.write(tx).await?;
        self.overrides.write(tx).await?;
        self.grants.write(tx).await?;
        self.modes.write(tx).await?;
        self.clients.write(tx).await?;
        Ok(self.changes)
    }
}

impl WriteTx {
    /// The stamp of rows that this transaction writes.
    pub(super) fn stamp(&self, created_at: Option<crate::Instant>) -> RowStamp {
        RowStamp { created_at: created_at.unwrap_or(self.at), updated_at: self.at, version: self.generation }
    }
}

/// Prefixes the field with the index of the edit, if there are several.
pub(super) fn at(index: Option<usize>, mut fault: FieldError) -> FieldError {
    if let Some(index) = index {
        let dot = if fault.field.is_empty() { "" } else { "." };
        fault.field = format!("edits[{index}]{dot}{}", fault.field);
    }
    fault
}

/// Kind and key of the record that an edit changes.
pub(super) fn key_of(edit: &Edit) -> (RecordKind, RecordKey) {
    let (kind, namespace, id) = match edit {
        Edit::Rule { namespace, rule_id, .. } => (RecordKind::Rule, namespace, rule_id),
        Edit::Override { namespace, override_id, .. } => (RecordKind::Override, namespace, override_id),
        Edit::Grant { namespace, grant_id, .. } => (RecordKind::Grant, namespace, grant_id),
        Edit::RuleMode { namespace, rule_id, .. } => (RecordKind::RuleMode, namespace, rule_id),
        Edit::Client { namespace, client_key, .. } => (RecordKind::Client, namespace, client_key),
        Edit::Plan { namespace, plan_id, .. } => (RecordKind::Plan, namespace, plan_id),
        Edit::Namespace { namespace, .. } => (RecordKind::Namespace, namespace, namespace),
    };
    (kind, (namespace.clone(), id.clone()))
}

pub(super) fn check_precondition<R: StoredRecord>(
    expect: Precondition,
    kind: RecordKind,
    key: &RecordKey,
    before: Option<&R>,
) -> Result<()> {
    let what = || format!("{} {} in the namespace {}", kind.name(), key.1, key.0);
    let version = before.map(StoredRecord::version);
    match (expect, version) {
        (Precondition::Anything, _) | (Precondition::Absent, None) | (Precondition::Present, Some(_)) => Ok(()),
        (Precondition::Version(wanted), Some(version)) if wanted == version => Ok(()),
        (Precondition::Absent, Some(_)) => Err(Error::Conflict(format!("there is a {} already", what()))),
        (Precondition::Present, None) => Err(Error::NotFound(what())),
        (Precondition::Version(_), version) => Err(Error::Stale { what: what(), version }),
    }
}

pub(super) fn record_change<R: StoredRecord>(
    rows: &mut RowSet<R>,
    changes: &mut Vec<Change>,
    key: RecordKey,
    after: Option<R>,
) {
    changes.push(Change {
        kind: R::KIND,
        namespace: key.0.clone(),
        id: key.1.clone(),
        before: rows.get(&key).map(StoredRecord::json),
        after: after.as_ref().map(StoredRecord::json),
    });
    rows.set(key, after);
}
