//! Conversion between rules and the columns of `rate_limit_rules`.
//!
//! The columns are for people who query: the numbers of a limit, the one client, the one endpoint. Fields without a
//! column are in `match` and `options` as they were sent. Defaults are left out of documents, so a rule returns no
//! longer than it was.

use serde_json::{Map, Value, json};
use tollgate_rules::document::NamespaceSettings;
use tollgate_rules::{LimitAlgorithm, Pattern, RuleSpec, duration};

use super::document::{self, short_text};
use super::rule::RuleDraft;
use crate::db::{Json, SqlRow, SqlValue};
use crate::error::field_error;
use crate::{Error, FieldError, Result};

/// Fields of a limit without a column.
const LIMIT_OPTIONS: [&str; 5] = ["slot_ttl", "reserved", "reserved_for", "max_delay", "align"];
/// Algorithms that use `burst_size`.
const HAVE_BURST: [LimitAlgorithm; 3] =
    [LimitAlgorithm::TokenBucket, LimitAlgorithm::Gcra, LimitAlgorithm::LeakyBucket];
/// Longest name of a rule.
const NAME_BYTES_MAX: usize = 256;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// The columns with the content of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuleColumns {
    name: String,
    client_key: String,
    endpoint: String,
    conditions: Map<String, Value>,
    key_by: Option<String>,
    algorithm: String,
    max_requests: Option<i64>,
    window_secs: Option<i64>,
    window_ms: i64,
    burst_size: i64,
    cost: Value,
    mode: String,
    consistency: String,
    on_fail: Option<String>,
    options: Map<String, Value>,
    enabled: bool,
}

/// Number of columns.
pub(crate) const COLUMNS: usize = 16;

impl RuleColumns {
    /// The columns and the specification of a draft, or all errors in it.
    pub(crate) fn of(
        rule_id: &str,
        draft: &RuleDraft,
        settings: &NamespaceSettings,
    ) -> Result<(RuleColumns, RuleSpec), Vec<FieldError>> {
        let mut faults = Vec::new();
        short_text("name", &draft.name, NAME_BYTES_MAX, &mut faults);
        if draft.name.chars().any(char::is_control) {
            faults.push(field_error("name", "bad-name", "name has control characters", "remove them"));
        }
        let spec = match document::rule(rule_id, &draft.document, settings) {
            Ok(spec) if faults.is_empty() => spec,
            Ok(_) => return Err(faults),
            Err(more) => return Err([faults, more].concat()),
        };
        match spec.limit.as_ref().is_none_or(|limit| limit.window_ns.is_multiple_of(NANOS_PER_MILLI)) {
            true => Ok((RuleColumns::split(rule_id, draft, &spec), spec)),
            false => Err(vec![field_error(
                "limit.window",
                "bad-duration",
                "limit.window is finer than a millisecond",
                "use whole milliseconds",
            )]),
        }
    }

    fn split(rule_id: &str, draft: &RuleDraft, spec: &RuleSpec) -> RuleColumns {
        let mut rest = draft.document.clone();
        let mut conditions = match rest.remove("match") {
            Some(Value::Object(conditions)) => conditions,
            _ => Map::new(),
        };
        let mut options = Map::new();
        if let Some(Value::Object(limit)) = rest.remove("limit") {
            options.extend(limit.into_iter().filter(|(name, _)| LIMIT_OPTIONS.contains(&name.as_str())));
        }
        rest.remove("key_by");
        let mut text = |name: &str| match rest.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (mode, consistency, on_fail) = (text("mode"), text("consistency"), text("on_fail"));
        let cost = rest.remove("cost").unwrap_or_else(|| json!(1));
        options.extend(rest);
        // A quota stays in the options: its period is not a window.
        let limit = spec.limit.as_ref().filter(|limit| limit.quota.is_none());
        let window_ms = limit.filter(|limit| limit.window_ns > 0).map(|limit| limit.window_ns / NANOS_PER_MILLI);
        RuleColumns {
            // The id serves as the name, so that rules of one endpoint satisfy the UNIQUE constraint.
            name: if draft.name.is_empty() { rule_id.to_owned() } else { draft.name.clone() },
            client_key: take(&mut conditions, "client_key", |text| {
                matches!(Pattern::parse(text), Ok(Pattern::Exact(_)))
            }),
            endpoint: take(&mut conditions, "endpoint", |text| text != "*"),
            conditions,
            key_by: spec.key_by.as_ref().map(ToString::to_string),
            algorithm: limit.map(|limit| limit.algorithm).unwrap_or_default().name().to_owned(),
            max_requests: limit.map(|limit| match limit.algorithm {
                LimitAlgorithm::Concurrency => whole(limit.slots),
                _ => whole(limit.requests),
            }),
            window_secs: window_ms.map(|ms| whole(ms / 1000)),
            window_ms: window_ms.map_or(0, |ms| whole(ms % 1000)),
            burst_size: limit.and_then(|limit| limit.burst).map_or(0, whole),
            cost,
            mode: mode.unwrap_or_else(|| "enforce".to_owned()),
            consistency: consistency.unwrap_or_else(|| "exact".to_owned()),
            on_fail,
            options,
            enabled: draft.enabled,
        }
    }

    /// The draft of these columns. It is not validated: SQL may have written them.
    pub(crate) fn draft(&self, rule_id: &str) -> RuleDraft {
        let mut document = self.options.clone();
        let mut conditions = self.conditions.clone();
        for (name, column) in [("client_key", &self.client_key), ("endpoint", &self.endpoint)] {
            if column != "*" {
                conditions.insert(name.to_owned(), json!(column));
            }
        }
        let mut set = |name: &str, value: Value| document.insert(name.to_owned(), value);
        if !conditions.is_empty() {
            set("match", Value::Object(conditions));
        }
        self.key_by.as_ref().map(|key_by| set("key_by", json!(key_by)));
        self.on_fail.as_ref().map(|on_fail| set("on_fail", json!(on_fail)));
        (self.mode != "enforce").then(|| set("mode", json!(self.mode)));
        (self.consistency != "exact").then(|| set("consistency", json!(self.consistency)));
        (self.cost != json!(1)).then(|| set("cost", self.cost.clone()));
        if self.max_requests.is_some() || self.window_secs.is_some() {
            let limit = self.limit(&mut document);
            document.insert("limit".to_owned(), Value::Object(limit));
        }
        let name = if self.name == rule_id { String::new() } else { self.name.clone() };
        RuleDraft { name, document, enabled: self.enabled }
    }

    fn limit(&self, options: &mut Map<String, Value>) -> Map<String, Value> {
        let mut limit = Map::new();
        for name in LIMIT_OPTIONS {
            limit.extend(options.remove_entry(name));
        }
        let most = if self.algorithm == LimitAlgorithm::Concurrency.name() { "slots" } else { "requests" };
        limit.insert("algorithm".to_owned(), json!(self.algorithm));
        limit.extend(self.max_requests.map(|requests| (most.to_owned(), json!(requests))));
        limit.extend(self.window_secs.map(|seconds| ("window".to_owned(), json!(window(seconds, self.window_ms)))));
        // Every row has the column, but windows have no burst: a value from SQL is ignored.
        let has_burst = HAVE_BURST.iter().any(|algorithm| algorithm.name() == self.algorithm);
        limit.extend((has_burst && self.burst_size != 0).then(|| ("burst".to_owned(), json!(self.burst_size))));
        limit
    }

    /// Reads the columns from a position on, in the order of [`values`](RuleColumns::values).
    pub(crate) fn read(row: &SqlRow, from: usize) -> Result<RuleColumns> {
        let columns = RuleColumns {
            name: row.get(from)?,
            client_key: row.get(from + 1)?,
            endpoint: row.get(from + 2)?,
            conditions: object("match", row.get(from + 3)?)?,
            key_by: row.get(from + 4)?,
            algorithm: row.get(from + 5)?,
            max_requests: row.get(from + 6)?,
            window_secs: row.get(from + 7)?,
            window_ms: row.get(from + 8)?,
            burst_size: row.get::<Option<i64>>(from + 9)?.unwrap_or(0),
            cost: row.get::<Json>(from + 10)?.0,
            mode: row.get(from + 11)?,
            consistency: row.get(from + 12)?,
            on_fail: row.get(from + 13)?,
            options: object("options", row.get(from + 14)?)?,
            enabled: row.get(from + 15)?,
        };
        for (name, column) in [("client_key", &columns.client_key), ("endpoint", &columns.endpoint)] {
            if column != "*" && columns.conditions.contains_key(name) {
                return Err(Error::Unexpected(format!("column match: has {name}, which stands in its own column too")));
            }
        }
        Ok(columns)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The values of a row.
    pub(crate) fn values(&self) -> [SqlValue; COLUMNS] {
        [
            (&self.name).into(),
            (&self.client_key).into(),
            (&self.endpoint).into(),
            Value::Object(self.conditions.clone()).into(),
            self.key_by.as_ref().into(),
            (&self.algorithm).into(),
            self.max_requests.into(),
            self.window_secs.into(),
            self.window_ms.into(),
            self.burst_size.into(),
            self.cost.clone().into(),
            (&self.mode).into(),
            (&self.consistency).into(),
            self.on_fail.as_ref().into(),
            Value::Object(self.options.clone()).into(),
            self.enabled.into(),
        ]
    }
}

/// Removes and returns a condition that is a single text of the wanted form; otherwise `*`, the default of the column.
fn take(conditions: &mut Map<String, Value>, name: &str, wanted: impl Fn(&str) -> bool) -> String {
    let is_single = |text: &str| !text.starts_with('!') && wanted(text);
    match conditions.get(name) {
        Some(Value::String(text)) if is_single(text) => {
            let text = text.clone();
            conditions.remove(name);
            text
        }
        _ => "*".to_owned(),
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The text of a window. An invalid one, negative or with 1000 ms and more, is rendered as it is, for the reader to
/// refuse.
fn window(seconds: i64, ms: i64) -> String {
    let nanos = u64::try_from(seconds).ok().zip(u64::try_from(ms).ok().filter(|ms| *ms < 1000));
    let nanos =
        nanos.and_then(|(seconds, ms)| seconds.checked_mul(1000)?.checked_add(ms)?.checked_mul(NANOS_PER_MILLI));
    nanos.map_or_else(|| format!("{seconds}s and {ms}ms"), duration::display)
}

fn object(column: &str, json: Json) -> Result<Map<String, Value>> {
    match json.0 {
        Value::Object(map) => Ok(map),
        _ => Err(Error::Unexpected(format!("column {column}: should hold an object"))),
    }
}
