//! What must hold between rows, once an order is done.
//!
//! Only what the order may have broken is looked at, and only the rows that takes: a namespace may have a hundred
//! thousand rules and a rule a million overrides.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use tollgate_rules::check::across;
use tollgate_rules::problem::{Problem, quote};
use tollgate_rules::{OverrideSpec, RuleFile, RuleSpec};

use super::plan::{at, key_of};
use super::{Key, Plan};
use crate::db::{Json, Sql, sql};
use crate::error::fault;
use crate::record::{NamespaceDraft, OverrideRecord, RuleRow, Stored, document};
use crate::write_tx::Work;
use crate::{Error, Fault, Kind, Order, Result};

/// Most clients whose overrides are looked up at once.
const CHUNK: usize = 500;

impl Plan {
    /// Judges what came of the edits.
    pub(super) async fn judge(&mut self, order: &Order, work: &mut Work) -> Result<()> {
        let mut found = Found::new(order);
        self.judge_names(&mut found, work).await?;
        self.judge_settings(&mut found, work).await?;
        self.judge_replacing(&mut found, work).await?;
        self.judge_crowds(&mut found, work).await?;
        self.judge_overrides(&mut found, order, work).await?;
        match found.faults.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(found.faults)),
        }
    }

    /// Rules that made sense must make sense under new settings of their namespace.
    async fn judge_settings(&self, found: &mut Found, work: &mut Work) -> Result<()> {
        for (key, row) in self.namespaces.changed() {
            let before = self.namespaces.was(key).map(|row| row.draft.clone()).unwrap_or_default();
            let after = row.map(|row| row.draft.clone()).unwrap_or_default();
            let mut sql = Sql::new(RuleRow::TABLE.select, vec![]);
            sql.and(" WHERE namespace = ?", [(&key.0).into()]);
            let mut broken = Vec::new();
            let judge = |row: crate::db::Row| {
                let Ok(rule) = RuleRow::read(&row) else { return Ok(()) };
                let rule = rule.record();
                if self.rules.is_changed(&(rule.namespace.clone(), rule.rule_id.clone())) || rule.spec(&before).is_err()
                {
                    return Ok(());
                }
                broken.extend(rule.spec(&after).err().into_iter().flatten().map(|fault| (rule.rule_id.clone(), fault)));
                Ok(())
            };
            work.tx.each(sql, judge).await?;
            for (rule_id, fault) in broken {
                let message = format!("the rule {} would be refused: {}", quote(&rule_id), fault.message);
                found.add(Kind::Namespace, key, Fault { field: String::new(), message, ..fault });
            }
        }
        Ok(())
    }

    /// Names in `replaces` are names of rules, and lead nowhere in a circle.
    async fn judge_replacing(&self, found: &mut Found, work: &mut Work) -> Result<()> {
        let namespaces: BTreeSet<&String> =
            self.rules.changed().filter(|(key, row)| self.may_break_names(key, *row)).map(|(key, _)| &key.0).collect();
        for namespace in namespaces {
            let file = RuleFile {
                namespace: namespace.clone(),
                rules: self.replacing(namespace, work).await?,
                ..RuleFile::default()
            };
            for problem in across(&file) {
                self.hear_of_names(&file, problem, found)?;
            }
        }
        Ok(())
    }

    /// A rule that goes may be named by others; one that replaces may name nobody.
    fn may_break_names(&self, key: &Key, row: Option<&RuleRow>) -> bool {
        row.is_none() || self.specs.get(key).is_some_and(|spec| !spec.replaces.is_empty())
    }

    /// All rules of a namespace as they will be, with nothing but their names and whom they replace.
    async fn replacing(&self, namespace: &str, work: &mut Work) -> Result<Vec<RuleSpec>> {
        let mut replaces: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let rows = sql!("SELECT rule_id, options FROM rate_limit_rules WHERE namespace = $1", namespace);
        let read = |row: crate::db::Row| {
            let options = row.get::<Json>(1).map(|json| json.0).unwrap_or_default();
            replaces.insert(row.shown(0)?, names(options.get("replaces")));
            Ok(())
        };
        work.tx.each(rows, read).await?;
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

    fn hear_of_names(&self, file: &RuleFile, problem: Problem, found: &mut Found) -> Result<()> {
        let Some((index, rest)) = split("rules", &problem.field) else { return Ok(()) };
        let Some(rule) = file.rules.get(index) else { return Ok(()) };
        let key = (file.namespace.clone(), rule.name.clone().unwrap_or_default());
        let gone = |name: &String| {
            let key = (file.namespace.clone(), name.clone());
            self.rules.is_changed(&key) && self.rules.get(&key).is_none()
        };
        if self.rules.is_changed(&key) {
            found.add(Kind::Rule, &key, Fault { field: rest.to_owned(), ..Fault::from(problem) });
        } else if problem.code == "replaces-cycle" {
            // It may have been there before; whoever touched nothing of it is not to blame.
            let touched = self.rules.changed().find(|(key, row)| row.is_some() && self.may_break_names(key, *row));
            if let Some((key, _)) = touched {
                found.add(Kind::Rule, key, Fault { field: rest.to_owned(), ..Fault::from(problem) });
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

    /// Overrides belong to a rule, whose numbers theirs must suit, and a client has one of a rule at a time.
    async fn judge_overrides(&mut self, found: &mut Found, order: &Order, work: &mut Work) -> Result<()> {
        let touched: Vec<(Key, OverrideRecord)> =
            self.overrides.changed().filter_map(|(key, record)| Some((key.clone(), record?.clone()))).collect();
        let rule_keys: BTreeSet<Key> = touched.iter().map(|(key, record)| rule_of(key, record)).collect();
        self.rules.read(rule_keys, &mut work.tx).await?;
        self.read_siblings(&touched, work).await?;
        let mut witnesses = Vec::new();
        for key in self.changed_limits() {
            witnesses.extend(self.witnesses(&key, work).await?);
        }
        let mut files: BTreeMap<String, File> = BTreeMap::new();
        let pairs: BTreeSet<(Key, &String)> =
            touched.iter().map(|(key, record)| (rule_of(key, record), &record.draft.client_key)).collect();
        let siblings = self.overrides.all().filter(|(key, record)| {
            !self.overrides.is_changed(key) && pairs.contains(&(rule_of(key, record), &record.draft.client_key))
        });
        // Those that were there first: whoever comes later is in their way.
        let siblings = siblings.map(|(key, record)| (key.clone(), record.clone()));
        for (key, record) in witnesses.into_iter().chain(siblings).chain(touched.iter().cloned()) {
            let Ok(spec) = document::overriding(&record.draft) else { continue };
            let file = files.entry(key.0.clone()).or_insert_with(|| File::new(&key.0));
            file.add(key, spec);
        }
        for file in files.values_mut() {
            self.add_rules(file, order);
            for problem in across(&file.file) {
                self.hear_of_overrides(file, problem, found);
            }
        }
        Ok(())
    }

    /// Takes out the other overrides of the same clients.
    async fn read_siblings(&mut self, touched: &[(Key, OverrideRecord)], work: &mut Work) -> Result<()> {
        for chunk in touched.chunk_by(|one, next| one.0.0 == next.0.0).flat_map(|chunk| chunk.chunks(CHUNK)) {
            let mut sql = Sql::new(OverrideRecord::TABLE.select, vec![]);
            let clients = chunk.iter().map(|(_, record)| vec![(&record.draft.client_key).into()]);
            sql.and_listed(" WHERE client_key IN (", "?", ")", clients);
            sql.and_if(" AND namespace = ?", chunk.first().map(|(key, _)| &key.0));
            self.overrides.take(sql, &mut work.tx).await?;
        }
        Ok(())
    }

    /// Rules whose numbers are others than before.
    fn changed_limits(&self) -> Vec<Key> {
        let changed = self.rules.changed().filter(|(key, row)| {
            let before = self.rules.was(key).and_then(|row| row.record().spec(&self.settings(&key.0)).ok());
            row.is_some()
                && before.is_some_and(|before| {
                    self.specs
                        .get(*key)
                        .is_some_and(|after| (&before.limit, before.unlimited) != (&after.limit, after.unlimited))
                })
        });
        changed.map(|(key, _)| key.clone()).collect()
    }

    /// Of the overrides of a rule, one for each pair of numbers: what is right for it is right for all.
    async fn witnesses(&self, rule: &Key, work: &mut Work) -> Result<Vec<(Key, OverrideRecord)>> {
        let mut sql = Sql::new(OverrideRecord::TABLE.select, vec![]);
        sql.and(
            " WHERE namespace = ? AND override_id IN (SELECT MIN(override_id) FROM rate_limit_overrides \
             WHERE namespace = ? AND rule_id = ? GROUP BY max_requests, burst_size, unlimited)",
            [(&rule.0).into(), (&rule.0).into(), (&rule.1).into()],
        );
        let rows = work.tx.all(sql).await?;
        let records = rows.iter().filter_map(|row| OverrideRecord::read(row).ok());
        let records = records.map(|record| ((record.namespace.clone(), record.override_id.clone()), record));
        Ok(records.filter(|(key, _)| !self.overrides.is_changed(key)).collect())
    }

    /// The rules that the overrides of a file name, without what only matters between rules.
    fn add_rules(&self, file: &mut File, order: &Order) {
        let names: BTreeSet<String> = file.file.overrides.iter().map(|spec| spec.rule.clone()).collect();
        for name in names {
            let key = (file.file.namespace.clone(), name);
            let spec = match (self.specs.get(&key), self.rules.get(&key)) {
                // A rule of a file hides one of the same name in the database.
                _ if let Some(spec) = order.file_rule(&key.0, &key.1) => Some(spec.clone()),
                (Some(spec), _) => Some(spec.clone()),
                (None, Some(row)) => row.record().spec(&self.settings(&key.0)).ok(),
                (None, None) => None,
            };
            file.file.rules.extend(spec.map(|spec| RuleSpec { replaces: Vec::new(), ..spec }));
        }
    }

    pub(super) fn settings(&self, namespace: &str) -> NamespaceDraft {
        let key = (namespace.to_owned(), namespace.to_owned());
        self.namespaces.get(&key).map(|row| row.draft.clone()).unwrap_or_default()
    }

    fn hear_of_overrides(&self, file: &File, problem: Problem, found: &mut Found) {
        let Some((index, rest)) = split("overrides", &problem.field) else { return };
        let (Some(key), Some(spec)) = (file.keys.get(index), file.file.overrides.get(index)) else { return };
        let field = rest.to_owned();
        let message = problem.message.replace(&format!("overrides[{index}]."), "");
        let message = message.replace(&format!("overrides[{index}]: "), "");
        let problem = Problem { field, message, ..problem };
        let rule = (key.0.clone(), spec.rule.clone());
        if self.overrides.is_changed(key) {
            document::of_override(vec![problem]).into_iter().for_each(|fault| found.add(Kind::Override, key, fault));
        } else if self.rules.is_changed(&rule) && problem.code != "duplicate-name" {
            let message = format!("the override {} would not suit it: {}", quote(&key.1), problem.message);
            let help = "change or end the override first";
            found.add(Kind::Rule, &rule, fault("limit", problem.code, &message, help));
        }
    }
}

/// The overrides of a namespace that matter, in the form of a rules file, and their keys.
struct File {
    file: RuleFile,
    keys: Vec<Key>,
}

impl File {
    fn new(namespace: &str) -> File {
        File { file: RuleFile { namespace: namespace.to_owned(), ..RuleFile::default() }, keys: Vec::new() }
    }

    fn add(&mut self, key: Key, spec: OverrideSpec) {
        self.keys.push(key);
        self.file.overrides.push(spec);
    }
}

/// Faults, with the edits that they are laid to.
pub(super) struct Found {
    edits: HashMap<(Kind, Key), usize>,
    several: bool,
    faults: Vec<Fault>,
}

impl Found {
    fn new(order: &Order) -> Found {
        let edits = order.edits.iter().enumerate().map(|(index, edit)| (key_of(edit), index));
        Found { edits: edits.collect(), several: order.edits.len() > 1, faults: Vec::new() }
    }

    pub(super) fn add(&mut self, kind: Kind, key: &Key, fault: Fault) {
        let index = self.edits.get(&(kind, key.clone())).copied().filter(|_| self.several);
        self.faults.push(at(index, fault));
    }
}

fn rule_of(key: &Key, record: &OverrideRecord) -> Key {
    (key.0.clone(), record.draft.rule_id.clone())
}

/// `rules[3].replaces[0]` as 3 and `replaces[0]`.
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
