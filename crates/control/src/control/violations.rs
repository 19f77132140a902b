//! Refused requests, by client, rule and minute. Written in batches, without audit.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Control;
use crate::db::{Sql, SqlRow, sql};
use crate::{Error, FieldError, Instant, Listing, Page, Result};

/// Longest stored client key or endpoint, in bytes: callers may send more than an index takes.
const TEXT_BYTES_MAX: usize = 1024;

/// Refusals of one client by one rule in one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its namespace.
    pub namespace: String,
    /// The refused client.
    pub client_key: String,
    /// The path that was refused first in that minute.
    pub endpoint: String,
    /// The rule that refused; `None` in a row from SQL without one.
    pub rule_id: Option<String>,
    /// The rule is in shadow mode: it would have refused.
    pub is_shadow: bool,
    /// First instant of the minute.
    pub minute: Instant,
    /// Last refusal in that minute.
    pub last: Instant,
    /// Number of refusals.
    pub refused: i64,
    /// The highest count in that minute, including the refused request.
    pub request_count: i64,
    /// The limit in force.
    pub limit_value: i64,
}

impl Violation {
    /// Adds later refusals of the same minute.
    pub fn add(&mut self, later: &Violation) {
        self.refused = self.refused.saturating_add(later.refused);
        self.request_count = self.request_count.max(later.request_count);
        self.last = self.last.max(later.last);
        self.limit_value = later.limit_value;
    }
}

/// A stored violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolationRecord {
    /// Its id.
    pub violation_id: i64,
    /// The refusals.
    pub violation: Violation,
}

/// Selects violations; `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViolationFilter {
    /// In these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Of any of these client keys.
    pub client_keys: Option<Vec<String>>,
    /// Of this endpoint.
    pub endpoint: Option<String>,
    /// Of this rule.
    pub rule_id: Option<String>,
    /// Only rules in shadow mode, or only others.
    pub is_shadow: Option<bool>,
    /// At or after.
    pub from: Option<Instant>,
    /// Before.
    pub to: Option<Instant>,
}

/// How offenders are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// By client.
    Client,
    /// By rule.
    Rule,
    /// By endpoint.
    Endpoint,
}

/// A client, rule or endpoint with its refusals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offender {
    /// Its namespace.
    pub namespace: String,
    /// The client, rule or endpoint; empty for rows without one.
    pub what: String,
    /// Refusals by rules in shadow mode, which denied nothing.
    pub is_shadow: bool,
    /// Number of refusals.
    pub refused: i64,
    /// The last refusal.
    pub last: Instant,
}

impl Control {
    /// Adds counts to the rows of the same client, rule and minute; all or none. The limit is that of the last
    /// violation, the endpoint that of the first.
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

    /// Clients, rules or endpoints with the most refusals, in descending order.
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
}

impl ViolationFilter {
    fn apply(&self, query: &mut Sql) {
        query.and_in("namespace", self.namespaces.as_deref());
        let client_keys: Option<Vec<String>> =
            self.client_keys.as_ref().map(|keys| keys.iter().map(|key| stored_text(key)).collect());
        query.and_in("client_key", client_keys.as_deref());
        query.and_if(" AND endpoint = ?", self.endpoint.as_deref().map(stored_text));
        query.and_if(" AND rule_id = ?", self.rule_id.as_deref());
        query.and_if(" AND shadow = ?", self.is_shadow);
        query.and_if(" AND violated_at >= ?", self.from);
        query.and_if(" AND violated_at < ?", self.to);
    }
}

/// Adds a list of rows. It is bound as one value, so that one statement is prepared for any number of rows.
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

/// Violations as a list: one row per client, rule and minute, sorted, so that nodes that write the same rows do not
/// deadlock.
fn rows(violations: &[Violation]) -> Value {
    let mut rows: BTreeMap<_, Violation> = BTreeMap::new();
    for violation in violations {
        let Violation { namespace, client_key, rule_id, minute, is_shadow, .. } = violation;
        let key = (namespace, stored_text(client_key), rule_id, minute, is_shadow);
        match rows.get_mut(&key) {
            Some(earlier) => earlier.add(violation),
            None => drop(rows.insert(key, violation.clone())),
        }
    }
    let row = |row: &Violation| {
        json!({
            "n": row.namespace, "c": stored_text(&row.client_key), "e": stored_text(&row.endpoint), "r": row.rule_id,
            "s": row.is_shadow, "t": row.minute.to_string(), "z": row.last.to_string(), "f": row.refused,
            "q": row.request_count, "l": row.limit_value,
        })
    };
    rows.values().map(row).collect()
}

/// A text as it is stored: shortened, and without NUL, which PostgreSQL cannot store.
fn stored_text(text: &str) -> String {
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
            message: "this is not a cursor of this list".to_owned(),
            help: Some("send the `next_cursor` of the last page as it was, or none for the first page".to_owned()),
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
