//! GraphQL requests.

use tollgate_cost::{CostErrorKind, CostFacts, CostSpec};
use tollgate_rules::problem::Problems;
use tollgate_rules::read::{FieldPath, FieldValue};
use tollgate_rules::yaml;

/// A byte for how the request travels, then the query or the body.
pub fn graphql_cost(data: &[u8]) {
    let (way, rest) = data.split_first().unwrap_or((&0, &[]));
    let spec = route();
    let text = String::from_utf8_lossy(rest);
    match way % 4 {
        0 => check_query(&spec, &text),
        1 => drop(cost(&spec, "POST", None, rest)),
        2 => drop(cost(&spec, "POST", Some("application/x-www-form-urlencoded"), rest)),
        _ => drop(cost_of(&spec, &CostFacts { method: "GET", query: &text, ..CostFacts::default() })),
    }
}

/// A query costs the same in every form, and twice as much if it is sent twice.
fn check_query(spec: &CostSpec, query: &str) {
    let alone = cost(spec, "POST", Some("application/graphql"), query.as_bytes());
    let item = format!("{{\"query\":{}}}", serde_json::Value::from(query));
    let json = cost(spec, "POST", Some("application/json"), item.as_bytes());
    assert_eq!(alone, json, "JSON and the query alone");
    let padded = cost(spec, "POST", Some("application/graphql"), format!("{query}\n# a comment\n ,").as_bytes());
    if alone.is_ok() {
        assert_eq!(alone, padded, "a comment costs nothing");
    }
    let batch = cost(spec, "POST", None, format!("[{item},{item}]").as_bytes());
    match (alone, batch) {
        (Ok(alone), Ok(batch)) => assert_eq!(batch, alone.saturating_mul(2).min((1 << 53) - 1), "a batch is a sum"),
        (Ok(_), Err(kind)) => {
            assert!(matches!(kind, CostErrorKind::GraphqlTooManyFields | CostErrorKind::BodyTooLarge), "{kind:?}")
        }
        (Err(_), Ok(_)) => panic!("a batch does what its items may not"),
        (Err(_), Err(_)) => {}
    }
}

fn cost(spec: &CostSpec, method: &str, content_type: Option<&str>, body: &[u8]) -> Result<u64, CostErrorKind> {
    cost_of(spec, &CostFacts { method, content_type, body, ..CostFacts::default() })
}

fn cost_of(spec: &CostSpec, request: &CostFacts<'_>) -> Result<u64, CostErrorKind> {
    let cost = spec.request(request).map_err(|error| error.kind)?;
    Ok(cost.amounts.get("points").expect("the route charges points"))
}

fn route() -> CostSpec {
    let root = yaml::parse("points: { request: graphql }").expect("it is YAML");
    let mut problems = Problems::default();
    let spec = CostSpec::read(&FieldValue { node: &root, path: FieldPath::Root("cost") }, &mut problems);
    assert!(problems.is_empty(), "the route is valid");
    spec
}
