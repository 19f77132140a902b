//! Tables as rows of untyped values, for copying.

use tracing::warn;

use crate::Result;
use crate::db::{Json, Sql, SqlRow, SqlValue, Tx};

/// Rows of one page.
const PAGE: i64 = 1000;

/// A table and its columns.
#[derive(Debug)]
pub(super) struct CopiedTable {
    name: &'static str,
    columns: &'static [(&'static str, Type)],
    /// Number of leading columns that form the key.
    key: usize,
    /// The columns that rows are selected by.
    about: &'static [&'static str],
}

/// A page of rows.
pub(super) struct RowPage {
    /// The rows that can be read.
    pub(super) rows: Vec<Vec<SqlValue>>,
    /// The key of the last row, readable or not.
    pub(super) last: Vec<SqlValue>,
}

#[derive(Clone, Copy, Debug)]
enum Type {
    Int,
    Text,
    Bool,
    Time,
    Json,
    Bytes,
}

use Type::{Bool, Bytes, Int, Json as Document, Text, Time};

pub(super) static NAMESPACES: CopiedTable = CopiedTable {
    name: "rate_limit_namespaces",
    columns: &[
        ("namespace", Text),
        ("ipv6_prefix", Int),
        ("escaped_slash", Text),
        ("allow_block_all", Bool),
        ("normalize", Text),
        ("version", Int),
    ],
    key: 1,
    about: &["namespace"],
};

pub(super) static RULES: CopiedTable = CopiedTable {
    name: "rate_limit_rules",
    columns: &[
        ("namespace", Text),
        ("rule_id", Text),
        ("name", Text),
        ("client_key", Text),
        ("endpoint", Text),
        ("\"match\"", Document),
        ("key_by", Text),
        ("algorithm", Text),
        ("max_requests", Int),
        ("window_secs", Int),
        ("window_ms", Int),
        ("burst_size", Int),
        ("cost", Document),
        ("mode", Text),
        ("consistency", Text),
        ("on_fail", Text),
        ("options", Document),
        ("enabled", Bool),
        ("created_at", Time),
        ("updated_at", Time),
        ("version", Int),
    ],
    key: 2,
    about: &["namespace", "rule_id"],
};

pub(super) static OVERRIDES: CopiedTable = CopiedTable {
    name: "rate_limit_overrides",
    columns: &[
        ("namespace", Text),
        ("override_id", Text),
        ("client_key", Text),
        ("rule_id", Text),
        ("max_requests", Int),
        ("burst_size", Int),
        ("unlimited", Bool),
        ("valid_from", Time),
        ("valid_until", Time),
        ("reason", Text),
        ("created_at", Time),
        ("updated_at", Time),
        ("version", Int),
    ],
    key: 2,
    about: &["namespace", "client_key"],
};

pub(super) static GRANTS: CopiedTable = CopiedTable {
    name: "rate_limit_grants",
    columns: &[
        ("namespace", Text),
        ("grant_id", Text),
        ("client_key", Text),
        ("rule_id", Text),
        ("amount", Int),
        ("valid_from", Time),
        ("valid_until", Time),
        ("reason", Text),
        ("created_at", Time),
        ("updated_at", Time),
        ("version", Int),
    ],
    key: 2,
    about: &["namespace", "client_key"],
};

pub(super) static RULE_MODES: CopiedTable = CopiedTable {
    name: "rate_limit_rule_modes",
    columns: &[
        ("namespace", Text),
        ("rule_id", Text),
        ("mode", Text),
        ("reason", Text),
        ("created_at", Time),
        ("updated_at", Time),
        ("version", Int),
    ],
    key: 2,
    about: &["namespace"],
};

pub(super) static CLIENTS: CopiedTable = CopiedTable {
    name: "clients",
    columns: &[
        ("namespace", Text),
        ("client_key", Text),
        ("tier", Text),
        ("organisation", Text),
        ("plan", Text),
        ("attributes", Document),
        ("created_at", Time),
        ("updated_at", Time),
        ("version", Int),
    ],
    key: 2,
    about: &["namespace", "client_key"],
};

pub(super) static PLANS: CopiedTable = CopiedTable {
    name: "rate_limit_plans",
    columns: &[
        ("namespace", Text),
        ("plan_id", Text),
        ("extends", Text),
        ("is_default", Bool),
        ("limits", Document),
        ("description", Text),
        ("created_at", Time),
        ("updated_at", Time),
        ("version", Int),
    ],
    key: 2,
    about: &["namespace"],
};

pub(super) static API_KEYS: CopiedTable = CopiedTable {
    name: "rate_limit_keys",
    columns: &[
        ("namespace", Text),
        ("key_id", Text),
        ("client_key", Text),
        ("name", Text),
        ("hash", Bytes),
        ("previous_hash", Bytes),
        ("previous_until", Time),
        ("rotated_at", Time),
        ("expires_at", Time),
        ("revoked_at", Time),
        ("created_by", Text),
        ("created_at", Time),
        ("updated_at", Time),
        ("version", Int),
    ],
    key: 2,
    about: &["namespace", "key_id"],
};

pub(super) static TOKENS: CopiedTable = CopiedTable {
    name: "tokens",
    columns: &[
        ("token_id", Text),
        ("name", Text),
        ("role", Text),
        ("namespaces", Document),
        ("hash", Bytes),
        ("created_at", Time),
        ("created_by", Text),
        ("expires_at", Time),
        ("last_used_at", Time),
        ("revoked_at", Time),
    ],
    key: 1,
    about: &[],
};

impl CopiedTable {
    /// The next rows after a key; `None` at the end.
    pub(super) async fn page(&self, tx: &mut Tx, after: Option<&[SqlValue]>) -> Result<Option<RowPage>> {
        let mut select = self.select();
        if let Some(after) = after {
            select.and(" AND (", []);
            list(&mut select, self.keys());
            select.and(") > (", []);
            marks(&mut select, after);
            select.and(")", []);
        }
        select.and(" ORDER BY ", []);
        list(&mut select, self.keys());
        select.and(" LIMIT ?", [PAGE.into()]);
        let rows = tx.all(select).await?;
        let Some(last) = rows.last() else { return Ok(None) };
        let last = self.columns.iter().take(self.key).enumerate().map(|(place, (_, kind))| kind.read(last, place));
        Ok(Some(RowPage { last: last.collect::<Result<_>>()?, rows: self.readable(&rows) }))
    }

    /// All rows with these values in the `about` columns.
    pub(super) async fn of(&self, tx: &mut Tx, of: &[&str]) -> Result<Vec<Vec<SqlValue>>> {
        let mut select = self.select();
        self.about(&mut select, of);
        Ok(self.readable(&tx.all(select).await?))
    }

    pub(super) fn insert(&self, row: &[SqlValue]) -> Sql {
        let mut insert = Sql::new("INSERT INTO ", Vec::new());
        insert.and(self.name, []);
        insert.and(" (", []);
        list(&mut insert, self.columns.iter().map(|(name, _)| *name));
        insert.and(") VALUES (", []);
        marks(&mut insert, row);
        insert.and(")", []);
        insert
    }

    pub(super) fn upsert(&self, row: &[SqlValue]) -> Sql {
        let mut upsert = self.insert(row);
        upsert.and(" ON CONFLICT (", []);
        list(&mut upsert, self.keys());
        upsert.and(") DO UPDATE SET ", []);
        for (number, (name, _)) in self.columns.iter().enumerate().skip(self.key) {
            upsert.and(if number > self.key { ", " } else { "" }, []);
            upsert.and(name, []);
            upsert.and(" = excluded.", []);
            upsert.and(name, []);
        }
        upsert
    }

    /// Deletes the row of a key.
    pub(super) fn delete(&self, key: Vec<SqlValue>) -> Sql {
        let mut delete = self.empty();
        delete.and(" WHERE (", []);
        list(&mut delete, self.keys());
        delete.and(") = (", []);
        marks(&mut delete, &key);
        delete.and(")", []);
        delete
    }

    /// Deletes all rows with these values in the `about` columns.
    pub(super) fn delete_of(&self, of: &[&str]) -> Sql {
        let mut delete = self.empty();
        delete.and(" WHERE TRUE", []);
        self.about(&mut delete, of);
        delete
    }

    /// Deletes all rows.
    pub(super) fn empty(&self) -> Sql {
        let mut delete = Sql::new("DELETE FROM ", Vec::new());
        delete.and(self.name, []);
        delete
    }

    fn select(&self) -> Sql {
        let mut select = Sql::new("SELECT ", Vec::new());
        list(&mut select, self.columns.iter().map(|(name, _)| *name));
        select.and(" FROM ", []);
        select.and(self.name, []);
        select.and(" WHERE TRUE", []);
        select
    }

    fn about(&self, statement: &mut Sql, of: &[&str]) {
        for (column, value) in self.about.iter().zip(of) {
            statement.and(" AND ", []);
            statement.and(column, []);
            statement.and(" = ?", [(*value).into()]);
        }
    }

    fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().take(self.key).map(|(name, _)| *name)
    }

    /// The rows that can be read. Nodes quarantine all others.
    fn readable(&self, rows: &[SqlRow]) -> Vec<Vec<SqlValue>> {
        let values = |row| {
            let values = self.values(row);
            values.inspect_err(|why| warn!(table = self.name, %why, "unreadable row not copied")).ok()
        };
        rows.iter().filter_map(values).collect()
    }

    fn values(&self, row: &SqlRow) -> Result<Vec<SqlValue>> {
        self.columns.iter().enumerate().map(|(place, (_, kind))| kind.read(row, place)).collect()
    }
}

impl Type {
    fn read(self, row: &SqlRow, place: usize) -> Result<SqlValue> {
        Ok(match self {
            Int => row.get::<Option<i64>>(place)?.into(),
            Text => row.get::<Option<String>>(place)?.into(),
            Bool => row.get::<Option<bool>>(place)?.into(),
            Time => row.get::<Option<crate::Instant>>(place)?.into(),
            Document => row.get::<Option<Json>>(place)?.map(|Json(json)| json).into(),
            Bytes => row.get::<Option<Vec<u8>>>(place)?.as_deref().into(),
        })
    }
}

fn list(statement: &mut Sql, names: impl Iterator<Item = &'static str>) {
    for (number, name) in names.enumerate() {
        statement.and(if number > 0 { ", " } else { "" }, []);
        statement.and(name, []);
    }
}

fn marks(statement: &mut Sql, values: &[SqlValue]) {
    for (number, value) in values.iter().enumerate() {
        statement.and(if number > 0 { ", ?" } else { "?" }, [value.clone()]);
    }
}
