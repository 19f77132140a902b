//! Checks across rows after the edits of a change set.
//!
//! Only rows that the change set may have invalidated are read: a namespace may have a hundred thousand rules and a
//! rule a million overrides.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use tollgate_rules::check::across;
use tollgate_rules::problem::{Problem, quote};
use tollgate_rules::{OverrideSpec, RuleFile, RuleSpec};

use super::plan::{at, key_of};
use super::rule_suggestions::RuleSuggestions;
use super::{ChangePlan, RecordKey};
use crate::db::{Json, Sql, sql};
use crate::error::field_error;
use crate::record::{NamespaceDraft, OverrideRecord, RuleRow, StoredRecord, document};
use crate::write_tx::WriteTx;
use crate::{ChangeSet, Error, FieldError, RecordKind, Result};

/// Most clients whose overrides one statement reads.
const CHUNK: usize = 500;

impl ChangePlan {
    /// Validates the rows as they are after the edits.
    pub(super) async fn validate(&mut self, change_set: &ChangeSet, write: &mut WriteTx) -> Result<()> {
        let mut errors = EditErrors::new(change_set);
        self.validate_names(&mut errors, write).await?;
        self.validate_settings(&mut errors, write).await?;
        self.validate_replaces(&mut errors, write).await?;
        self.validate_wildcards(&mut errors, write).await?;
        self.validate_overrides(&mut errors, change_set, write).await?;
        self.validate_plans(&mut errors, change_set, write).await?;
        self.validate_grants(&mut errors, change_set, write).await?;
        match errors.faults.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(errors.faults)),
        }
    }

    /// Rules that were valid must stay valid under changed settings of their namespace.
    async fn validate_settings(&self, errors: &mut EditErrors, write: &mut WriteTx) -> Result<()> {
        for (key, row) in self.namespaces.changed() {
            let before = self.namespaces.original(key).map(|row| row.draft.clone()).unwrap_or_default();
            let after = row.map(|row| row.draft.clone()).unwrap_or_default();
            let mut sql = Sql::new(RuleRow::TABLE.select, vec![]);
            sql.and(" WHERE namespace = ?", [(&key.0).into()]);
            let mut broken = Vec::new();
            let validate = |row: crate::db::SqlRow| {
                let Ok(rule) = RuleRow::read(&row) else { return Ok(()) };
                let rule = rule.record();
                if self.rules.is_changed(&(rule.namespace.clone(), rule.rule_id.clone())) || rule.spec(&before).is_err()
                {
                    return Ok(());
                }
                broken.extend(rule.spec(&after).err().into_iter().flatten().map(|fault| (rule.rule_id.clone(), fault)));
                Ok(())
            };
            write.tx.each(sql, validate).await?;
            for (rule_id, fault) in broken {
                let message = format!("the rule {} would be refused: {}", quote(&rule_id), fault.message);
                errors.add(RecordKind::Namespace, key, FieldError { field: String::new(), message, ..fault });
            }
        }
        Ok(())
    }

    /// `replaces` must name existing rules and must not form a cycle.
    async fn validate_replaces(&self, errors: &mut EditErrors, write: &mut WriteTx) -> Result<()> {
        let namespaces: BTreeSet<&String> =
            self.rules.changed().filter(|(key, row)| self.may_break_names(key, *row)).map(|(key, _)| &key.0).collect();
        for namespace in namespaces {
            let file = RuleFile {
                namespace: namespace.clone(),
                rules: self.replacing(namespace, write).await?,
                ..RuleFile::default()
            };
            for problem in across(&file) {
                self.report_replaces_problem(&file, problem, errors)?;
            }
        }
        Ok(())
    }

    /// True if the change can invalidate `replaces`: a deleted rule may be named by others, and a replacing rule may
    /// name a missing one.
    fn may_break_names(&self, key: &RecordKey, row: Option<&RuleRow>) -> bool {
        row.is_none() || self.specs.get(key).is_some_and(|spec| !spec.replaces.is_empty())
    }

    /// All rules of a namespace after the edits, reduced to their names and `replaces`.
    async fn replacing(&self, namespace: &str, write: &mut WriteTx) -> Result<Vec<RuleSpec>> {
        let mut replaces: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let rows = sql!("SELECT rule_id, options FROM rate_limit_rules WHERE namespace = $1", namespace);
        let read = |row: crate::db::SqlRow| {
            let options = row.get::<Json>(1).map(|json| json.0).unwrap_or_default();
            replaces.insert(row.lossy_text(0)?, names(options.get("replaces")));
            Ok(())
        };
        write.tx.each(rows, read).await?;
        for (key, row) in self.rules.changed().filter(|(key, _)| key.0 == namespace) {
            match row {
                None => replaces.remove(&key.1),
                Some(_) => {
                    let after = self.specs.get(key).map(|spec| spec.replaces.clone()).unwrap_or_default();
                    replaces.insert(key.1.clone(), after)
                }
            };
        }
        let specs = replaces.into_iter();
        Ok(specs.map(|(name, replaces)| RuleSpec { name: Some(name), replaces, ..RuleSpec::default() }).collect())
    }

    fn report_replaces_problem(&self, file: &RuleFile, problem: Problem, errors: &mut EditErrors) -> Result<()> {
        let Some((index, rest)) = split("rules", &problem.field) else { return Ok(()) };
        let Some(rule) = file.rules.get(index) else { return Ok(()) };
        let key = (file.namespace.clone(), rule.name.clone().unwrap_or_default());
        let gone = |name: &String| {
            let key = (file.namespace.clone(), name.clone());
            self.rules.is_changed(&key) && self.rules.get(&key).is_none()
        };
        if self.rules.is_changed(&key) {
            errors.add(RecordKind::Rule, &key, FieldError { field: rest.to_owned(), ..FieldError::from(problem) });
        } else if problem.code == "replaces-cycle" {
            // The cycle may predate this change set, which is refused only if it touched a member.
            let touched = self.rules.changed().find(|(key, row)| row.is_some() && self.may_break_names(key, *row));
            if let Some((key, _)) = touched {
                errors.add(RecordKind::Rule, key, FieldError { field: rest.to_owned(), ..FieldError::from(problem) });
            }
        } else if let Some(name) = rule.replaces.iter().find(|name| gone(name)) {
            return Err(Error::Conflict(format!(
                "the rule {} names {} in `replaces`; change that first",
                quote(&key.1),
                quote(name)
            )));
        }
        Ok(())
    }

    /// An override must fit the limit of its rule, and a client has at most one override of a rule at a time.
    async fn validate_overrides(
        &mut self,
        errors: &mut EditErrors,
        change_set: &ChangeSet,
        write: &mut WriteTx,
    ) -> Result<()> {
        let touched: Vec<(RecordKey, OverrideRecord)> =
            self.overrides.changed().filter_map(|(key, record)| Some((key.clone(), record?.clone()))).collect();
        let rule_keys: BTreeSet<RecordKey> = touched.iter().map(|(key, record)| rule_of(key, record)).collect();
        self.rules.read(rule_keys, &mut write.tx).await?;
        self.read_siblings(&touched, write).await?;
        let mut witnesses = Vec::new();
        for key in self.changed_limits() {
            witnesses.extend(self.witnesses(&key, write).await?);
        }
        let mut files: BTreeMap<String, OverrideFile> = BTreeMap::new();
        let pairs: BTreeSet<(RecordKey, &String)> =
            touched.iter().map(|(key, record)| (rule_of(key, record), &record.draft.client_key)).collect();
        let siblings = self.overrides.all().filter(|(key, record)| {
            !self.overrides.is_changed(key) && pairs.contains(&(rule_of(key, record), &record.draft.client_key))
        });
        // Existing overrides come first, so that a conflict is reported for the later one.
        let siblings = siblings.map(|(key, record)| (key.clone(), record.clone()));
        for (key, record) in witnesses.into_iter().chain(siblings).chain(touched.iter().cloned()) {
            let Ok(spec) = document::overriding(&record.draft) else { continue };
            let file = files.entry(key.0.clone()).or_insert_with(|| OverrideFile::new(&key.0));
            file.add(key, spec);
        }
        let mut suggestions = RuleSuggestions::new(change_set);
        for file in files.values_mut() {
            self.add_rules(file, change_set);
            for mut problem in across(&file.file) {
                if problem.code == "unknown-rule"
                    && let Some(spec) =
                        split("overrides", &problem.field).and_then(|(at, _)| file.file.overrides.get(at))
                {
                    problem = problem.help(suggestions.help(&file.file.namespace, &spec.rule, write).await?);
                }
                self.report_override_problem(file, problem, errors);
            }
        }
        Ok(())
    }

    /// Reads the other overrides of the same clients.
    async fn read_siblings(&mut self, touched: &[(RecordKey, OverrideRecord)], write: &mut WriteTx) -> Result<()> {
        for chunk in touched.chunk_by(|one, next| one.0.0 == next.0.0).flat_map(|chunk| chunk.chunks(CHUNK)) {
            let mut sql = Sql::new(OverrideRecord::TABLE.select, vec![]);
            let clients = chunk.iter().map(|(_, record)| vec![(&record.draft.client_key).into()]);
            sql.and_listed(" WHERE client_key IN (", "?", ")", clients);
            sql.and_if(" AND namespace = ?", chunk.first().map(|(key, _)| &key.0));
            self.overrides.load(sql, &mut write.tx).await?;
        }
        Ok(())
    }

    /// Rules whose limit changed.
    fn changed_limits(&self) -> Vec<RecordKey> {
        let changed = self.rules.changed().filter(|(key, row)| {
            let before = self.rules.original(key).and_then(|row| row.record().spec(&self.settings(&key.0)).ok());
            row.is_some()
                && before.is_some_and(|before| {
                    self.specs
                        .get(*key)
                        .is_some_and(|after| (&before.limit, before.unlimited) != (&after.limit, after.unlimited))
                })
        });
        changed.map(|(key, _)| key.clone()).collect()
    }

    /// One override of a rule for each combination of numbers: all others with the same numbers are as valid.
    async fn witnesses(&self, rule: &RecordKey, write: &mut WriteTx) -> Result<Vec<(RecordKey, OverrideRecord)>> {
        let mut sql = Sql::new(OverrideRecord::TABLE.select, vec![]);
        sql.and(
            " WHERE namespace = ? AND override_id IN (SELECT MIN(override_id) FROM rate_limit_overrides \
             WHERE namespace = ? AND rule_id = ? GROUP BY max_requests, burst_size, unlimited)",
            [(&rule.0).into(), (&rule.0).into(), (&rule.1).into()],
        );
        let rows = write.tx.all(sql).await?;
        let records = rows.iter().filter_map(|row| OverrideRecord::read(row).ok());
        let records = records.map(|record| ((record.namespace.clone(), record.override_id.clone()), record));
        Ok(records.filter(|(key, _)| !self.overrides.is_changed(key)).collect())
    }

    /// Adds the rules that the overrides name, without `replaces`.
    fn add_rules(&self, file: &mut OverrideFile, change_set: &ChangeSet) {
        let names: BTreeSet<String> = file.file.overrides.iter().map(|spec| spec.rule.clone()).collect();
        for name in names {
            file.file.rules.extend(self.specs_after(&(file.file.namespace.clone(), name), change_set));
        }
    }

    /// The rules that an override or a grant names, after the edits, of the database or of a file, without `replaces`.
    pub(super) fn specs_after(&self, key: &RecordKey, change_set: &ChangeSet) -> Vec<RuleSpec> {
        let spec = match (self.specs.get(key), self.rules.get(key)) {
            // A rule of a file shadows one of the same name in the database.
            _ if let Some(spec) = change_set.file_rule(&key.0, &key.1) => Some(spec.clone()),
            (Some(spec), _) => Some(spec.clone()),
            (None, Some(row)) => row.record().spec(&self.settings(&key.0)).ok(),
            (None, None) => None,
        };
        let specs = match spec {
            Some(spec) => vec![spec],
            // Rules of plans: by their name, or by their name within plans.
            None => {
                let of_file = change_set.file_rules_in_plans(&key.0, &key.1).cloned();
                of_file.chain(self.plan_rules(&key.0, &key.1)).collect()
            }
        };
        specs.into_iter().map(|spec| RuleSpec { replaces: Vec::new(), ..spec }).collect()
    }

    pub(super) fn settings(&self, namespace: &str) -> NamespaceDraft {
        let key = (namespace.to_owned(), namespace.to_owned());
        self.namespaces.get(&key).map(|row| row.draft.clone()).unwrap_or_default()
    }

    fn report_override_problem(&self, file: &OverrideFile, problem: Problem, errors: &mut EditErrors) {
        let Some((index, rest)) = split("overrides", &problem.field) else { return };
        let (Some(key), Some(spec)) = (file.keys.get(index), file.file.overrides.get(index)) else { return };
        let field = rest.to_owned();
        let message = problem.message.replace(&format!("overrides[{index}]."), "");
        let message = message.replace(&format!("overrides[{index}]: "), "");
        let problem = Problem { field, message, ..problem };
        let rule = (key.0.clone(), spec.rule.clone());
        if self.overrides.is_changed(key) {
            document::of_override(vec![problem])
                .into_iter()
                .for_each(|fault| errors.add(RecordKind::Override, key, fault));
        } else if self.rules.is_changed(&rule) && problem.code != "duplicate-name" {
            let message = format!("the override {} would not suit it: {}", quote(&key.1), problem.message);
            let help = "change or end the override first";
            errors.add(RecordKind::Rule, &rule, field_error("limit", problem.code, &message, help));
        }
    }
}

/// The overrides of a namespace to be checked, in the form of a rules file, and their keys.
struct OverrideFile {
    file: RuleFile,
    keys: Vec<RecordKey>,
}

impl OverrideFile {
    fn new(namespace: &str) -> OverrideFile {
        OverrideFile { file: RuleFile { namespace: namespace.to_owned(), ..RuleFile::default() }, keys: Vec::new() }
    }

    fn add(&mut self, key: RecordKey, spec: OverrideSpec) {
        self.keys.push(key);
        self.file.overrides.push(spec);
    }
}

/// Errors, each assigned to the edit that caused it.
pub(super) struct EditErrors {
    edits: HashMap<(RecordKind, RecordKey), usize>,
    several: bool,
    faults: Vec<FieldError>,
}

impl EditErrors {
    fn new(change_set: &ChangeSet) -> EditErrors {
        let edits = change_set.edits.iter().enumerate().map(|(index, edit)| (key_of(edit), index));
        EditErrors { edits: edits.collect(), several: change_set.edits.len() > 1, faults: Vec::new() }
    }

    pub(super) fn add(&mut self, kind: RecordKind, key: &RecordKey, fault: FieldError) {
        let index = self.edits.get(&(kind, key.clone())).copied().filter(|_| self.several);
        self.faults.push(at(index, fault));
    }
}

fn rule_of(key: &RecordKey, record: &OverrideRecord) -> RecordKey {
    (key.0.clone(), record.draft.rule_id.clone())
}

/// Splits `rules[3].replaces[0]` into 3 and `replaces[0]`.
pub(super) fn split<'a>(list: &str, field: &'a str) -> Option<(usize, &'a str)> {
    let (index, rest) = field.strip_prefix(list)?.strip_prefix('[')?.split_once(']')?;
    Some((index.parse().ok()?, rest.strip_prefix('.').unwrap_or(rest)))
}

fn names(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
