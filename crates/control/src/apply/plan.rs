//! What an order makes of the rows that it touches.

use std::collections::{BTreeSet, HashMap};

use tollgate_rules::RuleSpec;

use super::shelf::is_askable;
use super::{Key, Shelf};
use crate::db::Sql;
use crate::record::{
    ClientDraft, ClientRecord, Columns, NamespaceDraft, NamespaceRow, OverrideDraft, OverrideRecord, RuleDraft,
    RuleModeDraft, RuleModeRecord, RuleRow, Stamp, Stored, document,
};
use crate::write_tx::Work;
use crate::{Change, Edit, Error, Expect, Fault, Kind, Order, Result};

/// Most overrides that go with a rule which is deleted. Each is a row of the audit, in one transaction.
const CASCADE_MAX: usize = 10_000;

/// The rows that an order touches, or depends on, and what it changes about them.
#[derive(Default)]
pub(crate) struct Plan {
    pub(super) namespaces: Shelf<NamespaceRow>,
    pub(super) rules: Shelf<RuleRow>,
    pub(super) overrides: Shelf<OverrideRecord>,
    pub(super) modes: Shelf<RuleModeRecord>,
    pub(super) clients: Shelf<ClientRecord>,
    /// What the rules mean that were made or changed.
    pub(super) specs: HashMap<Key, RuleSpec>,
    changes: Vec<Change>,
    faults: Vec<Fault>,
}

impl Plan {
    /// Takes out every row that the edits name, and the overrides of rules that go.
    pub(super) async fn read(&mut self, order: &Order, work: &mut Work) -> Result<()> {
        let mut keys: HashMap<Kind, BTreeSet<Key>> = HashMap::new();
        for edit in &order.edits {
            let (kind, key) = key_of(edit);
            if kind == Kind::Rule || kind == Kind::Namespace {
                keys.entry(Kind::Namespace).or_default().insert((key.0.clone(), key.0.clone()));
            }
            if matches!(edit, Edit::Rule { to: None, .. }) && is_askable(&key) {
                self.read_overrides(&key, work).await?;
                keys.entry(Kind::RuleMode).or_default().insert(key.clone());
            }
            if matches!(edit, Edit::RuleMode { to: Some(_), .. }) {
                keys.entry(Kind::Rule).or_default().insert(key.clone());
            }
            keys.entry(kind).or_default().insert(key);
        }
        let mut keys = |kind| keys.remove(&kind).unwrap_or_default();
        self.namespaces.read(keys(Kind::Namespace), &mut work.tx).await?;
        self.rules.read(keys(Kind::Rule), &mut work.tx).await?;
        self.overrides.read(keys(Kind::Override), &mut work.tx).await?;
        self.modes.read(keys(Kind::RuleMode), &mut work.tx).await?;
        self.clients.read(keys(Kind::Client), &mut work.tx).await
    }

    async fn read_overrides(&mut self, rule: &Key, work: &mut Work) -> Result<()> {
        let mut sql = Sql::new(OverrideRecord::TABLE.select, vec![]);
        sql.and(" WHERE namespace = ? AND rule_id = ?", [(&rule.0).into(), (&rule.1).into()]);
        sql.and(" LIMIT ?", [i64::try_from(CASCADE_MAX + 1).unwrap_or(i64::MAX).into()]);
        match self.overrides.take(sql, &mut work.tx).await? {
            count if count > CASCADE_MAX => Err(Error::Conflict(format!(
                "the rule {} has more than {CASCADE_MAX} overrides; delete those first, in several steps",
                rule.1
            ))),
            _ => Ok(()),
        }
    }

    /// Does the edits, one after the other, to the rows that were taken out.
    pub(super) fn fold(&mut self, order: &Order, work: &Work) -> Result<()> {
        let settings = self.settings_after(order);
        let several = order.edits.len() > 1;
        for (index, edit) in order.edits.iter().enumerate() {
            let (_, key) = key_of(edit);
            let faults = match edit {
                Edit::Rule { to, expect, .. } => {
                    let settings = settings.get(&key.0).cloned().unwrap_or_default();
                    self.rule(key, to.as_ref(), *expect, &settings, work)?
                }
                Edit::Override { to, expect, .. } => self.overriding(key, to.as_ref(), *expect, work)?,
                Edit::RuleMode { to, expect, .. } => self.rule_mode(key, to.as_ref(), *expect, order, work)?,
                Edit::Client { to, expect, .. } => self.client(key, to.as_ref(), *expect, work)?,
                Edit::Namespace { to, expect, .. } => self.namespace(key, to.as_ref(), *expect, work)?,
            };
            self.faults.extend(faults.into_iter().map(|fault| at(several.then_some(index), fault)));
        }
        match self.faults.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(std::mem::take(&mut self.faults))),
        }
    }

    /// How namespaces will read requests when the order is done.
    fn settings_after(&self, order: &Order) -> HashMap<String, NamespaceDraft> {
        let mut settings: HashMap<String, NamespaceDraft> =
            self.namespaces.all().map(|(key, row)| (key.0.clone(), row.draft.clone())).collect();
        for edit in &order.edits {
            if let Edit::Namespace { namespace, to, .. } = edit {
                settings.insert(namespace.clone(), to.clone().unwrap_or_default());
            }
        }
        settings
    }

    fn rule(
        &mut self,
        key: Key,
        to: Option<&RuleDraft>,
        expect: Expect,
        settings: &NamespaceDraft,
        work: &Work,
    ) -> Result<Vec<Fault>> {
        let before = self.rules.get(&key);
        meet(expect, Kind::Rule, &key, before)?;
        let Some(draft) = to else {
            if before.is_some() {
                self.cascade(&key);
                self.specs.remove(&key);
                turn(&mut self.rules, &mut self.changes, key, None);
            }
            return Ok(Vec::new());
        };
        let mut faults: Vec<Fault> = document::bad_id("namespace", &key.0).into_iter().collect();
        let (columns, spec) = match Columns::of(&key.1, draft, &document::settings(settings)) {
            Ok(read) if faults.is_empty() => read,
            Ok(_) => return Ok(faults),
            Err(more) => {
                faults.extend(more);
                return Ok(faults);
            }
        };
        if before.is_none_or(|before| before.columns != columns) {
            let stamp = work.stamp(before.map(|before| before.stamp.created_at));
            let row = RuleRow { namespace: key.0.clone(), rule_id: key.1.clone(), columns, stamp };
            self.specs.insert(key.clone(), spec);
            turn(&mut self.rules, &mut self.changes, key, Some(row));
        }
        Ok(Vec::new())
    }

    /// Overrides and the switch go with their rule.
    fn cascade(&mut self, rule: &Key) {
        let of_rule = |record: &OverrideRecord| record.namespace == rule.0 && record.draft.rule_id == rule.1;
        let gone: Vec<Key> =
            self.overrides.all().filter(|(_, record)| of_rule(record)).map(|(key, _)| key.clone()).collect();
        for key in gone {
            turn(&mut self.overrides, &mut self.changes, key, None);
        }
        if self.modes.get(rule).is_some() {
            turn(&mut self.modes, &mut self.changes, rule.clone(), None);
        }
    }

    fn overriding(&mut self, key: Key, to: Option<&OverrideDraft>, expect: Expect, work: &Work) -> Result<Vec<Fault>> {
        let before = self.overrides.get(&key);
        meet(expect, Kind::Override, &key, before)?;
        if before.map(|before| &before.draft) == to {
            return Ok(Vec::new());
        }
        if let Some(draft) = to {
            let mut faults: Vec<Fault> = document::bad_id("namespace", &key.0).into_iter().collect();
            faults.extend(document::bad_id("override_id", &key.1));
            faults.extend(document::overriding(draft).err().unwrap_or_default());
            if !faults.is_empty() {
                return Ok(faults);
            }
        }
        let stamp = work.stamp(before.map(|before| before.created_at));
        let record = to.map(|draft| OverrideRecord {
            namespace: key.0.clone(),
            override_id: key.1.clone(),
            draft: draft.clone(),
            created_at: stamp.created_at,
            updated_at: stamp.updated_at,
            version: stamp.version,
        });
        turn(&mut self.overrides, &mut self.changes, key, record);
        Ok(Vec::new())
    }

    fn rule_mode(
        &mut self,
        key: Key,
        to: Option<&RuleModeDraft>,
        expect: Expect,
        order: &Order,
        work: &Work,
    ) -> Result<Vec<Fault>> {
        let before = self.modes.get(&key);
        meet(expect, Kind::RuleMode, &key, before)?;
        if before.map(|before| &before.draft) == to {
            return Ok(Vec::new());
        }
        if let Some(draft) = to {
            if self.rules.get(&key).is_none() && order.file_rule(&key.0, &key.1).is_none() {
                return Err(Error::NotFound(format!("rule {} in the namespace {}", key.1, key.0)));
            }
            let mut faults = Vec::new();
            document::short_text("reason", &draft.reason, document::REASON_BYTES_MAX, &mut faults);
            if !faults.is_empty() {
                return Ok(faults);
            }
        }
        let stamp = work.stamp(before.map(|before| before.created_at));
        let record = to.map(|draft| RuleModeRecord {
            namespace: key.0.clone(),
            rule_id: key.1.clone(),
            draft: draft.clone(),
            created_at: stamp.created_at,
            updated_at: stamp.updated_at,
            version: stamp.version,
        });
        turn(&mut self.modes, &mut self.changes, key, record);
        Ok(Vec::new())
    }

    fn client(&mut self, key: Key, to: Option<&ClientDraft>, expect: Expect, work: &Work) -> Result<Vec<Fault>> {
        let before = self.clients.get(&key);
        meet(expect, Kind::Client, &key, before)?;
        if before.map(|before| &before.draft) == to {
            return Ok(Vec::new());
        }
        if let Some(draft) = to {
            let mut faults: Vec<Fault> = document::bad_id("namespace", &key.0).into_iter().collect();
            faults.extend(document::client(&key.1, draft).err().unwrap_or_default());
            if !faults.is_empty() {
                return Ok(faults);
            }
        }
        let stamp = work.stamp(before.map(|before| before.created_at));
        let record = to.map(|draft| ClientRecord {
            namespace: key.0.clone(),
            client_key: key.1.clone(),
            draft: draft.clone(),
            created_at: stamp.created_at,
            updated_at: stamp.updated_at,
            version: stamp.version,
        });
        turn(&mut self.clients, &mut self.changes, key, record);
        Ok(Vec::new())
    }

    fn namespace(&mut self, key: Key, to: Option<&NamespaceDraft>, expect: Expect, work: &Work) -> Result<Vec<Fault>> {
        meet(expect, Kind::Namespace, &key, self.namespaces.get(&key))?;
        // A row that says nothing but the defaults is no row.
        let to = to.filter(|draft| **draft != NamespaceDraft::default());
        if self.namespaces.get(&key).map(|before| &before.draft) == to {
            return Ok(Vec::new());
        }
        let mut faults: Vec<Fault> = document::bad_id("namespace", &key.0).into_iter().collect();
        faults.extend(to.and_then(document::namespace));
        if faults.is_empty() {
            let row = to.map(|draft| NamespaceRow {
                namespace: key.0.clone(),
                draft: draft.clone(),
                version: work.generation,
            });
            turn(&mut self.namespaces, &mut self.changes, key, row);
        }
        Ok(faults)
    }

    /// Writes what is different, and answers everything that changed.
    pub(super) async fn write(self, work: &mut Work) -> Result<Vec<Change>> {
        let tx = &mut work.tx;
        // First what goes, so that its names are free; what depends on something goes before it and comes after it.
        self.overrides.delete(tx).await?;
        self.modes.delete(tx).await?;
        self.rules.delete(tx).await?;
        self.clients.delete(tx).await?;
        self.namespaces.delete(tx).await?;
        self.namespaces.write(tx).await?;
        self.rules.write(tx).await.map_err(|error| match error {
            Error::Conflict(_) => Error::Conflict(
                "another rule of this namespace has the same client_key, endpoint and name; give it another name"
                    .to_owned(),
            ),
            other => other,
        })?;
        self.overrides.write(tx).await?;
        self.modes.write(tx).await?;
        self.clients.write(tx).await?;
        Ok(self.changes)
    }
}

impl Work {
    /// What a row is stamped with that this work writes.
    fn stamp(&self, created_at: Option<crate::Instant>) -> Stamp {
        Stamp { created_at: created_at.unwrap_or(self.at), updated_at: self.at, version: self.generation }
    }
}

/// Where a fault is, if there are several edits.
pub(super) fn at(index: Option<usize>, mut fault: Fault) -> Fault {
    if let Some(index) = index {
        let dot = if fault.field.is_empty() { "" } else { "." };
        fault.field = format!("edits[{index}]{dot}{}", fault.field);
    }
    fault
}

/// The kind of thing that an edit is about, and its key.
pub(super) fn key_of(edit: &Edit) -> (Kind, Key) {
    let (kind, namespace, id) = match edit {
        Edit::Rule { namespace, rule_id, .. } => (Kind::Rule, namespace, rule_id),
        Edit::Override { namespace, override_id, .. } => (Kind::Override, namespace, override_id),
        Edit::RuleMode { namespace, rule_id, .. } => (Kind::RuleMode, namespace, rule_id),
        Edit::Client { namespace, client_key, .. } => (Kind::Client, namespace, client_key),
        Edit::Namespace { namespace, .. } => (Kind::Namespace, namespace, namespace),
    };
    (kind, (namespace.clone(), id.clone()))
}

fn meet<R: Stored>(expect: Expect, kind: Kind, key: &Key, before: Option<&R>) -> Result<()> {
    let what = || format!("{} {} in the namespace {}", kind.name(), key.1, key.0);
    let version = before.map(Stored::version);
    match (expect, version) {
        (Expect::Anything, _) | (Expect::Absent, None) | (Expect::Present, Some(_)) => Ok(()),
        (Expect::Version(wanted), Some(version)) if wanted == version => Ok(()),
        (Expect::Absent, Some(_)) => Err(Error::Conflict(format!("there is a {} already", what()))),
        (Expect::Present, None) => Err(Error::NotFound(what())),
        (Expect::Version(_), version) => Err(Error::Stale { what: what(), version }),
    }
}

fn turn<R: Stored>(shelf: &mut Shelf<R>, changes: &mut Vec<Change>, key: Key, after: Option<R>) {
    changes.push(Change {
        kind: R::KIND,
        namespace: key.0.clone(),
        id: key.1.clone(),
        before: shelf.get(&key).map(Stored::json),
        after: after.as_ref().map(Stored::json),
    });
    shelf.set(key, after);
}
