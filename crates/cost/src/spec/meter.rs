//! Reads the sources of one meter: a number, one source, or a list of them.

use std::num::NonZeroU64;

use http::HeaderName;
use tollgate_rules::problem::{ParseError, Problems, quote};
use tollgate_rules::read::FieldValue;
use tollgate_rules::yaml::YamlKind;

use super::graphql::read_graphql;
use super::source::{CostFrom, CostSource};
use crate::amounts::AMOUNT_MAX;
use crate::json::JsonPointer;

/// Most sources of a meter.
const SOURCES_MAX: usize = 8;

const FIELDS: &[&str] = &["request", "response", "per", "estimate", "max"];
const REQUEST: &[&str] = &["query", "json", "graphql"];
const RESPONSE: &[&str] = &["header", "json"];
const EXAMPLE: &str = "{ request: bytes }";
const HELP: &str =
    "write `{ request: bytes }`, `{ request: { json: /items } }`, `{ response: { header: x-cost } }`, or a number";

const WORDS_OF_REQUESTS: [(&str, Word); 3] =
    [("bytes", Word::RequestBytes), ("jsonrpc", Word::JsonRpc), ("graphql", Word::Graphql)];
const WORDS_OF_RESPONSES: [(&str, Word); 2] = [("bytes", Word::ResponseBytes), ("upstream_ms", Word::UpstreamMs)];

#[derive(Clone, Copy)]
enum Word {
    RequestBytes,
    JsonRpc,
    Graphql,
    ResponseBytes,
    UpstreamMs,
}

impl From<Word> for CostFrom {
    fn from(word: Word) -> CostFrom {
        match word {
            Word::RequestBytes => CostFrom::RequestBytes,
            Word::JsonRpc => CostFrom::JsonRpcCalls,
            Word::Graphql => CostFrom::Graphql(Box::default()),
            Word::ResponseBytes => CostFrom::ResponseBytes,
            Word::UpstreamMs => CostFrom::UpstreamMs,
        }
    }
}

pub(super) fn read_meter_cost(value: &FieldValue<'_>, problems: &mut Problems) -> Vec<CostSource> {
    let items = value.one_or_more();
    if items.is_empty() || items.len() > SOURCES_MAX {
        let message = format!("{} has {} sources", value.path, items.len());
        problems.push(value.problem("out-of-range", message).help(format!("write 1 to {SOURCES_MAX}; {HELP}")));
    }
    items.into_iter().filter_map(|item| read_source(item, problems)).collect()
}

fn read_source(value: FieldValue<'_>, problems: &mut Problems) -> Option<CostSource> {
    match &value.node.kind {
        YamlKind::Scalar { text, quoted: false } if text.starts_with(|first: char| first.is_ascii_digit()) => {
            return value.integer(0..=AMOUNT_MAX, problems).map(CostSource::fixed);
        }
        YamlKind::Map(_) => {}
        _ => {
            problems.push(value.mismatch("a source of an amount", HELP));
            return None;
        }
    }
    let fields = value.fields(FIELDS, EXAMPLE, problems);
    let from = match (fields.get("request"), fields.get("response")) {
        (Some(request), None) => read_request(request, problems)?,
        (None, Some(response)) => read_response(response, problems)?,
        (both, _) => {
            let message = format!("{} names {} sources", value.path, if both.is_some() { 2 } else { 0 });
            let help = format!("name one of request and response; a list adds several up. {HELP}");
            problems.push(value.problem("out-of-range", message).help(help));
            return None;
        }
    };
    let mut number = |name, from| {
        let field = fields.get(name)?;
        field.integer(from..=AMOUNT_MAX, problems)
    };
    let (per, estimate, max) = (number("per", 1), number("estimate", 0), number("max", 1));
    let source = CostSource {
        per: per.and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MIN),
        estimate: estimate.unwrap_or(1),
        max,
        from,
    };
    report_misplaced(&source, &fields, problems);
    Some(source)
}

fn report_misplaced(source: &CostSource, fields: &tollgate_rules::read::MapFields<'_>, problems: &mut Problems) {
    let misplaced = [
        ("estimate", source.is_settled(), "the amount is known before the request is forwarded; remove it"),
        ("max", source.from.may_have_max(), "a response is never refused; `max` is for items and bytes of requests"),
    ];
    for (name, belongs, help) in misplaced {
        if let Some(value) = fields.get(name).filter(|_| !belongs) {
            let message = format!("{} does not belong to this source", value.path);
            problems.push(value.problem("misplaced-field", message).help(help));
        }
    }
}

fn read_request(value: FieldValue<'_>, problems: &mut Problems) -> Option<CostFrom> {
    if !matches!(value.node.kind, YamlKind::Map(_)) {
        return value.choice(&WORDS_OF_REQUESTS, problems).map(CostFrom::from);
    }
    let fields = value.fields(REQUEST, "{ query: ids }", problems);
    match (fields.get("query"), fields.get("json"), fields.get("graphql")) {
        (Some(name), None, None) => name.text(problems).map(|name| CostFrom::QueryItems(name.to_owned())),
        (None, Some(pointer), None) => read_pointer(&pointer, problems).map(CostFrom::JsonItems),
        (None, None, Some(settings)) => Some(CostFrom::Graphql(Box::new(read_graphql(settings, problems)))),
        _ => not_one(&value, REQUEST, problems),
    }
}

fn read_response(value: FieldValue<'_>, problems: &mut Problems) -> Option<CostFrom> {
    if !matches!(value.node.kind, YamlKind::Map(_)) {
        return value.choice(&WORDS_OF_RESPONSES, problems).map(CostFrom::from);
    }
    let fields = value.fields(RESPONSE, "{ header: x-cost }", problems);
    match (fields.get("header"), fields.get("json")) {
        (Some(name), None) => read_header(&name, problems).map(CostFrom::ResponseHeader),
        (None, Some(pointer)) => read_pointer(&pointer, problems).map(CostFrom::ResponseJson),
        _ => not_one(&value, RESPONSE, problems),
    }
}

fn not_one(value: &FieldValue<'_>, names: &[&str], problems: &mut Problems) -> Option<CostFrom> {
    let message = format!("{} should name one thing", value.path);
    problems.push(value.problem("out-of-range", message).help(format!("name one of {}", names.join(", "))));
    None
}

fn read_pointer(value: &FieldValue<'_>, problems: &mut Problems) -> Option<JsonPointer> {
    let text = value.text(problems)?;
    text.parse().map_err(|fault| problems.push(value.fault("bad-pointer", fault))).ok()
}

fn read_header(value: &FieldValue<'_>, problems: &mut Problems) -> Option<HeaderName> {
    let text = value.text(problems)?;
    let fault = || {
        let message = format!("{} is not the name of a header field", quote(text));
        ParseError::new(message, "use letters, digits and `-`, such as x-cost")
    };
    let name = HeaderName::from_bytes(text.as_bytes());
    name.map_err(|_| problems.push(value.fault("bad-header", fault()))).ok()
}
