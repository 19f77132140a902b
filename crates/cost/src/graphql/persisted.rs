//! The queries that are allowed where nothing else is.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tollgate_rules::problem::{ParseError, quote};

/// Longest id.
const ID_BYTES_MAX: usize = 256;

/// Queries by id; the text where it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersistedQueries {
    queries: HashMap<String, Option<String>>,
}

impl PersistedQueries {
    /// Reads a list: an id or SHA-256 hash per line, a JSON map of ids to queries, or an Apollo manifest.
    pub fn read(text: &str) -> Result<PersistedQueries, ParseError> {
        let queries = match text.trim_start().starts_with('{') {
            true => read_manifest(text)?,
            false => read_lines(text)?,
        };
        Ok(PersistedQueries { queries })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// Whether a query with this text is allowed.
    pub(super) fn allows(&self, query: &str) -> bool {
        self.queries.contains_key(&sha256(query))
    }

    /// The text of an id, if it is known; `None` if the id is not allowed.
    pub(super) fn get(&self, id: &str) -> Option<Option<&str>> {
        // Apollo sends hashes with the name of the algorithm in front.
        let id = id.strip_prefix("sha256:").unwrap_or(id);
        self.queries.get(id).map(Option::as_deref)
    }
}

/// The hash of a query, as clients send it.
pub(super) fn sha256(query: &str) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(query.as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn read_lines(text: &str) -> Result<HashMap<String, Option<String>>, ParseError> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| check_id(line).map(|id| (id.to_owned(), None))).collect()
}

fn check_id(id: &str) -> Result<&str, ParseError> {
    let help = "write one id or SHA-256 hash per line";
    match id.len() <= ID_BYTES_MAX && !id.contains(char::is_whitespace) {
        true => Ok(id.strip_prefix("sha256:").unwrap_or(id)),
        false => Err(ParseError::new(format!("{} is not the id of a query", quote(id)), help)),
    }
}

fn read_manifest(text: &str) -> Result<HashMap<String, Option<String>>, ParseError> {
    let help = "write `{\"ID\": \"query …\"}`, or an Apollo manifest with `operations`";
    let root: Value = serde_json::from_str(text)
        .map_err(|error| ParseError::new(format!("the list of persisted queries is not JSON: {error}"), help))?;
    let mut queries = HashMap::new();
    let mut add = |id: Option<&str>, body: Option<&str>| match (id, body) {
        (Some(id), Some(body)) => {
            queries.insert(check_id(id)?.to_owned(), Some(body.to_owned()));
            // A query that is sent as text is allowed as well as its id.
            queries.insert(sha256(body), Some(body.to_owned()));
            Ok(())
        }
        _ => Err(ParseError::new("an entry of the list of persisted queries is no query", help)),
    };
    match root.get("operations").and_then(Value::as_array) {
        Some(operations) => operations.iter().try_for_each(|operation| {
            add(operation.get("id").and_then(Value::as_str), operation.get("body").and_then(Value::as_str))
        })?,
        None => {
            root.as_object().into_iter().flatten().try_for_each(|(id, body)| add(Some(id), body.as_str()))?;
        }
    }
    Ok(queries)
}
