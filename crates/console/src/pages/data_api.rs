//! The data API, from its OpenAPI document: what programs ask, what they are answered, and a form that tries it.

use std::sync::LazyLock;

use maud::{Markup, html};
use serde_json::Value;

use super::{PageResult, framed};
use crate::api::CallProblem;
use crate::data_calls::{DataCall, DataCallResponse};
use crate::json::{list, member, plain, text};
use crate::layout::{Framed, NavigationEntry, form_token};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::url;
use crate::parts::heading;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(tollgate_http::OPENAPI).unwrap_or_default());

/// A query parameter of an operation is a field of this name in its form, with its own name behind it.
const QUERY_FIELD: &str = "query:";

/// What was tried: the operation, what was sent, and what was answered.
struct TriedOperation<'a> {
    id: &'a str,
    call: &'a PageCall<'a>,
    response: DataCallResponse,
}

pub(super) fn show(operator: &Operator<'_>) -> PageResult {
    page(operator, None)
}

/// Makes a call and shows the page with its answer. A check takes units of clients, as the counters' reset gives them
/// back: it needs the same role. The tokens of the data API are confined to namespaces, this way is not, so it is for
/// tokens of all of them.
pub(super) async fn try_operation(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    if !may_try(operator) {
        let detail = "Trying the data API needs a token of the role operator or admin, for all namespaces.";
        return Err(CallProblem::new(403, "forbidden", detail));
    }
    let id = call.form.get("operation");
    let found = operations().find(|(_, _, operation)| text(operation, "operationId") == id);
    let Some((method, path, operation)) = found else { return Ok(crate::response::PageResponse::not_found()) };
    let fields: Vec<(&str, String)> = query_fields(operation).map(|name| (name, field_name(name))).collect();
    let given: Vec<(&str, &str)> = fields.iter().map(|(name, field)| (*name, call.form.get(field))).collect();
    let target = url("", &given);
    let data_call = DataCall {
        method: &method.to_uppercase(),
        path,
        query: target.strip_prefix('?').unwrap_or_default(),
        body: call.form.raw("body"),
        token: call.form.get("data_token"),
    };
    let response = data_call.send(&call.shared.data_api, call.peer).await;
    page(operator, Some(TriedOperation { id, call, response }))
}

fn may_try(operator: &Operator<'_>) -> bool {
    operator.may("operator") && operator.sees_all()
}

fn page(operator: &Operator<'_>, tried: Option<TriedOperation<'_>>) -> PageResult {
    let about = html! {
        (text(&DOCUMENT, "info.description")) " Version " (text(&DOCUMENT, "info.version")) "; as OpenAPI at "
        code { "/openapi.json" } " of the data listener. The " a href="/docs" { "admin API" } " is described beside."
    };
    let body = html! {
        (heading("Data API", about, html! {}))
        section class="card" aria-label="Contents" {
            ul class="contents-list" {
                @for (method, path, operation) in operations() {
                    li { (badge_of(method)) " " a href={ "#" (text(operation, "operationId")) } { code { (path) } } " " span class="dim" { (text(operation, "summary")) } }
                }
            }
        }
        @for (method, path, operation) in operations() {
            (operation_card(method, path, operation, &try_form(operator, path, operation, tried.as_ref())))
        }
        h2 { "Shapes" }
        @for (name, schema) in member(&DOCUMENT, "components.schemas").as_object().into_iter().flatten() { (shape(name, schema)) }
    };
    framed(operator, Framed { title: "Data API", section: NavigationEntry::None, live: None, done: "", body })
}

/// Every operation with its method and its path: calls first, then what is asked about the server.
fn operations() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    let paths = || member(&DOCUMENT, "paths").as_object().into_iter().flatten();
    let is_call = |path: &str| path.starts_with("/v1/");
    let calls = paths().filter(move |(path, _)| is_call(path));
    calls.chain(paths().filter(move |(path, _)| !is_call(path))).flat_map(|(path, operations)| {
        let operations = operations.as_object().into_iter().flatten();
        operations.map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    })
}

fn sentence(summary: &str) -> String {
    if summary.ends_with('?') { summary.to_owned() } else { format!("{summary}.") }
}

fn badge_of(method: &str) -> Markup {
    html! { span class="badge" { (method.to_uppercase()) } }
}

fn query_fields(operation: &Value) -> impl Iterator<Item = &str> {
    let parameters = list(operation, "parameters").iter().filter(|parameter| text(parameter, "in") == "query");
    parameters.map(|parameter| text(parameter, "name"))
}

fn field_name(parameter: &str) -> String {
    format!("{QUERY_FIELD}{parameter}")
}

/// The form that tries an operation, and its last answer.
fn try_form(operator: &Operator<'_>, path: &str, operation: &Value, tried: Option<&TriedOperation<'_>>) -> Markup {
    let id = text(operation, "operationId");
    let tried = tried.filter(|tried| tried.id == id);
    let sent = |field: &str| tried.map(|tried| tried.call.form.raw(field));
    let body = member(operation, "requestBody.content").get("application/json").and_then(|body| body.get("example"));
    let example = body.map(|body| serde_json::to_string_pretty(body).unwrap_or_default());
    html! {
        @if may_try(operator) {
            details class="try" open[tried.is_some()] {
                summary class="button" { "Try it…" }
                form method="post" action={ "/console/data-api/try#" (id) } {
                    (form_token(operator))
                    input type="hidden" name="operation" value=(id);
                    @for name in query_fields(operation) {
                        @let field = field_name(name);
                        label class="field" { span { (name) } input name=(field) value=(sent(&field).unwrap_or_default()) maxlength="500"; }
                    }
                    @if let Some(example) = &example {
                        label class="field" { span { "Body" } textarea name="body" rows=(example.lines().count().clamp(3, 14)) spellcheck="false" { (sent("body").unwrap_or(example)) } }
                    }
                    label class="field" {
                        span { "Token of the data API" }
                        input type="password" name="data_token" autocomplete="off" maxlength="512";
                        small { "only if the server asks callers for one; it is not kept" }
                    }
                    button class="button primary" { "Send to " (path) }
                    @if CHARGING.contains(&path) { " " small { "This is a real request: it takes units of the client that it names." } }
                }
                @if let Some(TriedOperation { response, .. }) = tried {
                    div class="answer" role="status" {
                        p { span class={ "badge " (if response.is_success { "good" } else { "bad" }) } { (response.status) } }
                        pre tabindex="0" { code { (response.fields) } }
                        pre tabindex="0" { code { (response.body) } }
                    }
                }
            }
        }
    }
}

/// Operations that take units.
const CHARGING: [&str; 5] = ["/v1/check", "/v1/check/batch", "/v1/reserve", "/v1/extend", "/v1/slots/acquire"];

fn operation_card(method: &str, path: &str, operation: &Value, try_form: &Markup) -> Markup {
    let body = member(operation, "requestBody.content").get("application/json");
    let example = body.and_then(|body| body.get("example"));
    html! {
        section class="card" id=(text(operation, "operationId")) {
            h2 { (badge_of(method)) " " code { (path) } }
            p { strong { (sentence(text(operation, "summary"))) } " " (text(operation, "description")) }
            @if let Some(body) = body { p { "Body: " (shape_link(member(body, "schema"))) } }
            @if !list(operation, "parameters").is_empty() {
                dl class="facts" { @for parameter in list(operation, "parameters") { dt { code { (text(parameter, "name")) } " " (text(parameter, "in")) } dd { (text(parameter, "description")) } } }
            }
            table class="list" {
                @for (status, response) in member(operation, "responses").as_object().into_iter().flatten() {
                    @let content = member(response, "content").as_object().and_then(|content| content.values().next());
                    tr { td class="status" { (status) } td { (text(response, "description")) } td { @if let Some(content) = content { (shape_link(member(content, "schema"))) } } }
                }
            }
            @if let Some(example) = example {
                pre { code { "curl -s http://127.0.0.1:8080" (path) " -d '" (example) "'" } }
                @if path == "/v1/check" || path == "/v1/explain" {
                    p { a class="button" href=(url("/console/explain", &[("request", &example.to_string())])) { "Explain this request" } }
                }
            }
            (try_form)
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
