//! The queries of a request: GET, POST with JSON, a form or the query alone, and batches.

use std::borrow::Cow;

use serde_json::Value;

use super::document::GraphqlDocument;
use super::duplicates::refuse_duplicates;
use super::price::{Pricing, QueryPrice, too_many_fields};
use super::settings::GraphqlSpec;
use crate::error::{CostError, CostErrorKind};

/// Longest body or query that is read.
pub(crate) const QUERY_BYTES_MAX: usize = 256 << 10;

/// A request, as far as GraphQL is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphqlFacts<'a> {
    pub(crate) method: &'a str,
    pub(crate) query: &'a str,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// One query with what belongs to it.
#[derive(Debug, Default)]
struct GraphqlQuery<'a> {
    text: Option<Cow<'a, str>>,
    operation: Option<Cow<'a, str>>,
    variables: Value,
    /// The id or hash of a persisted query.
    id: Option<Cow<'a, str>>,
}

/// Parameters of a URL or a form that say what is run.
const PARAMETERS: [&str; 7] = ["query", "operationName", "variables", "extensions", "id", "documentId", "queryId"];

fn bad(message: impl Into<Cow<'static, str>>) -> CostError {
    CostErrorKind::BadGraphql.error(message)
}

impl GraphqlSpec {
    /// The cost of all queries of a request.
    pub(crate) fn cost(&self, request: &GraphqlFacts<'_>) -> Result<u64, CostError> {
        if request.body.len() > QUERY_BYTES_MAX || request.query.len() > QUERY_BYTES_MAX {
            return Err(CostErrorKind::BodyTooLarge.error("the query is larger than 256 KiB"));
        }
        let is_bodiless = matches!(request.method, "GET" | "HEAD" | "OPTIONS");
        // Servers take from such a body what the URL does not say: variables, or the query of an id.
        if is_bodiless && !request.body.is_empty() {
            return Err(bad(format!("a {} request has its query in the URL, not in the body", request.method)));
        }
        match request.method {
            // A question of a browser about what it may ask.
            "OPTIONS" => Ok(0),
            "GET" | "HEAD" => self.cost_of_parameters(request.query.as_bytes()),
            _ => self.cost_of_body(request),
        }
    }

    fn cost_of_body(&self, request: &GraphqlFacts<'_>) -> Result<u64, CostError> {
        let media = request.content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let media = media.to_ascii_lowercase();
        let has_parameter = |name: &str| form_urlencoded::parse(request.query.as_bytes()).any(|(key, _)| key == name);
        // Servers differ in whether the URL or the body counts.
        if PARAMETERS.into_iter().any(has_parameter) {
            return Err(bad("a POST request has its query in the body, not in the URL"));
        }
        match media.as_str() {
            "application/graphql" => {
                let text = std::str::from_utf8(request.body).map_err(|_| bad("the query is not UTF-8"))?;
                let query = GraphqlQuery { text: Some(text.into()), ..GraphqlQuery::default() };
                self.cost_of_batch(&[query])
            }
            "application/x-www-form-urlencoded" => self.cost_of_parameters(request.body),
            "" | "application/json" => self.cost_of_json(request.body),
            other if other.ends_with("+json") => self.cost_of_json(request.body),
            _ => Err(bad("the media type is none that is read: use application/json")),
        }
    }

    fn cost_of_json(&self, body: &[u8]) -> Result<u64, CostError> {
        refuse_duplicates(body)?;
        let root: Value = serde_json::from_slice(body).map_err(|_| bad("the body is not JSON"))?;
        let queries = match &root {
            Value::Array(items) => {
                if items.len() as u64 > self.batch_max {
                    let message = format!("the batch has {} operations; {} are allowed", items.len(), self.batch_max);
                    return Err(CostErrorKind::BatchTooLarge.error(message));
                }
                items.iter().map(GraphqlQuery::of_json).collect::<Result<Vec<_>, _>>()?
            }
            other => vec![GraphqlQuery::of_json(other)?],
        };
        self.cost_of_batch(&queries)
    }

    fn cost_of_parameters(&self, text: &[u8]) -> Result<u64, CostError> {
        let mut query = GraphqlQuery::default();
        let mut seen: Vec<Cow<'_, str>> = Vec::new();
        for (key, value) in form_urlencoded::parse(text) {
            if !PARAMETERS.contains(&&*key) {
                continue;
            }
            if seen.contains(&key) {
                return Err(CostErrorKind::DuplicateField.error("a parameter of the query is there twice"));
            }
            match &*key {
                "query" => query.text = Some(value),
                "operationName" => query.operation = Some(value).filter(|name| !name.is_empty()),
                "variables" => query.variables = read_json(&value)?,
                "extensions" => query.id = persisted_hash(&read_json(&value)?).map(Cow::Owned).or(query.id),
                _ => query.id = Some(value),
            }
            seen.push(key);
        }
        self.cost_of_batch(&[query])
    }

    /// The sum of all queries. The bound on fields holds for all of them together.
    fn cost_of_batch(&self, queries: &[GraphqlQuery<'_>]) -> Result<u64, CostError> {
        let (mut cost, mut fields) = (0u64, 0u64);
        for query in queries {
            let price = self.price(query)?;
            cost = cost.saturating_add(price.cost);
            fields = fields.saturating_add(price.fields);
            if fields > self.fields_max {
                return Err(too_many_fields(self));
            }
        }
        Ok(cost)
    }

    fn price(&self, query: &GraphqlQuery<'_>) -> Result<QueryPrice, CostError> {
        let text = query.text.as_deref().filter(|text| !text.is_empty());
        let text = match (text, query.id.as_deref(), &self.persisted_only) {
            (Some(text), _, None) => text,
            (Some(text), _, Some(_)) if self.persisted.allows(text) => text,
            (None, Some(id), Some(_)) => match self.persisted.get(id) {
                Some(Some(text)) => text,
                Some(None) => return Ok(QueryPrice { cost: self.persisted_cost, fields: 0 }),
                None => return Err(not_persisted()),
            },
            // The server may know the text, with which any variables would pass unseen.
            (None, Some(_), None) => {
                let why = "the query is to be sent as text, beside its hash or id";
                return Err(CostErrorKind::PersistedQueryNotFound.error(why));
            }
            (_, _, Some(_)) => return Err(not_persisted()),
            (None, None, None) => return Err(bad("the request has no query")),
        };
        let document = GraphqlDocument::parse(text)?;
        let operation = document.operation(query.operation.as_deref())?;
        Pricing::new(&document, operation, &query.variables, self).price(operation)
    }
}

fn not_persisted() -> CostError {
    CostErrorKind::NotPersisted.error("only persisted queries are allowed")
}

/// JSON in a parameter.
fn read_json(text: &str) -> Result<Value, CostError> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    refuse_duplicates(text.as_bytes())?;
    serde_json::from_str(text).map_err(|_| bad("a parameter of the query is not JSON"))
}

/// The hash of an automatically persisted query.
fn persisted_hash(extensions: &Value) -> Option<String> {
    extensions.get("persistedQuery")?.get("sha256Hash")?.as_str().map(str::to_owned)
}

impl<'a> GraphqlQuery<'a> {
    fn of_json(value: &'a Value) -> Result<GraphqlQuery<'a>, CostError> {
        let fields = value.as_object().ok_or_else(|| bad("an operation is not an object"))?;
        let text = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(Cow::Borrowed(text.as_str()))),
            Some(_) => Err(bad(format!("`{name}` is not text"))),
        };
        let mut id = fields.get("extensions").and_then(persisted_hash).map(Cow::Owned);
        for name in ["id", "documentId", "queryId"] {
            // Numbers are ids of transports, not of queries.
            id = id.or(fields.get(name).and_then(Value::as_str).map(Cow::Borrowed));
        }
        Ok(GraphqlQuery {
            text: text("query")?,
            operation: text("operationName")?.filter(|name| !name.is_empty()),
            variables: fields.get("variables").cloned().unwrap_or_default(),
            id,
        })
    }
}
