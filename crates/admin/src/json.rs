//! Parses request bodies strictly: JSON objects without duplicate names, which parsers interpret differently, and without
//! NUL, which databases reject.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::problem::AdminProblem;

/// Parses a body that must be an object.
pub fn object(body: &[u8]) -> Result<Map<String, Value>, AdminProblem> {
    if body.trim_ascii().is_empty() {
        return Err(not_json("The body is empty; send a JSON object."));
    }
    let Ok(text) = str::from_utf8(body) else { return Err(not_json("The body is not UTF-8.")) };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value =
        Strict(JsonPath::Root).deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    match value {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(AdminProblem::of_fault("", "wrong-type", "the body should be an object", "send {…}")),
        Err(error) => Err(refused(&error.to_string())),
    }
}

fn not_json(detail: impl Into<String>) -> AdminProblem {
    AdminProblem::new(400, "not_json", detail)
}

/// Separates code, path and message in errors that pass through serde, which carries only text.
const MARK: char = '\u{1f}';

fn refused(text: &str) -> AdminProblem {
    let mut parts = text.split(MARK);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(code @ ("duplicate-field" | "not-text")), Some(path), Some(message)) => {
            let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
            AdminProblem::of_fault(path, code, message, "")
        }
        _ => not_json(format!("The body is not JSON: {text}.")),
    }
}

/// The path of a value, formatted only for an error.
#[derive(Clone, Copy)]
enum JsonPath<'a> {
    Root,
    Field(&'a JsonPath<'a>, &'a str),
    Item(&'a JsonPath<'a>, usize),
}

impl fmt::Display for JsonPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonPath::Root => Ok(()),
            JsonPath::Field(JsonPath::Root, name) => f.write_str(name),
            JsonPath::Field(parent, name) => write!(f, "{parent}.{name}"),
            JsonPath::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Deserializes the value at a path.
struct Strict<'a>(JsonPath<'a>);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Strict<'_> {
    fn text<E: Error>(&self, text: &str) -> Result<(), E> {
        match text.contains('\0') {
            true => Err(E::custom(format_args!("not-text{MARK}{}{MARK}text may not hold a NUL", self.0))),
            false => Ok(()),
        }
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.text(value)?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Strict(JsonPath::Item(&self.0, list.len())))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let path = JsonPath::Field(&self.0, &name);
            Strict(path).text(&name)?;
            if members.contains_key(&name) {
                let message = format_args!("duplicate-field{MARK}{path}{MARK}a field stands twice").to_string();
                return Err(A::Error::custom(message));
            }
            let value = entries.next_value_seed(Strict(path))?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_read_as_they_are() {
        let value = json!({ "a": [1, -1, 1.5, null, true, "é"], "b": { "c": {} } });
        assert_eq!(Value::Object(object(value.to_string().as_bytes()).unwrap()), value);
    }

    #[test]
    fn ambiguous_bodies_are_refused() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(129), "]".repeat(129));
        let cases = [
            (&b""[..], "not_json", ""),
            (b"  ", "not_json", ""),
            (b"null", "malformed_body", ""),
            (b"[]", "malformed_body", ""),
            (b"\"x\"", "malformed_body", ""),
            (b"{", "not_json", ""),
            (b"{} {}", "not_json", ""),
            (b"{\"a\":1e400}", "not_json", ""),
            (b"{\"a\":NaN}", "not_json", ""),
            (b"{\"a\":\"\\ud800\"}", "not_json", ""),
            (b"\xef\xbb\xbf{}", "not_json", ""),
            (b"{\0\"\0a\0", "not_json", ""),
            (b"{\"a\":\"\xff\"}", "not_json", ""),
            (deep.as_bytes(), "not_json", ""),
            (b"{\"limit\":{\"window\":1,\"window\":2}}", "malformed_body", "limit.window"),
            (b"{\"a\":[{},{\"b\":\"x\\u0000\"}]}", "malformed_body", "a[1].b"),
            (b"{\"a\\u0000\":1}", "malformed_body", "a\0"),
        ];
        for (body, code, field) in cases {
            let problem = object(body).unwrap_err();
            let text = String::from_utf8_lossy(body);
            assert_eq!((problem.status, problem.code), (400, code), "{text}");
            assert_eq!(problem.faults.first().map_or("", |fault| &fault.field), field, "{text}");
        }
    }
}
