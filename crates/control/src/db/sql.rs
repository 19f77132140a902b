//! A statement and its values, put together from texts of this program only.

use std::borrow::Cow;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::Value;
use crate::document::fault;
use crate::{Error, Result};

/// A statement. Its text is made of texts that stand in this program; what anybody sent is a [`Value`]. That is why
/// there is nothing to escape.
#[derive(Clone, Debug)]
pub(crate) struct Sql {
    text: Cow<'static, str>,
    pub(super) values: Vec<Value>,
}

/// A statement with its values: `sql!("DELETE FROM clients WHERE client_key = $1", key)`.
macro_rules! sql {
    ($text:expr $(, $value:expr)* $(,)?) => {
        $crate::db::Sql::new($text, vec![$($crate::db::Value::from($value)),*])
    };
}
pub(crate) use sql;

impl Sql {
    /// A statement whose text names its values `$1`, `$2`, ….
    pub(crate) fn new(text: &'static str, values: Vec<Value>) -> Sql {
        Sql { text: Cow::Borrowed(text), values }
    }

    /// Goes on with more text, in which each `?` stands for the next value.
    pub(crate) fn and(&mut self, text: &'static str, values: impl IntoIterator<Item = Value>) {
        let mut values = values.into_iter();
        let mut pieces = text.split('?');
        let whole = self.text.to_mut();
        whole.push_str(pieces.next().unwrap_or_default());
        for (piece, value) in pieces.zip(&mut values) {
            self.values.push(value);
            whole.push('$');
            whole.push_str(&self.values.len().to_string());
            whole.push_str(piece);
        }
        debug_assert!(values.next().is_none(), "more values than `?` in {text}");
    }

    /// Goes on if there is something to ask about: one condition with one value.
    pub(crate) fn and_if(&mut self, text: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.and(text, [value.into()]);
        }
    }

    /// Goes on with ` AND column IN (…)`, if there is something to ask about. Nothing is in an empty list.
    pub(crate) fn and_in(&mut self, column: &'static str, any: Option<&[String]>) {
        let Some(any) = any else { return };
        self.and(" AND ", []);
        self.and(column, []);
        match any.split_first() {
            None => self.and(" <> ?", [Value::Null]),
            Some((first, rest)) => {
                self.and(" IN (?", [first.into()]);
                rest.iter().for_each(|one| self.and(", ?", [one.into()]));
                self.and(")", []);
            }
        }
    }

    /// Goes on with one piece for each row of values, with commas between.
    pub(crate) fn and_listed(
        &mut self,
        open: &'static str,
        piece: &'static str,
        close: &'static str,
        rows: impl IntoIterator<Item = Vec<Value>>,
    ) {
        self.and(open, []);
        for (index, row) in rows.into_iter().enumerate() {
            self.and(if index == 0 { "" } else { ", " }, []);
            self.and(piece, row);
        }
        self.and(close, []);
    }

    /// Refuses NUL in text, which PostgreSQL cannot hold: what one database refuses, both do.
    pub(super) fn check(&self) -> Result<()> {
        match self.values.iter().any(|value| matches!(value, Value::Text(text) if text.contains('\0'))) {
            true => Err(Error::Invalid(vec![fault("", "bad-text", "there is a NUL byte in a text", "remove it")])),
            false => Ok(()),
        }
    }

    pub(super) fn text(&self) -> SqlStr {
        AssertSqlSafe(self.text.clone()).into_sql_str()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn pieces_number_their_values() {
        let mut statement = sql!("SELECT 1 FROM clients WHERE namespace = $1", "a");
        statement.and(" AND (namespace, client_key) > (?, ?)", ["b".into(), "c".into()]);
        statement.and_if(" AND tier = ?", None::<&str>);
        statement.and_if(" AND tier = ?", Some("'; DROP TABLE clients"));
        statement.and_in("organisation", Some(&["x".to_owned(), "y".to_owned()]));
        assert_eq!(
            statement.text,
            "SELECT 1 FROM clients WHERE namespace = $1 AND (namespace, client_key) > ($2, $3) AND tier = $4 \
             AND organisation IN ($5, $6)"
        );
        assert_eq!(statement.values.len(), 6);
        statement.and_in("tier", Some(&[]));
        assert!(statement.text.ends_with(" AND tier <> $7"), "NULL differs from nothing: no row");
    }
}
