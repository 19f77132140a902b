//! What is charged before, and settled after.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::spec;
use crate::error::CostErrorKind;
use crate::llm::{LlmMeters, TokenUsage};
use crate::{CostFacts, ResponseCost};

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let fields = fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    fields.collect()
}

fn charged(cost: &str, request: &CostFacts<'_>) -> Result<u64, CostErrorKind> {
    let cost = spec(&format!("cost: {{ a: {cost} }}\n")).request(request);
    cost.map(|cost| cost.amounts.get("a").unwrap()).map_err(|error| error.kind)
}

#[test]
fn parameters_of_the_query_are_counted() {
    for (query, count) in [
        ("", 1),
        ("ids=", 1),
        ("ids=1", 1),
        ("ids=1,2,3", 3),
        ("ids=1&x=5,6&ids=2", 2),
        ("ids=1%2C2%2c3", 3),
        ("%69ds=1,2", 2),
        ("ids[]=1&ids[]=2&ids%5B%5D=3", 3),
        ("ids[0]=1&ids[1]=2", 2),
        (",ids=1,2", 1),
        ("ids=,,,", 1),
        ("xids=1,2,3", 1),
        ("ids=1;2", 1),
    ] {
        let request = CostFacts { query, ..CostFacts::default() };
        assert_eq!(charged("{ request: { query: ids } }", &request), Ok(count), "{query}");
    }
    let request = CostFacts { query: "ids=1,2,3", ..CostFacts::default() };
    assert_eq!(charged("{ request: { query: ids }, max: 2 }", &request), Err(CostErrorKind::BatchTooLarge));
    assert_eq!(charged("{ request: { query: ids }, per: 2 }", &request), Ok(2));
}

#[test]
fn items_of_a_list_are_counted() {
    for (body, count) in [
        ("", Ok(1)),
        ("{}", Ok(1)),
        (r#"{"orders":[]}"#, Ok(1)),
        (r#"{"orders":[1,[2,3],{"orders":[1,2]},"x",null,true]}"#, Ok(6)),
        (r#"{"orders":{"0":1,"1":2}}"#, Ok(1)),
        (r#"{"x":{"orders":[1,2,3]}}"#, Ok(1)),
        (r#"{"orders":[1],"orders":[2,3]}"#, Ok(3)),
        (r#"{"\u006frders":[1,2]}"#, Ok(2)),
        ("ids=1", Err(CostErrorKind::BadBody)),
    ] {
        let request = CostFacts { body: body.as_bytes(), ..CostFacts::default() };
        assert_eq!(charged("{ request: { json: /orders } }", &request), count, "{body}");
    }
    let body = [b' '; (1 << 20) + 1];
    let request = CostFacts { body: &body, ..CostFacts::default() };
    assert_eq!(charged("{ request: { json: /orders } }", &request), Err(CostErrorKind::BodyTooLarge));
}

#[test]
fn calls_of_a_batch_are_counted() {
    for (body, count) in [(r#"{"method":"a","params":[1,2]}"#, 1), (r#"[{"method":"a"},{"method":"b"}]"#, 2), ("[]", 1)]
    {
        let request = CostFacts { body: body.as_bytes(), ..CostFacts::default() };
        assert_eq!(charged("{ request: jsonrpc }", &request), Ok(count), "{body}");
    }
}

#[test]
fn bytes_of_a_request_are_known_or_counted() {
    let spec = spec("cost: { bytes: { request: bytes, estimate: 100, per: 10, max: 1000 } }\n");
    let sized = |content_length| spec.request(&CostFacts { content_length, ..CostFacts::default() });
    assert_eq!(sized(Some(95)).unwrap().amounts.get("bytes"), Some(10));
    assert_eq!(sized(Some(1001)).unwrap_err().kind, CostErrorKind::BodyTooLarge);
    let chunked = sized(None).unwrap();
    assert_eq!(chunked.amounts.get("bytes"), Some(100), "an estimate is in units");
    let mut response = ResponseCost::new(spec.clone(), &chunked);
    assert_eq!(response.amounts().get("bytes"), Some(100));
    response.request_bytes(512);
    assert_eq!(response.amounts().get("bytes"), Some(52));
}

#[test]
fn responses_settle_what_was_estimated() {
    let spec = spec(
        "cost:\n  points: [3, { request: { query: ids } }, { response: { header: x-points }, estimate: 10 }]\n  rows: { response: { json: /meta/rows }, estimate: 7 }\n  bytes: { response: bytes, per: 8 }\n  ms: { response: upstream_ms, estimate: 50 }\n",
    );
    let reserved = spec.request(&CostFacts { query: "ids=1,2", ..CostFacts::default() }).unwrap();
    let amounts = |cost: &crate::MeterAmounts| ["points", "rows", "bytes", "ms"].map(|name| cost.get(name).unwrap());
    assert_eq!(amounts(&reserved.amounts), [15, 7, 1, 50]);
    let body = br#"{"rows":1,"meta":{"x":[1,2],"rows":42,"note":"\"rows\":9"},"tail":[{"meta":{"rows":3}}]}"#;
    for size in 1..=body.len() {
        let mut response = ResponseCost::new(spec.clone(), &reserved);
        assert_eq!(amounts(&response.amounts()), [15, 7, 1, 50], "nothing is known yet");
        response.head(&headers(&[("x-points", "20")]));
        body.chunks(size).for_each(|piece| response.chunk(piece));
        response.end(Duration::from_micros(123_900));
        assert_eq!(amounts(&response.amounts()), [25, 42, body.len().div_ceil(8) as u64, 123]);
    }
}

#[test]
fn what_a_response_does_not_say_keeps_its_estimate() {
    let spec = spec(
        "cost:\n  points: { response: { header: x-points }, estimate: 10 }\n  rows: { response: { json: /rows }, estimate: 7 }\n",
    );
    let reserved = spec.request(&CostFacts::default()).unwrap();
    let settled = |fields: &[(&'static str, &'static str)], body: &[u8]| {
        let mut response = ResponseCost::new(spec.clone(), &reserved);
        response.head(&headers(fields));
        response.chunk(body);
        response.end(Duration::ZERO);
        let amounts = response.amounts();
        (amounts.get("points").unwrap(), amounts.get("rows").unwrap())
    };
    for value in ["", "-1", "1.5", "1e3", "0x10", "many", "+5", "1 2"] {
        assert_eq!(settled(&[("x-points", value)], b"").0, 10, "{value}");
    }
    assert_eq!(settled(&[("x-points", "1"), ("x-points", "2")], b"").0, 2, "the last field counts");
    assert_eq!(settled(&[("x-points", "99999999999999999999999")], b"").0, (1 << 53) - 1);
    for body in [&b"{\"rows\":-3}"[..], b"{\"rows\":\"12\"}", b"{\"rows\":[12]}", b"{\"rows\"", b"<html>", b"\xff"] {
        assert_eq!(settled(&[], body).1, 7, "{}", String::from_utf8_lossy(body));
    }
    assert_eq!(settled(&[], b"{\"rows\":5,").1, 5, "what stands before the end counts");
    assert_eq!(settled(&[], b"{\"rows\":1e400}").1, (1 << 53) - 1);
    assert_eq!(settled(&[("content-encoding", "gzip")], b"{\"rows\":5}").1, 7, "coded bodies are not read");
}

#[test]
fn sums_stay_within_what_a_meter_holds() {
    let spec = spec("cost: { a: [9007199254740991, 9007199254740991], requests: 0 }\n");
    let cost = spec.request(&CostFacts::default()).unwrap();
    assert_eq!(cost.amounts.get("a"), Some((1 << 53) - 1));
    assert_eq!(cost.amounts.requests(), 0);
    assert_eq!(cost.amounts.others().collect::<Vec<_>>(), [("a", (1 << 53) - 1)]);
}

#[test]
fn graphql_is_refused_where_it_costs_too_much() {
    let post = |body: &'static str| CostFacts { method: "POST", body: body.as_bytes(), ..CostFacts::default() };
    assert_eq!(charged("{ request: graphql, max: 50 }", &post(r#"{"query":"{ a }"}"#)), Ok(1));
    let long = post(r#"{"query":"{ a(first: 50) { b } }"}"#);
    assert_eq!(charged("{ request: graphql, max: 50 }", &long), Err(CostErrorKind::QueryTooExpensive));
}

#[test]
fn usage_is_charged_by_meter() {
    let usage = TokenUsage { input: 100, output: 20, cached: 60 };
    let usual = LlmMeters::default().amounts(&usage);
    assert_eq!(usual.others().collect::<Vec<_>>(), [("input_tokens", 100), ("output_tokens", 20)]);
    assert_eq!(usual.requests(), 1);
    let shared =
        LlmMeters { output: Some("input_tokens".into()), cached: Some("cached".into()), ..LlmMeters::default() };
    assert_eq!(shared.amounts(&usage).others().collect::<Vec<_>>(), [("input_tokens", 120), ("cached", 60)]);
}
