//! A statement and its bound values.

use std::borrow::Cow;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use crate::{Error, Result, SqlValue, field_error};

/// A statement. Its text consists of literals of this program; input is always a bound [`SqlValue`], so nothing is
/// escaped.
#[derive(Clone, Debug)]
pub struct Sql {
    text: Cow<'static, str>,
    pub(super) values: Vec<SqlValue>,
}

/// A statement with its values: `sql!("DELETE FROM clients WHERE client_key = $1", key)`.
#[macro_export]
macro_rules! sql {
    ($text:expr $(, $value:expr)* $(,)?) => {
        $crate::Sql::new($text, vec![$($crate::SqlValue::from($value)),*])
    };
}

impl Sql {
    /// A statement whose text names its values `$1`, `$2`, …, or has no values yet.
    pub fn new(text: &'static str, values: Vec<SqlValue>) -> Sql {
        Sql { text: Cow::Borrowed(text), values }
    }

    /// Appends text in which each `?` stands for the next value.
    pub fn and(&mut self, text: &'static str, values: impl IntoIterator<Item = SqlValue>) {
        let before = self.values.len();
        self.values.extend(values);
        debug_assert_eq!(text.matches('?').count(), self.values.len() - before, "values for {text}");
        debug_assert!(!self.text.contains("$1"), "`$1` and `?` in one statement: {}", self.text);
        self.text.to_mut().push_str(text);
    }

    /// Appends a condition with one value, if there is a value.
    pub fn and_if(&mut self, text: &'static str, value: Option<impl Into<SqlValue>>) {
        if let Some(value) = value {
            self.and(text, [value.into()]);
        }
    }

    /// Appends ` AND column IN (…)`, if there is a list. An empty list matches nothing.
    pub fn and_in(&mut self, column: &'static str, any: Option<&[String]>) {
        let Some(any) = any else { return };
        self.and(" AND ", []);
        self.and(column, []);
        match any.split_first() {
            None => self.and(" <> ?", [SqlValue::Null]),
            Some((first, rest)) => {
                self.and(" IN (?", [first.into()]);
                rest.iter().for_each(|one| self.and(", ?", [one.into()]));
                self.and(")", []);
            }
        }
    }

    /// Appends `piece` for each row of values, separated by commas.
    pub fn and_listed(
        &mut self,
        open: &'static str,
        piece: &'static str,
        close: &'static str,
        rows: impl IntoIterator<Item = Vec<SqlValue>>,
    ) {
        self.and(open, []);
        for (index, row) in rows.into_iter().enumerate() {
            self.and(if index == 0 { "" } else { ", " }, []);
            self.and(piece, row);
        }
        self.and(close, []);
    }

    /// Refuses NUL in text, which PostgreSQL cannot store, for both databases alike.
    pub(super) fn check(&self) -> Result<()> {
        match self.values.iter().any(|value| matches!(value, SqlValue::Text(text) if text.contains('\0'))) {
            true => {
                Err(Error::Invalid(vec![field_error("", "bad-text", "there is a NUL byte in a text", "remove it")]))
            }
            false => Ok(()),
        }
    }

    /// The text for SQLite, with unnumbered parameters: it looks up named ones in a list, which is slow for a thousand
    /// values.
    pub(super) fn for_sqlite(&self) -> SqlStr {
        AssertSqlSafe(self.text.clone()).into_sql_str()
    }

    /// The text for PostgreSQL, with numbered parameters.
    pub(super) fn for_postgres(&self) -> SqlStr {
        let mut pieces = self.text.split('?');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for (number, piece) in (1..).zip(pieces) {
            text.push('$');
            text.push_str(&i32::to_string(&number));
            text.push_str(piece);
        }
        AssertSqlSafe(text).into_sql_str()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn pieces_number_their_values() {
        let mut statement = sql!("SELECT 1 FROM clients WHERE TRUE");
        statement.and(" AND (namespace, client_key) > (?, ?)", ["b".into(), "c".into()]);
        statement.and_if(" AND tier = ?", None::<&str>);
        statement.and_if(" AND tier = ?", Some("'; DROP TABLE clients"));
        statement.and_in("organisation", Some(&["x".to_owned(), "y".to_owned()]));
        let expected = "SELECT 1 FROM clients WHERE TRUE AND (namespace, client_key) > (?, ?) AND tier = ? \
                        AND organisation IN (?, ?)";
        assert_eq!(statement.for_sqlite().as_str(), expected);
        let expected = "SELECT 1 FROM clients WHERE TRUE AND (namespace, client_key) > ($1, $2) AND tier = $3 \
                        AND organisation IN ($4, $5)";
        assert_eq!(statement.for_postgres().as_str(), expected);
        assert_eq!(statement.values.len(), 5);
        statement.and_in("tier", Some(&[]));
        assert!(statement.for_sqlite().as_str().ends_with(" AND tier <> ?"), "NULL differs from nothing: no row");
    }
}
