//! Who was refused, by key and minute. Written behind, in batches; not audited.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Control;
use crate::db::{Sql, SqlRow, Tx, sql};
use crate::{Error, FieldError, Instant, Listing, Page, Result};

/// What is kept of a client's key and of an endpoint, in bytes: what somebody sends may be longer than an index takes.
const TEXT_BYTES_MAX: usize = 1024;

/// Refusals of one key by one rule in one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Whose.
    pub namespace: String,
    /// Who was refused.
    pub client_key: String,
    /// What was asked for: the path that was refused first in that minute.
    pub endpoint: String,
    /// Which rule refused; `None` in a row that SQL wrote and that names none.
    pub rule_id: Option<String>,
    /// The rule is in shadow mode: it would have refused, and did not.
    pub is_shadow: bool,
    /// The minute's first instant.
    pub minute: Instant,
    /// The last time in that minute.
    pub last: Instant,
    /// How often.
    pub refused: i64,
    /// The count that met the limit, the refused request included: the highest of that minute.
    pub request_count: i64,
    /// The limit that was in force.
    pub limit_value: i64,
}

impl Violation {
    /// Adds what was counted later in the same minute.
    pub fn add(&mut self, later: &Violation) {
        self.refused = self.refused.saturating_add(later.refused);
        self.request_count = self.request_count.max(later.request_count);
        self.last = self.last.max(later.last);
        self.limit_value = later.limit_value;
    }
}

/// A violation as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolationRecord {
    /// Its id.
    pub violation_id: i64,
    /// What happened.
    pub violation: Violation,
}

/// Which violations. What is `None` is not asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViolationFilter {
    /// Of these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Of a client that has any of these names.
    pub client_keys: Option<Vec<String>>,
    /// Of this endpoint.
    pub endpoint: Option<String>,
    /// Of this rule.
    pub rule_id: Option<String>,
    /// Only of rules in shadow mode, or only of others.
    pub is_shadow: Option<bool>,
    /// Not before.
    pub from: Option<Instant>,
    /// Before.
    pub to: Option<Instant>,
}

/// What offenders are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// Clients.
    Client,
    /// Rules.
    Rule,
    /// Endpoints.
    Endpoint,
}

/// Somebody or something, and how often it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offender {
    /// Whose.
    pub namespace: String,
    /// The client, the rule or the endpoint; empty for rows that name none.
    pub what: String,
    /// Counted of rules in shadow mode, which refuse nothing.
    pub is_shadow: bool,
    /// How often, in all.
    pub refused: i64,
    /// The last time it happened.
    pub last: Instant,
}

impl Control {
    /// Adds counts to what is there for the same key, rule and minute; all of them, or none. The limit is that of the
    /// last word, the endpoint that of the first.
    pub async fn record_violations(&self, violations: &[Violation]) -> Result<()> {
        if violations.is_empty() {
            return Ok(());
        }
        let rows = rows(violations);
        self.write_unaudited(async move |tx| tx.run(add(rows.clone(), tx.is_postgres())).await.map(|_| ())).await
    }

    /// Violations, the latest first.
    pub async fn violations(&self, filter: &ViolationFilter, page: &Page) -> Result<Listing<ViolationRecord>> {
        let mut query = sql!(
            "SELECT violation_id, namespace, client_key, endpoint, rule_id, shadow, violated_at, \
             COALESCE(last_at, violated_at), refused, request_count, limit_value FROM rate_limit_violations WHERE TRUE"
        );
        filter.apply(&mut query);
        if let Some(after) = &page.after {
            let (at, id) = cursor(after)?;
            query.and(" AND (violated_at, violation_id) < (?, ?)", [at.into(), id.into()]);
        }
        let most = page.limit.clamp(1, 1000);
        query.and(" ORDER BY violated_at DESC, violation_id DESC LIMIT ?", [(most + 1).into()]);
        let rows = self.read(async move |tx| tx.all(query).await).await?;
        let mut entries: Vec<ViolationRecord> = rows.iter().map(read).collect::<Result<_>>()?;
        let has_more = entries.len() > most as usize;
        entries.truncate(most as usize);
        let next = entries.last().filter(|_| has_more);
        let next = next.map(|last| format!("{}.{}", last.violation.minute.0, last.violation_id));
        Ok(Listing { entries, next })
    }

    /// Those with the most refusals, the worst first.
    pub async fn offenders(&self, by: GroupBy, filter: &ViolationFilter, limit: u32) -> Result<Vec<Offender>> {
        let (select, group) = match by {
            GroupBy::Client => ("SELECT namespace, client_key", " GROUP BY namespace, client_key, shadow"),
            GroupBy::Rule => ("SELECT namespace, rule_id", " GROUP BY namespace, rule_id, shadow"),
            GroupBy::Endpoint => ("SELECT namespace, endpoint", " GROUP BY namespace, endpoint, shadow"),
        };
        let mut query = sql!(select);
        let counts = ", shadow, CAST(SUM(refused) AS BIGINT), MAX(COALESCE(last_at, violated_at)) \
                      FROM rate_limit_violations WHERE TRUE";
        query.and(counts, []);
        filter.apply(&mut query);
        query.and(group, []);
        query.and(" ORDER BY 4 DESC, 1, 2, 3 LIMIT ?", [limit.clamp(1, 1000).into()]);
        let rows = self.read(async move |tx| tx.all(query).await).await?;
        let offender = |row: &SqlRow| {
            Ok(Offender {
                namespace: row.lossy_text(0)?,
                what: row.lossy_text(1)?,
                is_shadow: row.get(2)?,
                refused: row.get(3)?,
                last: row.get(4)?,
            })
        };
        rows.iter().map(offender).collect()
    }

    /// Before which instant violations would have to go so that no more than `most` stay; `None` if there are not more.
    pub async fn surplus_violations(&self, most: u32) -> Result<Option<Instant>> {
        let query = sql!(
            "SELECT violated_at FROM rate_limit_violations ORDER BY violated_at DESC, violation_id DESC LIMIT 1 OFFSET $1",
            most,
        );
        let row = self.read(async move |tx| tx.one(query).await).await?;
        let minute: Option<Instant> = row.map(|row| row.get(0)).transpose()?;
        Ok(minute.map(|minute| Instant(minute.0.saturating_add(1))))
    }

    /// Deletes what is older, at most so many rows at once; answers how many it were.
    pub async fn prune_violations(&self, before: Instant, most: u32) -> Result<u64> {
        let prune = async move |tx: &mut Tx| {
            tx.run(sql!(
                "DELETE FROM rate_limit_violations WHERE violation_id IN \
                 (SELECT violation_id FROM rate_limit_violations WHERE violated_at < $1 ORDER BY violated_at LIMIT $2)",
                before,
                most,
            ))
            .await
        };
        self.write_unaudited(prune).await
    }
}

impl ViolationFilter {
    fn apply(&self, query: &mut Sql) {
        query.and_in("namespace", self.namespaces.as_deref());
        let client_keys: Option<Vec<String>> =
            self.client_keys.as_ref().map(|keys| keys.iter().map(|key| kept(key)).collect());
        query.and_in("client_key", client_keys.as_deref());
        query.and_if(" AND endpoint = ?", self.endpoint.as_deref().map(kept));
        query.and_if(" AND rule_id = ?", self.rule_id.as_deref());
        query.and_if(" AND shadow = ?", self.is_shadow);
        query.and_if(" AND violated_at >= ?", self.from);
        query.and_if(" AND violated_at < ?", self.to);
    }
}

/// Adds a list of rows. One value however many they are, so that there is one statement to prepare.
fn add(rows: Value, is_postgres: bool) -> Sql {
    let mut statement = sql!(
        "INSERT INTO rate_limit_violations (namespace, client_key, endpoint, rule_id, shadow, violated_at, last_at, \
         refused, request_count, limit_value) "
    );
    let list = match is_postgres {
        true => {
            "SELECT r.n, r.c, r.e, r.r, r.s, r.t, r.z, r.f, r.q, r.l FROM jsonb_to_recordset(?) \
             AS r (n TEXT, c TEXT, e TEXT, r TEXT, s BOOLEAN, t TIMESTAMPTZ, z TIMESTAMPTZ, f BIGINT, q BIGINT, \
             l BIGINT) WHERE TRUE"
        }
        false => {
            "SELECT value ->> 'n', value ->> 'c', value ->> 'e', value ->> 'r', value ->> 's', value ->> 't', \
             value ->> 'z', value ->> 'f', value ->> 'q', value ->> 'l' FROM json_each(?) WHERE TRUE"
        }
    };
    statement.and(list, [rows.into()]);
    let adding = " ON CONFLICT (namespace, client_key, rule_id, violated_at, shadow) DO UPDATE \
                  SET refused = rate_limit_violations.refused + excluded.refused, \
                  request_count = CASE WHEN excluded.request_count > rate_limit_violations.request_count \
                  THEN excluded.request_count ELSE rate_limit_violations.request_count END, \
                  last_at = CASE WHEN rate_limit_violations.last_at > excluded.last_at \
                  THEN rate_limit_violations.last_at ELSE excluded.last_at END, \
                  limit_value = excluded.limit_value";
    statement.and(adding, []);
    statement
}

/// Violations as a list of rows: one per key, rule and minute, and in their order, so that nodes that write the same rows
/// do not wait for each other in a circle.
fn rows(violations: &[Violation]) -> Value {
    let mut rows: BTreeMap<_, Violation> = BTreeMap::new();
    for violation in violations {
        let Violation { namespace, client_key, rule_id, minute, is_shadow, .. } = violation;
        let key = (namespace, kept(client_key), rule_id, minute, is_shadow);
        match rows.get_mut(&key) {
            Some(earlier) => earlier.add(violation),
            None => drop(rows.insert(key, violation.clone())),
        }
    }
    let row = |row: &Violation| {
        json!({
            "n": row.namespace, "c": kept(&row.client_key), "e": kept(&row.endpoint), "r": row.rule_id,
            "s": row.is_shadow, "t": row.minute.to_string(), "z": row.last.to_string(), "f": row.refused,
            "q": row.request_count, "l": row.limit_value,
        })
    };
    rows.values().map(row).collect()
}

/// What is kept of a text that somebody sent: as much as fits, without the one character that PostgreSQL cannot keep.
fn kept(text: &str) -> String {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().replace('\0', "\u{fffd}")
}

fn cursor(text: &str) -> Result<(Instant, i64)> {
    let parts = text.split_once('.').and_then(|(at, id)| Some((Instant(at.parse().ok()?), id.parse().ok()?)));
    parts.ok_or_else(|| {
        Error::Invalid(vec![FieldError {
            field: "cursor".to_owned(),
            code: "bad-cursor".to_owned(),
            message: "no list ended there".to_owned(),
            help: Some("send the next_cursor of the page before, as it was".to_owned()),
        }])
    })
}

fn read(row: &SqlRow) -> Result<ViolationRecord> {
    Ok(ViolationRecord {
        violation_id: row.get(0)?,
        violation: Violation {
            namespace: row.lossy_text(1)?,
            client_key: row.lossy_text(2)?,
            endpoint: row.lossy_text(3)?,
            rule_id: row.get::<Option<String>>(4).or_else(|_| row.lossy_text(4).map(Some))?,
            is_shadow: row.get(5)?,
            minute: row.get(6)?,
            last: row.get(7)?,
            refused: row.get(8)?,
            request_count: row.get(9)?,
            limit_value: row.get(10)?,
        },
    })
}
