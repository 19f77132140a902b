//! Queries and what they cost.

mod queries;
mod transport;

use super::{GraphqlFacts, GraphqlSpec};
use crate::error::{CostError, CostErrorKind};

/// The cost of a POST request with this body.
fn post(spec: &GraphqlSpec, body: &str) -> Result<u64, CostError> {
    let body = body.as_bytes();
    spec.cost(&GraphqlFacts { method: "POST", query: "", content_type: Some("application/json"), body })
}

/// The cost of a query and its variables, with the settings that are usual.
fn cost(query: &str, variables: &str) -> Result<u64, CostErrorKind> {
    let query = serde_json::Value::from(query);
    let body = format!(r#"{{"query":{query},"variables":{variables}}}"#);
    post(&GraphqlSpec::default(), &body).map_err(|error| error.kind)
}
