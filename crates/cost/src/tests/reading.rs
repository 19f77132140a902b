//! What is read, and what mistakes are answered with.

use std::num::NonZeroU64;
use std::path::Path;

use tollgate_rules::problem::Problems;
use tollgate_rules::read::{FieldPath, FieldValue};
use tollgate_rules::yaml;

use super::{read, spec};
use crate::graphql::PersistedQueries;
use crate::llm::{LlmDialect, LlmSpec, OnExhausted, OtherCalls, TokenCounter};
use crate::spec::{CostFrom, CostSource};
use crate::{CostErrorKind, CostFacts, CostSpec};

#[test]
fn reads_every_source() {
    let spec = spec(
        "cost:\n  requests: 2\n  bytes: [{ request: bytes, estimate: 500, max: 1000 }, { response: bytes, per: 1024 }]\n  items: { request: { query: ids }, max: 100 }\n  orders: { request: { json: /orders } }\n  calls: { request: jsonrpc }\n  points: { response: { header: X-Points }, estimate: 10 }\n  rows: { response: { json: /meta/rows } }\n  ms: { response: upstream_ms, estimate: 50, per: 10 }\n  complexity: { request: { graphql: { depth: 5, list_arguments: [first, take], persisted_only: queries.txt } }, max: 5000 }\n",
    );
    let names: Vec<&str> = spec.meter_names().map(|name| &**name).collect();
    assert_eq!(names, ["requests", "bytes", "items", "orders", "calls", "points", "rows", "ms", "complexity"]);
    let source = |meter: usize| &spec.meters[meter].sources[0];
    assert_eq!(source(0), &CostSource::fixed(2));
    assert_eq!(source(1).max, Some(1000));
    assert_eq!(spec.meters[1].sources[1].per.get(), 1024);
    assert_eq!(source(2).from, CostFrom::QueryItems("ids".to_owned()));
    assert_eq!(source(3).from, CostFrom::JsonItems("/orders".parse().unwrap()));
    assert_eq!(source(5).from, CostFrom::ResponseHeader("x-points".parse().unwrap()));
    assert_eq!(source(6).estimate, 1);
    let CostFrom::Graphql(graphql) = &source(8).from else { panic!("it is GraphQL") };
    assert_eq!((graphql.depth_max, graphql.fields_max), (5, 1_000));
    assert_eq!(graphql.list_arguments, ["first", "take"]);
    assert_eq!(graphql.persisted_only.as_deref(), Some(Path::new("queries.txt")));
    assert_eq!(spec.body_bytes_max(), Some(1 << 20));
    assert_eq!(spec.request_bytes_max(), Some(1000));
    assert!(spec.is_settled());
}

#[test]
fn reads_the_short_forms() {
    let five = spec("cost: 5\n");
    assert_eq!(five.meters[0].sources, [CostSource::fixed(5)]);
    assert_eq!(&*five.meters[0].meter, "requests");
    assert!(!five.is_settled() && five.body_bytes_max().is_none());
    assert_eq!(spec("cost: llm\n").llm, Some(LlmSpec::default()));
    let graphql = spec("cost: { points: { request: graphql } }\n");
    assert_eq!(graphql.body_bytes_max(), Some(256 << 10));
}

#[test]
fn reads_the_settings_of_language_models() {
    let spec = spec(
        "cost:\n  bytes: { request: bytes }\n  llm:\n    dialect: anthropic\n    bytes_per_token: 3\n    tokenizer: words.tiktoken\n    reserve: 500\n    step: 100\n    on_exhausted: cut\n    include_usage: false\n    others: reject\n    meters: { total: tokens }\n",
    );
    let llm = spec.llm.as_ref().unwrap();
    assert_eq!(llm.dialect, Some(LlmDialect::AnthropicMessages));
    assert_eq!(llm.counter, TokenCounter::BytesPerToken(NonZeroU64::new(3).unwrap()));
    assert_eq!((llm.reserve, llm.step), (500, 100));
    assert_eq!(spec.files().collect::<Vec<_>>(), [Path::new("words.tiktoken")]);
    assert_eq!((llm.on_exhausted, llm.include_usage, llm.others), (OnExhausted::Cut, false, OtherCalls::Reject));
    assert_eq!(spec.meter_names().map(|name| &**name).collect::<Vec<_>>(), ["bytes", "tokens"]);
}

#[test]
fn loads_lists_of_persisted_queries() {
    let mut spec = read("cost: { points: { request: { graphql: { persisted_only: a.txt } } } }\n").unwrap();
    spec.load_persisted(|path| {
        assert_eq!(path, Path::new("a.txt"));
        PersistedQueries::read("get-user\n")
    })
    .unwrap();
    let CostFrom::Graphql(graphql) = &spec.meters[0].sources[0].from else { panic!("it is GraphQL") };
    assert_eq!(graphql.persisted.len(), 1);
}

/// Each mistake: the file, then code, line, column and field of every problem.
#[test]
fn mistakes_say_where_they_are() {
    for (text, wanted) in [
        ("cost: lmm\n", "wrong-type 1:7 cost"),
        ("cost: []\n", "wrong-type 1:7 cost"),
        ("cost: {}\n", "bad-meter 1:7 cost"),
        ("cost: 1.5\n", "wrong-type 1:7 cost"),
        ("cost:\n  Bytes: 1\n", "bad-meter 2:3 cost.Bytes"),
        ("cost:\n  bytes: bytes\n", "wrong-type 2:10 cost.bytes"),
        ("cost:\n  bytes: []\n", "out-of-range 2:10 cost.bytes"),
        ("cost:\n  bytes: { reqest: bytes }\n", "out-of-range 2:10 cost.bytes, unknown-field 2:12 cost.bytes.reqest"),
        ("cost:\n  bytes: { request: bites }\n", "unknown-value 2:21 cost.bytes.request"),
        ("cost:\n  bytes: { request: bytes, response: bytes }\n", "out-of-range 2:10 cost.bytes"),
        ("cost:\n  bytes: { request: bytes, per: 0 }\n", "out-of-range 2:33 cost.bytes.per"),
        ("cost:\n  a: { request: jsonrpc, estimate: 5 }\n", "misplaced-field 2:36 cost.a.estimate"),
        ("cost:\n  a: { response: bytes, max: 5 }\n", "misplaced-field 2:30 cost.a.max"),
        ("cost:\n  a: { request: { json: orders } }\n", "bad-pointer 2:25 cost.a.request.json"),
        ("cost:\n  a: { response: { header: 'x y' } }\n", "bad-header 2:28 cost.a.response.header"),
        ("cost:\n  a: { request: { query: a, json: /b } }\n", "out-of-range 2:17 cost.a.request"),
        ("cost:\n  a: { request: { graphql: { depth: 100 } } }\n", "out-of-range 2:37 cost.a.request.graphql.depth"),
        ("cost:\n  llm: { setp: 5 }\n", "unknown-field 2:10 cost.llm.setp"),
        ("cost:\n  llm: { dialect: openai }\n", "unknown-value 2:19 cost.llm.dialect"),
        ("cost:\n  llm: { meters: {} }\n", "out-of-range 2:18 cost.llm.meters"),
        ("cost:\n  llm: {}\n  input_tokens: 1\n", "duplicate 2:3 cost"),
    ] {
        let report = read(text).unwrap_err();
        let mut found: Vec<String> = (report.problems.iter())
            .map(|problem| format!("{} {}:{} {}", problem.code, problem.line, problem.column, problem.field))
            .collect();
        found.sort();
        assert_eq!(found.join(", "), wanted, "{text}{report}");
        assert!(report.problems.iter().all(|problem| problem.help.is_some()), "{report}");
    }
}

#[test]
fn misspelt_words_are_answered_with_the_right_one() {
    let report = read("cost:\n  bytes: { request: byts }\n").unwrap_err().to_string();
    assert!(report.contains("did you mean `bytes`?"), "{report}");
    let report = read("cost:\n  llm: { on_exausted: cut }\n").unwrap_err().to_string();
    assert!(report.contains("did you mean `on_exhausted`?"), "{report}");
}

#[test]
fn the_page_of_the_guide_shows_what_is_read() {
    let page = include_str!("../../../../docs/guide/gateway-costs.md");
    let samples: Vec<&str> = page.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    let mut costs = 0;
    for sample in &samples {
        let root = yaml::parse(sample).unwrap();
        let routes = root.get("routes").map(|routes| routes.items()).unwrap_or_default();
        for node in routes.iter().chain([&root]).filter_map(|owner| owner.get("cost")) {
            let mut problems = Problems::default();
            CostSpec::read(&FieldValue { node, path: FieldPath::Root("cost") }, &mut problems);
            assert!(problems.is_empty(), "{sample}: {problems:?}");
            costs += 1;
        }
    }
    assert_eq!(costs, 5, "each sample has a cost");
    for kind in CostErrorKind::ALL {
        assert!(page.contains(&format!("`{}`", kind.code())), "the page does not say {}", kind.code());
    }
    let query = page.split("```graphql\n").nth(1).unwrap().split("```").next().unwrap();
    let body = format!("{{\"query\":{}}}", serde_json::Value::from(query));
    let request = CostFacts { method: "POST", body: body.as_bytes(), ..CostFacts::default() };
    let cost = spec("cost: { points: { request: graphql } }\n").request(&request).unwrap();
    assert!(page.contains(&format!("costs {}.", cost.amounts.get("points").unwrap())));
}
