//! The table of endpoints as an OpenAPI 3.1 document.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use tollgate_api_schema as schema;

use super::access::AdminAccess;
use super::endpoint::{AdminEndpoint, EndpointHeader, HttpMethod, RequestBody, ResponseContent, Tag};
use super::endpoints::endpoints;
use super::parameter::{Parameter, ParameterKind};

/// The document.
pub fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in endpoints() {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Some(members) = path.as_object_mut() {
            members.insert(endpoint.method.name().to_ascii_lowercase(), operation(endpoint));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "contact": { "name": "Tollgate" },
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": Tag::ALL.map(|(tag, about)| json!({ "name": tag.name(), "description": about })),
        "paths": paths,
        "components": {
            "schemas": schema::all(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "description": TOKEN } },
        },
    })
}

/// The document as text, built once.
pub(super) fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| document().to_string());
    &TEXT
}

const ABOUT: &str = "Rules, overrides, grants and clients of a rate limiter, and all about them. Bodies are JSON, errors are \
    problem details. What is read has an ETag; replacing and merging need it as If-Match, so that no \
    concurrent change is lost. Every change is one generation with its rows of the audit.";
const TOKEN: &str = "`tg_<id>_<secret>`. Viewers read and see client keys as digests, operators also change rules, \
    overrides, grants, clients and keys, admins also tokens and the mode. A token may be for some namespaces only.";

fn operation(endpoint: &AdminEndpoint) -> Value {
    let AdminEndpoint { id, tag, summary, detail, access, .. } = endpoint;
    let needs = match access {
        AdminAccess::Open => "Needs no token.".to_owned(),
        AdminAccess::Needs(role) => format!("Needs the role {} or a stronger one.", role.name()),
    };
    let description = [*detail, &needs].join(" ");
    let security = match access {
        AdminAccess::Open => json!([]),
        AdminAccess::Needs(_) => json!([{ "token": [] }]),
    };
    let mut operation = json!({
        "operationId": id,
        "tags": [tag.name()],
        "summary": summary,
        "description": description.trim(),
        "parameters": parameters(endpoint),
        "responses": responses(endpoint),
        "security": security,
    });
    if let (Some(body), Some(members)) = (body(endpoint.body), operation.as_object_mut()) {
        members.insert("requestBody".to_owned(), body);
    }
    operation
}

fn parameters(endpoint: &AdminEndpoint) -> Value {
    let place = |name: &str| {
        let schema = match name {
            "generation" => json!({ "type": "integer", "format": "int64", "minimum": 0 }),
            _ => json!({ "type": "string", "minLength": 1, "maxLength": 1024 }),
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    };
    let query = |parameter: &Parameter| {
        json!({
            "name": parameter.name,
            "in": "query",
            "required": parameter.is_required,
            "description": parameter.help,
            "schema": takes(parameter.takes),
        })
    };
    let headers = endpoint.headers.iter().map(|header| header_parameter(endpoint, *header));
    endpoint.path_parameters().map(place).chain(endpoint.parameters().map(query)).chain(headers).collect()
}

fn takes(takes: ParameterKind) -> Value {
    match takes {
        ParameterKind::Text | ParameterKind::Cursor => json!({ "type": "string", "minLength": 1 }),
        ParameterKind::Flag => json!({ "type": "boolean" }),
        ParameterKind::Count => json!({ "type": "integer", "minimum": 1, "maximum": 1000 }),
        ParameterKind::Generation => json!({ "type": "integer", "format": "int64", "minimum": 0 }),
        ParameterKind::Time => json!({ "type": "string", "format": "date-time" }),
        ParameterKind::OneOf(words) => json!({ "type": "string", "enum": words }),
    }
}

fn header_parameter(endpoint: &AdminEndpoint, header: EndpointHeader) -> Value {
    // A replacement sends If-Match, and a creation If-None-Match: neither alone is required.
    let (name, required, help) = match header {
        EndpointHeader::IfMatch => {
            ("If-Match", endpoint.method == HttpMethod::Patch, "The ETag that was read, or `*`.")
        }
        EndpointHeader::IfMatchOptional => ("If-Match", false, "The ETag that was read; only if it is still that."),
        EndpointHeader::IfNoneMatch if endpoint.method == HttpMethod::Get => {
            ("If-None-Match", false, "An ETag that is known already: 304 if it is still that.")
        }
        EndpointHeader::IfNoneMatch => ("If-None-Match", false, "`*`: only if it is not there yet."),
        EndpointHeader::Accept => ("Accept", false, "`text/csv` for CSV."),
        EndpointHeader::IdempotencyKey => {
            ("Idempotency-Key", false, "The same call with the same key is done once, and answered alike for a day.")
        }
    };
    let schema = match header {
        EndpointHeader::Accept => json!({ "type": "string" }),
        EndpointHeader::IdempotencyKey => json!({ "type": "string", "pattern": "^[!-~]{1,255}$" }),
        EndpointHeader::IfNoneMatch if endpoint.method != HttpMethod::Get => json!({ "type": "string", "enum": ["*"] }),
        _ => {
            json!({ "type": "string", "pattern": r#"^(\*|"[0-9]{1,18}")$"# })
        }
    };
    json!({ "name": name, "in": "header", "required": required, "description": help, "schema": schema })
}

fn body(body: RequestBody) -> Option<Value> {
    let any = |names: &[&str]| match names {
        [one] => schema::reference(one),
        many => json!({ "oneOf": many.iter().map(|name| schema::reference(name)).collect::<Value>() }),
    };
    let content = match body {
        RequestBody::None => return None,
        RequestBody::Json(names) => json!({ "application/json": { "schema": any(names) } }),
        RequestBody::Patch(names) => json!({ "application/merge-patch+json": { "schema": any(names) } }),
        RequestBody::Yaml => {
            json!({ "application/yaml": { "schema": { "type": "string", "description": "A rules file." } } })
        }
    };
    Some(json!({ "required": true, "content": content }))
}

fn responses(endpoint: &AdminEndpoint) -> Value {
    let mut responses = Map::new();
    let is_tried = endpoint.query.iter().any(|parameter| parameter.name == "dry_run");
    for (status, content) in endpoint.responses {
        responses.insert(status.to_string(), response(*status, *content, is_tried));
    }
    admit_created(&mut responses);
    if endpoint.method == HttpMethod::Get && endpoint.headers.contains(&EndpointHeader::IfNoneMatch) {
        responses.insert("304".to_owned(), json!({ "description": "It is still what the caller has." }));
    }
    for (status, about) in refusals(endpoint) {
        let content = json!({ "application/problem+json": { "schema": schema::reference("Problem") } });
        responses.insert(status.to_string(), json!({ "description": about, "content": content }));
    }
    Value::Object(responses)
}

/// Generated clients parse every success as the response of the lowest status, so that one also admits the created record.
fn admit_created(responses: &mut Map<String, Value>) {
    const SCHEMA: &str = "/content/application~1json/schema";
    let made = responses.get("201").and_then(|response| response.pointer(SCHEMA)).cloned();
    let done = responses.get_mut("200").and_then(|response| response.pointer_mut(SCHEMA));
    if let (Some(made), Some(done)) = (made, done)
        && *done == schema::reference("DryRun")
    {
        *done = json!({ "oneOf": [made, done.clone()] });
    }
}

fn response(status: u16, content: ResponseContent, is_tried: bool) -> Value {
    let either = |name: &str| match is_tried && status == 200 && !matches!(name, "DryRun" | "Changes") {
        true => json!({ "oneOf": [schema::reference(name), schema::reference("DryRun")] }),
        false => schema::reference(name),
    };
    let json = |name: &str| json!({ "application/json": { "schema": either(name) } });
    let header = |text: &str| json!({ "description": text, "schema": { "type": "string" } });
    let etag = header("Its version, for If-Match.");
    match content {
        ResponseContent::Nothing => json!({ "description": "Done." }),
        ResponseContent::Json(name) => json!({ "description": name, "content": json(name) }),
        ResponseContent::Versioned(name) => {
            json!({ "description": name, "content": json(name), "headers": { "ETag": etag } })
        }
        ResponseContent::Created(name) => {
            let headers = json!({ "ETag": etag, "Location": header("Where it is.") });
            json!({ "description": format!("{name}, just made"), "content": json(name), "headers": headers })
        }
        ResponseContent::JsonOrCsv(name) => {
            let mut content = json(name);
            if let Some(media) = content.as_object_mut() {
                media.insert("text/csv".to_owned(), json!({ "schema": { "type": "string" } }));
            }
            let next = header("Of CSV: where the next piece begins; absent at the end.");
            json!({ "description": name, "content": content, "headers": { "Next-Cursor": next } })
        }
        ResponseContent::Text(media) => {
            let media = media.split(';').next().unwrap_or(media);
            json!({ "description": "As it is.", "content": { media: { "schema": {} } } })
        }
    }
}

/// The error statuses of an endpoint.
fn refusals(endpoint: &AdminEndpoint) -> Vec<(u16, &'static str)> {
    let has_body = endpoint.body != RequestBody::None;
    let asks = |header| endpoint.headers.contains(&header);
    let needs_token = endpoint.access != AdminAccess::Open;
    let names_something = endpoint.path_parameters().next().is_some()
        || endpoint.query.iter().any(|parameter| parameter.takes == ParameterKind::Generation)
        || endpoint.id == "exportRules";
    let is_conditional = asks(EndpointHeader::IfMatch) || asks(EndpointHeader::IfMatchOptional);
    let all = [
        (400, "Something in it cannot be read: `errors` says what, with the path of the field.", true),
        (401, "No token, or one that is not good.", needs_token),
        (403, "The token may not do this, or a web page of another origin asked.", true),
        (404, "There is no such thing.", names_something || endpoint.writes()),
        (409, "It is there already, or belongs to a file.", endpoint.writes()),
        (412, "It was changed since it was read.", is_conditional),
        (413, "The body is too long.", true),
        (415, "The body is of another media type.", true),
        (
            422,
            "It can be read, and cannot be: `errors` says why, with the path of the field.",
            has_body || endpoint.writes(),
        ),
        (428, "If-Match is missing.", asks(EndpointHeader::IfMatch)),
        (429, "Too many bad tokens came from this address; wait as long as Retry-After says.", needs_token),
        (503, "The database does not answer, or there is none.", needs_token),
        (507, "There is no room left in the database.", endpoint.writes()),
    ];
    all.into_iter().filter(|(.., can_be)| *can_be).map(|(status, about, _)| (status, about)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `$ref` of a document, wherever it stands.
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_shape_that_is_named_is_there_and_every_one_that_is_there_is_named() {
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        let shapes = document["components"]["schemas"].as_object().unwrap();
        for name in &found {
            let name = name.strip_prefix("#/components/schemas/").unwrap();
            assert!(shapes.contains_key(name), "{name} is named and not there");
        }
        for name in shapes.keys() {
            assert!(found.iter().any(|other| other.ends_with(&format!("/{name}"))), "{name} is there and never named");
        }
    }

    #[test]
    fn every_row_is_described() {
        let document = document();
        for endpoint in endpoints() {
            let operation = &document["paths"][endpoint.path][endpoint.method.name().to_ascii_lowercase()];
            assert_eq!(operation["operationId"], endpoint.id);
            assert!(operation["responses"].as_object().unwrap().keys().any(|status| status.starts_with('2')));
        }
    }

    /// Hands every object of a document to `check`, with its path.
    fn walk(value: &Value, path: &str, check: &mut impl FnMut(&str, &Map<String, Value>)) {
        match value {
            Value::Object(members) => {
                check(path, members);
                members.iter().for_each(|(name, value)| walk(value, &format!("{path}/{name}"), check));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, path, check)),
            _ => {}
        }
    }

    /// What made clients that do not compile, or cannot create a rule; script/openapi runs the generators themselves.
    #[test]
    fn generators_of_clients_can_read_it() {
        let document = document();
        let shapes = document["components"]["schemas"].as_object().unwrap();
        for name in shapes.keys() {
            assert!(!shapes.contains_key(&format!("New{name}")), "New{name} is a function in Go");
        }
        walk(&document, "", &mut |path, members| {
            let kinds: Vec<&str> = match members.get("type") {
                Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
                kind => kind.and_then(Value::as_str).into_iter().collect(),
            };
            if kinds.contains(&"array") {
                assert!(members.contains_key("items"), "{path}: an array of what?");
                assert!(
                    kinds.iter().all(|kind| ["array", "null"].contains(kind)),
                    "{path}: an array or something else"
                );
            }
            let of_integers = kinds.contains(&"integer") && kinds.iter().all(|kind| ["integer", "null"].contains(kind));
            let is_short_form =
                members.get("maximum").and_then(Value::as_u64).is_some_and(|max_bytes| max_bytes <= 1000);
            assert!(!of_integers || is_short_form || members.get("format") == Some(&json!("int64")), "{path}: 32 bits");
            for choice in ["anyOf", "oneOf", "allOf"].iter().filter_map(|word| members.get(*word)?.as_array()).flatten()
            {
                let says_what = ["type", "$ref", "anyOf", "oneOf"].iter().any(|word| choice.get(*word).is_some());
                assert!(says_what, "{path}: {choice} is no type");
            }
            if members.get("in") == Some(&json!("header")) {
                assert_eq!(members["schema"]["type"], "string", "{path}: {members:?}");
            }
            if let Some(responses) = members.get("responses").and_then(Value::as_object) {
                let schemas = responses.iter().filter(|(status, _)| status.starts_with('2'));
                let schemas: Vec<&Value> =
                    schemas.filter_map(|(_, response)| response.pointer("/content/application~1json/schema")).collect();
                let first = schemas.first().map(ToString::to_string).unwrap_or_default();
                assert!(schemas.iter().all(|schema| first.contains(&schema.to_string())), "{path}: {schemas:?}");
            }
        });
    }
}
