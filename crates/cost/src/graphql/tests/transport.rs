//! How queries travel: GET, POST, forms, batches, persisted queries.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::PersistedQueries;
use super::super::persisted::sha256;
use super::*;

fn get(spec: &GraphqlSpec, query: &str) -> Result<u64, CostErrorKind> {
    let facts = GraphqlFacts { method: "GET", query, content_type: None, body: b"" };
    spec.cost(&facts).map_err(|error| error.kind)
}

fn sent(content_type: Option<&str>, query: &str, body: &str) -> Result<u64, CostErrorKind> {
    let facts = GraphqlFacts { method: "POST", query, content_type, body: body.as_bytes() };
    GraphqlSpec::default().cost(&facts).map_err(|error| error.kind)
}

#[test]
fn get_has_the_query_in_the_url() {
    let spec = GraphqlSpec::default();
    assert_eq!(get(&spec, "query=%7Ba%20b%7D"), Ok(2));
    assert_eq!(
        get(&spec, "query=query+A($n:Int){l(first:$n){x}}query+B{b}&operationName=A&variables={%22n%22:5}"),
        Ok(6)
    );
    assert_eq!(get(&spec, "other=1"), Err(CostErrorKind::BadGraphql));
    assert_eq!(get(&spec, "query={a}&query={b}"), Err(CostErrorKind::DuplicateField));
    assert_eq!(get(&spec, "query={a}&%71uery={b}"), Err(CostErrorKind::DuplicateField));
    assert_eq!(get(&spec, "query={a}&variables={"), Err(CostErrorKind::BadBody));
    assert_eq!(get(&spec, "query={a}&variables={%22n%22:1,%22n%22:2}"), Err(CostErrorKind::DuplicateField));
    let facts = GraphqlFacts { method: "OPTIONS", query: "", content_type: None, body: b"" };
    assert_eq!(spec.cost(&facts).ok(), Some(0));
}

/// Express's GraphQL takes what the URL leaves out from the body, whatever the method.
#[test]
fn a_get_has_no_body_to_take_anything_from() {
    let query = "query=query($n:Int){l(first:$n){x}}";
    for (method, query, body) in [
        ("GET", query, &br#"{"variables":{"n":100000}}"#[..]),
        ("GET", "id=cheap", br#"{"query":"{a b c}"}"#),
        ("HEAD", query, b"{}"),
        ("OPTIONS", "", br#"{"query":"{a b c}"}"#),
    ] {
        let facts = GraphqlFacts { method, query, content_type: Some("application/json"), body };
        let refused = GraphqlSpec::default().cost(&facts).map_err(|error| error.kind);
        assert_eq!(refused, Err(CostErrorKind::BadGraphql), "{method} {query}");
    }
}

#[test]
fn post_has_the_query_in_the_body() {
    assert_eq!(sent(Some("application/json; charset=utf-8"), "", r#"{"query":"{a b}"}"#), Ok(2));
    assert_eq!(sent(Some("application/graphql-response+json"), "", r#"{"query":"{a b}"}"#), Ok(2));
    assert_eq!(sent(None, "", r#"{"query":"{a b}"}"#), Ok(2));
    assert_eq!(sent(Some("application/graphql"), "", "{a b}"), Ok(2));
    assert_eq!(sent(Some("application/x-www-form-urlencoded"), "", "query=%7Ba+b%7D"), Ok(2));
    assert_eq!(sent(Some("multipart/form-data"), "", "--x"), Err(CostErrorKind::BadGraphql));
    assert_eq!(sent(None, "query={b}", r#"{"query":"{a}"}"#), Err(CostErrorKind::BadGraphql));
    assert_eq!(sent(None, "tracing=1", r#"{"query":"{a}"}"#), Ok(1));
    for (body, kind) in [
        ("", CostErrorKind::BadBody),
        ("7", CostErrorKind::BadGraphql),
        ("{}", CostErrorKind::BadGraphql),
        (r#"{"query":7}"#, CostErrorKind::BadGraphql),
        (r#"{"query":"{a}","query":"{b}"}"#, CostErrorKind::DuplicateField),
        (r#"{"query":"{a}","\u0071uery":"{b}"}"#, CostErrorKind::DuplicateField),
        (r#"{"query":"{a}","operationName":"X"}"#, CostErrorKind::BadGraphql),
    ] {
        assert_eq!(sent(None, "", body), Err(kind), "{body}");
    }
    let large = format!(r#"{{"query":"{{a}}","pad":"{}"}}"#, "x".repeat(256 << 10));
    assert_eq!(sent(None, "", &large), Err(CostErrorKind::BodyTooLarge));
}

#[test]
fn batches_are_summed_and_bounded() {
    let batch = |count: usize, query: &str| {
        let item = format!(r#"{{"query":"{query}"}}"#);
        sent(None, "", &format!("[{}]", vec![item; count].join(",")))
    };
    assert_eq!(batch(3, "{a b}"), Ok(6));
    assert_eq!(batch(0, ""), Ok(0));
    assert_eq!(batch(11, "{a}"), Err(CostErrorKind::BatchTooLarge));
    assert_eq!(batch(10, &format!("{{ {} }}", "a ".repeat(100))), Ok(1_000));
    assert_eq!(batch(10, &format!("{{ {} }}", "a ".repeat(101))), Err(CostErrorKind::GraphqlTooManyFields));
    assert_eq!(sent(None, "", r#"[{"query":"{a}"},7]"#), Err(CostErrorKind::BadGraphql));
}

fn only(list: &str) -> GraphqlSpec {
    let persisted = Arc::new(PersistedQueries::read(list).unwrap());
    GraphqlSpec { persisted_only: Some(PathBuf::from("queries")), persisted, ..GraphqlSpec::default() }
}

#[test]
fn only_persisted_queries_pass_where_a_list_says_so() {
    let hash = sha256("{a b}");
    assert_eq!(hash.len(), 64);
    let lines = only(&format!("# comment\n\n{hash}\nsha256:{}\nget-user\n", sha256("{c}")));
    let apq = |hash: &str| format!(r#"{{"extensions":{{"persistedQuery":{{"version":1,"sha256Hash":"{hash}"}}}}}}"#);
    for (body, wanted) in [
        (r#"{"query":"{a b}"}"#.to_owned(), Ok(2)),
        (r#"{"query":"{a  b}"}"#.to_owned(), Err(CostErrorKind::NotPersisted)),
        (apq(&hash), Ok(100)),
        (apq(&"0".repeat(64)), Err(CostErrorKind::NotPersisted)),
        (r#"{"id":"get-user"}"#.to_owned(), Ok(100)),
        (r#"{"documentId":"get-user"}"#.to_owned(), Ok(100)),
        (r#"{"id":"get-all"}"#.to_owned(), Err(CostErrorKind::NotPersisted)),
        (r#"{"id":"get-user","query":"{x}"}"#.to_owned(), Err(CostErrorKind::NotPersisted)),
        ("{}".to_owned(), Err(CostErrorKind::NotPersisted)),
    ] {
        assert_eq!(post(&lines, &body).map_err(|error| error.kind), wanted, "{body}");
    }
    let url = format!("extensions={{%22persistedQuery%22:{{%22sha256Hash%22:%22{hash}%22}}}}");
    assert_eq!(get(&lines, &url), Ok(100));
    let unloaded = GraphqlSpec { persisted: Arc::default(), ..lines };
    assert_eq!(post(&unloaded, r#"{"query":"{a b}"}"#).unwrap_err().kind, CostErrorKind::NotPersisted);
}

#[test]
fn manifests_say_what_an_id_costs() {
    let map = only(r#"{"get-user": "{ user { name } }"}"#);
    let apollo = only(
        r#"{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":"get-user","name":"U","type":"query","body":"{ user { name } }"}]}"#,
    );
    for spec in [map, apollo] {
        assert_eq!(spec.persisted.len(), 2);
        assert_eq!(post(&spec, r#"{"id":"get-user"}"#).ok(), Some(2));
        assert_eq!(post(&spec, r#"{"query":"{ user { name } }"}"#).ok(), Some(2));
    }
    for list in ["{", r#"{"a":7}"#, r#"{"operations":[{"id":"a"}]}"#, "two words"] {
        assert!(PersistedQueries::read(list).is_err(), "{list}");
    }
}

/// A query is registered with cheap variables, and its hash sent with any: the server knows the text, the gateway does not.
#[test]
fn hashes_without_a_list_are_asked_for_their_text() {
    for body in [
        r#"{"extensions":{"persistedQuery":{"sha256Hash":"abc"}}}"#,
        r#"{"extensions":{"persistedQuery":{"sha256Hash":"abc"}},"variables":{"n":100000000}}"#,
        r#"{"id":"abc"}"#,
        r#"{"query":"","documentId":"abc"}"#,
        r#"[{"query":"{a}"},{"id":"abc"}]"#,
    ] {
        assert_eq!(sent(None, "", body), Err(CostErrorKind::PersistedQueryNotFound), "{body}");
    }
    let url = "extensions={%22persistedQuery%22:{%22sha256Hash%22:%22abc%22}}&variables={%22n%22:9}";
    assert_eq!(get(&GraphqlSpec::default(), url), Err(CostErrorKind::PersistedQueryNotFound));
    let body = r#"{"query":"{a}","extensions":{"persistedQuery":{"sha256Hash":"abc"}}}"#;
    assert_eq!(sent(None, "", body), Ok(1), "the text is there");
}
