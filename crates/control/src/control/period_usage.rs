//! Usage of quotas by bucket and period. Written in batches, without audit.
//!
//! A row is what the store said at an instant of its own clock, never a sum of charges: nodes that write the same row in
//! any order, or twice, leave the reading that is the latest.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tollgate_core::Quota;

use super::Control;
use crate::db::{Sql, SqlRow, Tx, sql};
use crate::{Error, FieldError, Instant, Listing, Page, Result};

/// The usage of one bucket in one period, as the store said at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodUsage {
    /// The digest that names the bucket in the store.
    pub bucket: String,
    /// The node that has the bucket in its memory; empty if all nodes share it.
    pub node: String,
    /// The namespace of the rule; empty if the rule is not known.
    pub namespace: String,
    /// The rule; empty if it is not known.
    pub rule_id: String,
    /// Whose bucket it is.
    pub client_key: Option<String>,
    /// The organisation of the client.
    pub organisation: Option<String>,
    /// First instant of the period, if it is known.
    pub period_start: Option<Instant>,
    /// First instant after it.
    pub period_end: Instant,
    /// Units used.
    pub used: i64,
    /// Units that the period offers: amount, carried and granted.
    pub limit_value: Option<i64>,
    /// When the store said so, by its clock.
    pub as_of: Instant,
}

/// A stored row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodUsageRecord {
    /// Its id.
    pub usage_id: i64,
    /// The usage.
    pub usage: PeriodUsage,
}

/// Selects usage; `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeriodUsageFilter {
    /// In these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Of any of these client keys.
    pub client_keys: Option<Vec<String>>,
    /// Of any of these organisations.
    pub organisations: Option<Vec<String>>,
    /// Of this rule.
    pub rule_id: Option<String>,
    /// Periods that end later.
    pub from: Option<Instant>,
    /// Periods that start earlier.
    pub to: Option<Instant>,
}

impl PeriodUsage {
    /// The end of a period that never ends.
    pub fn never() -> Instant {
        Instant::from(Quota::FOREVER)
    }

    /// True if this reading is to replace another of the same bucket and period: it is later, or from the same
    /// microsecond and higher, because charges of one call are recorded at one instant.
    pub fn replaces(&self, other: &PeriodUsage) -> bool {
        (self.as_of, self.used) > (other.as_of, other.used)
    }

    /// The later of two readings, with what either knows of the bucket.
    #[must_use]
    pub fn merged(self, other: PeriodUsage) -> PeriodUsage {
        let (later, earlier) = if self.replaces(&other) { (self, other) } else { (other, self) };
        PeriodUsage {
            namespace: known(later.namespace, earlier.namespace),
            rule_id: known(later.rule_id, earlier.rule_id),
            client_key: later.client_key.or(earlier.client_key),
            organisation: later.organisation.or(earlier.organisation),
            period_start: later.period_start.or(earlier.period_start),
            limit_value: later.limit_value.or(earlier.limit_value),
            ..later
        }
    }
}

fn known(text: String, otherwise: String) -> String {
    if text.is_empty() { otherwise } else { text }
}

impl Control {
    /// Writes readings; all or none. Of one bucket and period the latest stays, and rows learn what they did not know.
    ///
    /// If the calendar of a client changed, its bucket kept the usage under a new end: the row with the old end is
    /// deleted, or the same units would be there twice.
    pub async fn record_usage(&self, readings: &[PeriodUsage]) -> Result<()> {
        if readings.is_empty() {
            return Ok(());
        }
        let rows = rows(readings);
        let write = async move |tx: &mut Tx| {
            tx.run(merge(rows.clone(), tx.is_postgres())).await?;
            tx.run(delete_replaced(rows.clone(), tx.is_postgres())).await.map(|_| ())
        };
        self.write_unaudited(write).await
    }

    /// Usage, the latest periods first.
    pub async fn period_usage(&self, filter: &PeriodUsageFilter, page: &Page) -> Result<Listing<PeriodUsageRecord>> {
        let mut query = sql!(
            "SELECT usage_id, bucket, node, namespace, rule_id, client_key, organisation, period_start, period_end, \
             used, limit_value, as_of FROM quota_usage WHERE TRUE"
        );
        filter.apply(&mut query);
        if let Some(after) = &page.after {
            let (end, id) = cursor(after)?;
            query.and(" AND (period_end, usage_id) < (?, ?)", [end.into(), id.into()]);
        }
        let most = page.limit.clamp(1, 1000);
        query.and(" ORDER BY period_end DESC, usage_id DESC LIMIT ?", [(most + 1).into()]);
        let rows = self.read(async move |tx| tx.all(query).await).await?;
        let mut entries: Vec<PeriodUsageRecord> = rows.iter().map(read).collect::<Result<_>>()?;
        let has_more = entries.len() > most as usize;
        entries.truncate(most as usize);
        let next = entries.last().filter(|_| has_more);
        let next = next.map(|last| format!("{}.{}", last.usage.period_end.0, last.usage_id));
        Ok(Listing { entries, next })
    }
}

impl PeriodUsageFilter {
    fn apply(&self, query: &mut Sql) {
        query.and_in("namespace", self.namespaces.as_deref());
        query.and_in("client_key", self.client_keys.as_deref());
        query.and_in("organisation", self.organisations.as_deref());
        query.and_if(" AND rule_id = ?", self.rule_id.as_deref());
        query.and_if(" AND period_end > ?", self.from);
        query.and_if(" AND (period_start IS NULL OR period_start < ?)", self.to);
    }
}

/// The rows of a list that is bound as one value, so that one statement is prepared for any number of them.
fn listed(is_postgres: bool) -> &'static str {
    match is_postgres {
        true => {
            "jsonb_to_recordset(?) AS r (b TEXT, k TEXT, n TEXT, r TEXT, c TEXT, o TEXT, s TIMESTAMPTZ, e TIMESTAMPTZ, \
             u BIGINT, l BIGINT, a TIMESTAMPTZ)"
        }
        false => {
            "(SELECT value ->> 'b' AS b, value ->> 'k' AS k, value ->> 'n' AS n, value ->> 'r' AS r, value ->> 'c' AS c, \
             value ->> 'o' AS o, value ->> 's' AS s, value ->> 'e' AS e, value ->> 'u' AS u, value ->> 'l' AS l, \
             value ->> 'a' AS a FROM json_each(?)) AS r"
        }
    }
}

/// Adds the readings that a later one under another end of the same period has not replaced.
fn merge(rows: Value, is_postgres: bool) -> Sql {
    let mut statement = sql!(
        "INSERT INTO quota_usage (bucket, node, namespace, rule_id, client_key, organisation, period_start, period_end, \
         used, limit_value, as_of) SELECT r.b, r.k, r.n, r.r, r.c, r.o, r.s, r.e, r.u, r.l, r.a FROM "
    );
    statement.and(listed(is_postgres), [rows.into()]);
    let unless_replaced = " WHERE NOT EXISTS (SELECT 1 FROM quota_usage AS other WHERE other.bucket = r.b \
                           AND other.node = r.k AND other.period_end <> r.e AND other.as_of > r.a \
                           AND other.as_of >= r.s AND other.as_of < r.e)";
    statement.and(unless_replaced, []);
    let merging = " ON CONFLICT (bucket, node, period_end) DO UPDATE SET \
                   namespace = CASE WHEN excluded.namespace = '' THEN quota_usage.namespace ELSE excluded.namespace END, \
                   rule_id = CASE WHEN excluded.rule_id = '' THEN quota_usage.rule_id ELSE excluded.rule_id END, \
                   client_key = COALESCE(excluded.client_key, quota_usage.client_key), \
                   organisation = COALESCE(excluded.organisation, quota_usage.organisation), \
                   period_start = COALESCE(excluded.period_start, quota_usage.period_start), \
                   used = CASE WHEN excluded.as_of > quota_usage.as_of \
                   OR (excluded.as_of = quota_usage.as_of AND excluded.used > quota_usage.used) \
                   THEN excluded.used ELSE quota_usage.used END, \
                   limit_value = CASE WHEN excluded.as_of >= quota_usage.as_of \
                   THEN COALESCE(excluded.limit_value, quota_usage.limit_value) \
                   ELSE COALESCE(quota_usage.limit_value, excluded.limit_value) END, \
                   as_of = CASE WHEN excluded.as_of > quota_usage.as_of THEN excluded.as_of ELSE quota_usage.as_of END";
    statement.and(merging, []);
    statement
}

/// Deletes rows whose period contains the instant of a later reading of the bucket under another end.
fn delete_replaced(rows: Value, is_postgres: bool) -> Sql {
    let mut statement = sql!("DELETE FROM quota_usage WHERE usage_id IN (SELECT old.usage_id FROM ");
    statement.and(listed(is_postgres), [rows.into()]);
    // The order of the join is told: SQLite knows no size of the list.
    let replaced = " CROSS JOIN quota_usage AS old WHERE old.bucket = r.b AND old.node = r.k AND old.period_end <> r.e \
                    AND old.as_of < r.a AND old.period_start <= r.a AND old.period_end > r.a)";
    statement.and(replaced, []);
    statement
}

/// Readings as a list: one row per bucket and period, sorted, so that nodes that write the same rows do not deadlock.
fn rows(readings: &[PeriodUsage]) -> Value {
    let mut rows: BTreeMap<_, PeriodUsage> = BTreeMap::new();
    for reading in readings {
        let key = (&reading.bucket, &reading.node, reading.period_end);
        let merged = match rows.remove(&key) {
            Some(earlier) => reading.clone().merged(earlier),
            None => reading.clone(),
        };
        rows.insert(key, merged);
    }
    let row = |row: &PeriodUsage| {
        json!({
            "b": row.bucket, "k": row.node, "n": row.namespace, "r": row.rule_id, "c": row.client_key,
            "o": row.organisation, "s": row.period_start.map(|start| start.to_string()),
            "e": row.period_end.to_string(), "u": row.used, "l": row.limit_value, "a": row.as_of.to_string(),
        })
    };
    rows.values().map(row).collect()
}

fn cursor(text: &str) -> Result<(Instant, i64)> {
    let parts = text.split_once('.').and_then(|(end, id)| Some((Instant(end.parse().ok()?), id.parse().ok()?)));
    parts.ok_or_else(|| {
        Error::Invalid(vec![FieldError {
            field: "cursor".to_owned(),
            code: "bad-cursor".to_owned(),
            message: "this is not a cursor of this list".to_owned(),
            help: Some("send the `next_cursor` of the last page as it was, or none for the first page".to_owned()),
        }])
    })
}

fn read(row: &SqlRow) -> Result<PeriodUsageRecord> {
    let text = |position: usize| row.lossy_text(position);
    let maybe = |position: usize| text(position).map(|text| Some(text).filter(|text| !text.is_empty()));
    Ok(PeriodUsageRecord {
        usage_id: row.get(0)?,
        usage: PeriodUsage {
            bucket: text(1)?,
            node: text(2)?,
            namespace: text(3)?,
            rule_id: text(4)?,
            client_key: maybe(5)?,
            organisation: maybe(6)?,
            period_start: row.get(7)?,
            period_end: row.get(8)?,
            used: row.get(9)?,
            limit_value: row.get(10)?,
            as_of: row.get(11)?,
        },
    })
}
