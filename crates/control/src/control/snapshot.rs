//! Reads the tables at one point in time.
//!
//! Rows are passed on one by one: there may be a million clients. An invalid row is passed on as [`Quarantined`] and
//! does not stop the others.

use std::collections::BTreeSet;

use serde_json::Value;
use tollgate_rules::check;

use super::clients::namespaces;
use super::listing::find;
use super::{Control, FleetState};
use crate::db::{Sql, SqlRow, Tx, sql};
use crate::error::field_error;
use crate::record::{
    ClientRecord, NamespaceDraft, OverrideRecord, PlanRecord, RuleModeRecord, RuleRecord, RuleRow, StoredRecord,
    document,
};
use crate::{Enforcement, Error, FieldError, RecordKind, Result};

/// Most audit rows to read for the changes since a generation: beyond that, loading everything is faster.
const ROWS_MAX: i64 = 50_000;

/// The tables at one point in time.
pub struct Snapshot {
    pub(crate) tx: Tx,
}

/// A row that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quarantined {
    /// The kind of row.
    pub kind: RecordKind,
    /// Its namespace.
    pub namespace: String,
    /// Its id.
    pub id: String,
    /// Everything that is wrong with it.
    pub reasons: Vec<FieldError>,
}

impl Quarantined {
    /// A rule that is invalid by itself.
    pub(crate) fn rule(record: &RuleRecord, reasons: Vec<FieldError>) -> Quarantined {
        let (namespace, id) = (record.namespace.clone(), record.rule_id.clone());
        Quarantined { kind: RecordKind::Rule, namespace, id, reasons }
    }

    /// False if the row is invalid only together with others.
    pub(crate) fn is_bad_alone(&self) -> bool {
        !self.reasons.iter().any(|reason| check::CROSS_RULE_CODES.contains(&reason.code.as_str()))
    }
}

/// Keys of the records that changed since a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedKeys {
    /// The state of the tables.
    pub state: FleetState,
    /// Anything may have changed: a refresh was requested, or the audit does not tell.
    pub everything: bool,
    /// Namespaces whose settings, plans, or modes of rules, changed.
    pub namespaces: BTreeSet<String>,
    /// Namespace and id of rules that were created, changed or deleted.
    pub rules: BTreeSet<(String, String)>,
    /// Namespace and key of clients that changed or whose overrides or grants changed.
    pub clients: BTreeSet<(String, String)>,
    /// Tokens were created or revoked.
    pub tokens: bool,
    /// Namespace and id of API keys that were created, rotated or revoked.
    pub api_keys: BTreeSet<(String, String)>,
}

impl Control {
    /// A snapshot of the tables, without a deadline for reading it.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot { tx: self.pool().read_long().await? })
    }

    /// The changes since a generation.
    pub async fn changes_since(&self, generation: i64) -> Result<ChangedKeys> {
        self.snapshot().await?.changed_since(generation).await
    }
}

impl Snapshot {
    /// Generation and mode.
    pub async fn state(&mut self) -> Result<FleetState> {
        read_state(&mut self.tx).await
    }

    /// Number and hash of the last audit row, which identify a history.
    pub(crate) async fn audit_head(&mut self) -> Result<(i64, String)> {
        let row = self.tx.one(sql!("SELECT audit_number, audit_hash FROM tollgate_state")).await?;
        row.map_or_else(|| Ok((0, String::new())), |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// True if the audit contains this row: a restored database has another history.
    pub(crate) async fn continues_from(&mut self, (number, hash): &(i64, String)) -> Result<bool> {
        if *number == 0 {
            return Ok(true);
        }
        let row = self.tx.one(sql!("SELECT hash FROM audit WHERE number = $1", *number)).await?;
        row.map_or(Ok(false), |row| Ok(row.get::<String>(0)? == *hash))
    }

    /// The key of digests and cursors that all nodes share.
    pub async fn secret(&mut self) -> Result<String> {
        let row = self.tx.one(sql!("SELECT secret FROM tollgate_state")).await?;
        row.map_or_else(|| Ok(String::new()), |row| row.get(0))
    }

    /// The changes since a generation.
    pub async fn changed_since(&mut self, generation: i64) -> Result<ChangedKeys> {
        let state = self.state().await?;
        let mut touched = ChangedKeys {
            state,
            everything: false,
            namespaces: BTreeSet::new(),
            rules: BTreeSet::new(),
            clients: BTreeSet::new(),
            tokens: false,
            api_keys: BTreeSet::new(),
        };
        // A generation that is not there yet: the database was restored.
        if generation > state.generation || !self.reaches_back(generation, state).await? {
            touched.everything = true;
            return Ok(touched);
        }
        let rows = sql!(
            "SELECT kind, namespace, id, CASE WHEN kind IN ('override', 'grant') THEN before END, \
             CASE WHEN kind IN ('override', 'grant') THEN after END FROM audit WHERE generation > $1 LIMIT $2",
            generation,
            ROWS_MAX + 1
        );
        let mut count = 0;
        let note = |row: SqlRow| {
            count += 1;
            touched.add(&row)
        };
        self.tx.each(rows, note).await?;
        touched.everything |= count > ROWS_MAX;
        Ok(touched)
    }

    /// True if every generation since is recorded.
    async fn reaches_back(&mut self, generation: i64, state: FleetState) -> Result<bool> {
        let count = sql!("SELECT COUNT(*) FROM generations WHERE generation > $1", generation);
        let recorded: i64 = self.tx.one(count).await?.map_or(Ok(0), |row| row.get(0))?;
        Ok(recorded == state.generation - generation)
    }

    /// Every namespace with rules, overrides, grants, clients or settings, and its settings.
    pub async fn namespaces(&mut self) -> Result<Vec<(String, NamespaceDraft)>> {
        namespaces(&mut self.tx).await
    }

    /// The rules of one namespace or of all. Invalid ones are [`Quarantined`], including disabled ones.
    pub async fn rules(
        &mut self,
        namespace: Option<&str>,
        mut take: impl FnMut(Result<RuleRecord, Quarantined>),
    ) -> Result<()> {
        let settings = self.namespaces().await?;
        let settings = |namespace: &str| settings.iter().find(|(name, _)| name == namespace).map(|(_, draft)| draft);
        let validate = |row: RuleRow| {
            let record = row.record();
            record.spec(settings(&record.namespace).unwrap_or(&NamespaceDraft::default())).map(|_| record)
        };
        self.each(namespace, validate, &mut take).await
    }

    /// The modes set for single rules, in one namespace or in all.
    pub async fn rule_modes(
        &mut self,
        namespace: Option<&str>,
        mut take: impl FnMut(Result<RuleModeRecord, Quarantined>),
    ) -> Result<()> {
        self.each(namespace, Ok, &mut take).await
    }

    /// The plans of one namespace or of all.
    pub async fn plans(
        &mut self,
        namespace: Option<&str>,
        mut take: impl FnMut(Result<PlanRecord, Quarantined>),
    ) -> Result<()> {
        self.each(namespace, Ok, &mut take).await
    }

    /// One rule, if it exists. It is not validated.
    pub async fn rule(&mut self, namespace: &str, id: &str) -> Result<Option<Result<RuleRecord, Quarantined>>> {
        let mut sql = Sql::new(RuleRow::TABLE.select, vec![]);
        RuleRow::TABLE.select_ids(&mut sql, namespace, &[id]);
        let Some(row) = self.tx.one(sql).await? else { return Ok(None) };
        let record = RuleRow::read(&row).map(|row| row.record()).map_err(|error| Quarantined {
            kind: RecordKind::Rule,
            namespace: namespace.to_owned(),
            id: id.to_owned(),
            reasons: unreadable(&error),
        });
        Ok(Some(record))
    }

    /// All clients.
    pub async fn clients(&mut self, mut take: impl FnMut(Result<ClientRecord, Quarantined>)) -> Result<()> {
        let validate = |record: ClientRecord| document::client(&record.client_key, &record.draft).map(|_| record);
        self.each(None, validate, &mut take).await
    }

    /// All overrides, including expired ones.
    pub async fn overrides(&mut self, mut take: impl FnMut(Result<OverrideRecord, Quarantined>)) -> Result<()> {
        let validate = |record: OverrideRecord| document::overriding(&record.draft).map(|_| record);
        self.each(None, validate, &mut take).await
    }

    /// One client and its overrides. Invalid ones are left out.
    pub async fn client_with_overrides(
        &mut self,
        namespace: &str,
        client_key: &str,
    ) -> Result<(Option<ClientRecord>, Vec<OverrideRecord>)> {
        let client = match find::<ClientRecord>(&mut self.tx, namespace, client_key).await {
            Err(Error::Unexpected(_)) => None,
            other => other?.filter(|record| document::client(client_key, &record.draft).is_ok()),
        };
        let mut sql = Sql::new(OverrideRecord::TABLE.select, vec![]);
        sql.and(" WHERE client_key = ? AND namespace = ? ORDER BY override_id", [client_key.into(), namespace.into()]);
        let overrides = self.tx.all(sql).await?;
        let overrides = overrides.iter().filter_map(|row| OverrideRecord::read(row).ok());
        Ok((client, overrides.filter(|record| document::overriding(&record.draft).is_ok()).collect()))
    }

    pub(super) async fn each<R: StoredRecord, T>(
        &mut self,
        namespace: Option<&str>,
        validate: impl Fn(R) -> Result<T, Vec<FieldError>>,
        take: &mut impl FnMut(Result<T, Quarantined>),
    ) -> Result<()> {
        let mut sql = Sql::new(R::TABLE.select, vec![]);
        sql.and_if(" WHERE namespace = ?", namespace);
        R::TABLE.in_order(&mut sql);
        let hand_over = |row: SqlRow| {
            let (namespace, id) = (row.lossy_text(0)?, row.lossy_text(1)?);
            let read = match row.valid_text(0)?.and(row.valid_text(1)?) {
                Some(_) => R::read(&row),
                None => Err(Error::Unexpected("its key is not UTF-8 text without NUL".to_owned())),
            };
            let judged = read.map_err(|error| unreadable(&error)).and_then(&validate);
            take(judged.map_err(|reasons| Quarantined { kind: R::KIND, namespace, id, reasons }));
            Ok(())
        };
        self.tx.each(sql, hand_over).await
    }
}

fn unreadable(error: &Error) -> Vec<FieldError> {
    vec![field_error("", "bad-row", &error.to_string(), "rewrite or delete it")]
}

impl ChangedKeys {
    fn add(&mut self, row: &SqlRow) -> Result<()> {
        let (namespace, id): (String, String) = (row.get(1)?, row.get(2)?);
        match RecordKind::named(&row.get::<String>(0)?) {
            Some(RecordKind::Namespace | RecordKind::RuleMode | RecordKind::Plan) => {
                _ = self.namespaces.insert(namespace)
            }
            Some(RecordKind::Rule) => drop(self.rules.insert((namespace, id))),
            Some(RecordKind::Client) => drop(self.clients.insert((namespace, id))),
            Some(RecordKind::Override | RecordKind::Grant) => {
                for record in [row.get::<Option<String>>(3)?, row.get::<Option<String>>(4)?].into_iter().flatten() {
                    let record: Value = serde_json::from_str(&record).unwrap_or_default();
                    match record.get("client_key").and_then(Value::as_str) {
                        Some(client_key) => drop(self.clients.insert((namespace.clone(), client_key.to_owned()))),
                        None => self.everything = true,
                    }
                }
            }
            Some(RecordKind::Token) => self.tokens = true,
            Some(RecordKind::Key) => drop(self.api_keys.insert((namespace, id))),
            // Part of the state; read by those who send; in the store.
            Some(RecordKind::Mode | RecordKind::Webhook | RecordKind::Penalty | RecordKind::Counter) => {}
            // A kind of a newer version.
            Some(RecordKind::Everything) | None => self.everything = true,
        }
        Ok(())
    }
}

async fn read_state(tx: &mut Tx) -> Result<FleetState> {
    let Some(row) = tx.one(sql!("SELECT generation, mode, mode_since FROM tollgate_state")).await? else {
        return Err(Error::Schema("tollgate_state has lost its row; restore the database".to_owned()));
    };
    let mode: String = row.get(1)?;
    Ok(FleetState {
        generation: row.get(0)?,
        mode: Enforcement::named(&mode).unwrap_or_default(),
        mode_since: row.get(2)?,
    })
}
