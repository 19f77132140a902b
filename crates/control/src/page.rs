//! Pages of lists.

use serde_json::Value;

use crate::error::field_error;
use crate::hex::hex;
use crate::{Error, Result};

/// Most entries of a page.
const LIMIT_MAX: u32 = 1000;

/// A request for a page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Most entries; 1 to 1000.
    pub limit: u32,
    /// The `next` of the previous page; opaque.
    pub after: Option<String>,
}

impl Default for Page {
    fn default() -> Page {
        Page { limit: 100, after: None }
    }
}

impl Page {
    /// The number of entries, within the allowed range.
    pub(crate) fn limit(&self) -> usize {
        usize::try_from(self.limit.clamp(1, LIMIT_MAX)).unwrap_or(1)
    }

    /// The key after which the page begins, from a [`cursor`] of two [`cursor_part`]s.
    pub(crate) fn after_key(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let Some(cursor) = &self.after else { return Ok(None) };
        let key = read(cursor).and_then(|value| {
            let [first, second] = value.as_array()?.as_slice() else { return None };
            Some((bytes(first)?, bytes(second)?))
        });
        key.map(Some).ok_or_else(broken)
    }

    /// The number after which the page begins, for lists with a numeric key.
    pub(crate) fn after_number(&self) -> Result<Option<i64>> {
        let Some(cursor) = &self.after else { return Ok(None) };
        read(cursor).and_then(|value| value.as_i64()).map(Some).ok_or_else(broken)
    }
}

/// A position in a list, as opaque text.
pub(crate) fn cursor(place: &Value) -> String {
    hex(place.to_string().as_bytes())
}

/// A text of a database as a part of a cursor; a list of bytes if it is not UTF-8, which SQLite does not validate.
pub(crate) fn cursor_part(text: Vec<u8>) -> Value {
    String::from_utf8(text).map_or_else(|bad| bad.into_bytes().into(), Value::from)
}

fn bytes(place: &Value) -> Option<Vec<u8>> {
    match place {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Array(bytes) => bytes.iter().map(|byte| byte.as_u64()?.try_into().ok()).collect(),
        _ => None,
    }
}

fn read(cursor: &str) -> Option<Value> {
    let digits: Vec<u8> = cursor.chars().map(|letter| letter.to_digit(16)?.try_into().ok()).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    serde_json::from_slice(&bytes).ok().filter(|_| rest.is_empty())
}

fn broken() -> Error {
    let help = "send the `next_cursor` of the last page as it was, or none for the first page";
    Error::Invalid(vec![field_error("cursor", "bad-cursor", "this is not a cursor of this list", help)])
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    /// The entries.
    pub entries: Vec<T>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn after(cursor: &str) -> Page {
        Page { after: Some(cursor.to_owned()), ..Page::default() }
    }

    #[test]
    fn cursors_decode_to_what_was_encoded() {
        for (a, b) in [("default", "x"), ("", ""), ("é🦀", "a\"b\\c\u{0}")] {
            assert_eq!(after(&cursor(&json!([a, b]))).after_key().unwrap(), Some((a.into(), b.into())));
        }
        let odd = json!([cursor_part(b"a\xff".to_vec()), cursor_part(b"b".to_vec())]);
        assert_eq!(after(&cursor(&odd)).after_key().unwrap(), Some((b"a\xff".to_vec(), b"b".to_vec())));
        assert_eq!(after(&cursor(&json!(-7))).after_number().unwrap(), Some(-7));
    }

    #[test]
    fn an_invalid_cursor_is_refused() {
        for text in ["", "0", "zz", "5b", "5b5d", "é", &cursor(&json!(7)), &cursor(&json!(["a", 1])), &"f".repeat(9999)]
        {
            let Err(Error::Invalid(faults)) = after(text).after_key() else { panic!("{text} was taken") };
            assert_eq!(faults[0].field, "cursor");
        }
        assert!(after(&cursor(&json!(["a", "b"]))).after_number().is_err());
    }
}
