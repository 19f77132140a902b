//! The data API, from its OpenAPI document: what programs ask, and what they are answered.

use std::sync::LazyLock;

use maud::{Markup, html};
use serde_json::Value;

use super::{PageResult, framed};
use crate::json::{list, member, plain, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::parameters::url;
use crate::parts::heading;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(tollgate_http::OPENAPI).unwrap_or_default());

pub(super) fn show(operator: &Operator<'_>) -> PageResult {
    let about = html! {
        (text(&DOCUMENT, "info.description")) " Version " (text(&DOCUMENT, "info.version")) "; as OpenAPI at "
        code { "/openapi.json" } " of the data listener. The " a href="/docs" { "admin API" } " is described beside."
    };
    let body = html! {
        (heading("Data API", about, html! {}))
        section class="card" aria-label="Contents" {
            ul class="contents-list" {
                @for (method, path, operation) in operations() {
                    li { a href={ "#" (text(operation, "operationId")) } { (badge_of(method)) " " code { (path) } } " " span class="dim" { (text(operation, "summary")) } }
                }
            }
        }
        @for (method, path, operation) in operations() { (operation_card(method, path, operation)) }
        h2 { "Shapes" }
        @for (name, schema) in member(&DOCUMENT, "components.schemas").as_object().into_iter().flatten() { (shape(name, schema)) }
    };
    framed(operator, Framed { title: "Data API", section: NavigationEntry::None, live: None, done: "", body })
}

/// Every operation with its method and its path.
fn operations() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    let paths = member(&DOCUMENT, "paths").as_object().into_iter().flatten();
    paths.flat_map(|(path, operations)| {
        let operations = operations.as_object().into_iter().flatten();
        operations.map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    })
}

fn badge_of(method: &str) -> Markup {
    html! { span class="badge" { (method.to_uppercase()) } }
}

fn operation_card(method: &str, path: &str, operation: &Value) -> Markup {
    let body = member(operation, "requestBody.content").get("application/json");
    let example = body.and_then(|body| body.get("example"));
    html! {
        section class="card" id=(text(operation, "operationId")) {
            h2 { (badge_of(method)) " " code { (path) } }
            p { strong { (text(operation, "summary")) "." } " " (text(operation, "description")) }
            @if let Some(body) = body { p { "Body: " (shape_link(member(body, "schema"))) } }
            @if !list(operation, "parameters").is_empty() {
                dl class="facts" { @for parameter in list(operation, "parameters") { dt { code { (text(parameter, "name")) } " " (text(parameter, "in")) } dd { (text(parameter, "description")) } } }
            }
            table class="list" {
                @for (status, response) in member(operation, "responses").as_object().into_iter().flatten() {
                    @let content = member(response, "content").as_object().and_then(|content| content.values().next());
                    tr { td class="number" { (status) } td { (text(response, "description")) } td { @if let Some(content) = content { (shape_link(member(content, "schema"))) } } }
                }
            }
            @if let Some(example) = example {
                pre { code { "curl -s http://127.0.0.1:8080" (path) " -d '" (example) "'" } }
                @if path == "/v1/check" || path == "/v1/explain" {
                    p { a class="button" href=(url("/console/explain", &[("request", &example.to_string())])) { "Try it: explain this request" } }
                }
            }
        }
    }
}

/// A link to a shape, or the words of a schema.
fn shape_link(schema: &Value) -> Markup {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next());
    html! { @if let Some(name) = name { a href={ "#shape-" (name) } { (name) } } @else { (type_words(schema)) } }
}

fn type_words(schema: &Value) -> String {
    match (member(schema, "type"), schema.get("items")) {
        (Value::String(name), Some(_)) if name == "array" => "list".to_owned(),
        (name, _) => plain(name).replace(", ", " or "),
    }
}

fn shape(name: &str, schema: &Value) -> Markup {
    let parts: Vec<&Value> = match list(schema, "allOf") {
        [] => vec![schema],
        parts => parts.iter().collect(),
    };
    let is_needed = |part: &Value, member: &str| list(part, "required").iter().any(|needed| needed == member);
    html! {
        section class="card" id={ "shape-" (name) } {
            h2 { (name) }
            @for part in parts {
                @if part.get("$ref").is_some() { p { "All of " (shape_link(part)) ", and:" } }
                @if !text(part, "description").is_empty() { p { (text(part, "description")) } }
                dl class="facts" {
                    @for (name, own) in member(part, "properties").as_object().into_iter().flatten() {
                        dt { code { (name) } @if is_needed(part, name) { " " span class="badge warn" { "needed" } } }
                        dd { span class="dim" { (shape_link(own)) } " " (text(own, "description")) }
                    }
                }
            }
        }
    }
}
