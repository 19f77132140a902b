//! The table of endpoints as an HTML page: self-contained, readable without its script, which finds operations and tries them with the session of the console.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde_json::Value;

use super::access::AdminAccess;
use super::endpoint::{AdminEndpoint, HttpMethod, RequestBody, Tag};
use super::endpoints::endpoints;
use super::openapi;

/// The page, made once.
pub(super) fn page() -> &'static str {
    static PAGE: LazyLock<String> = LazyLock::new(write);
    &PAGE
}

fn write() -> String {
    let document = openapi::document();
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Tollgate admin API</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"stylesheet\" href=\"/docs/style.css\">\n<script src=\"/docs/script.js\" defer></script>\n</head>\n<body>\n",
    );
    let version = escaped(text(at(&document, &["info", "version"])));
    let about = escaped(text(at(&document, &["info", "description"])));
    page.push_str("<a class=\"skip\" href=\"#main\">Skip to content</a>\n");
    write_navigation(&mut page);
    let _ = writeln!(
        page,
        "<main id=\"main\"><header><h1>Tollgate admin API</h1><p>Version {version} · <a href=\"/openapi.json\">openapi.json</a> · \
         <a href=\"/\">console</a> · <a href=\"/console/data-api\">data API</a></p>\n<p>{about}</p></header>"
    );
    for (tag, about) in Tag::ALL {
        let _ = writeln!(page, "<section><h2 id=\"{0}\">{0}</h2><p>{1}</p>", tag.name(), marked(about));
        for endpoint in endpoints().iter().filter(|endpoint| endpoint.tag == tag) {
            let operation = at(&document, &["paths", endpoint.path, &endpoint.method.name().to_ascii_lowercase()]);
            write_operation(&mut page, endpoint, operation);
        }
        page.push_str("</section>\n");
    }
    page.push_str("<section><h2 id=\"shapes\">shapes</h2>\n");
    for (name, schema) in at(&document, &["components", "schemas"]).as_object().into_iter().flatten() {
        let _ = write!(page, "<article id=\"shape-{0}\"><h3>{0}</h3>", escaped(name));
        write_shape(&mut page, schema);
        page.push_str("</article>\n");
    }
    page.push_str("</section>\n</main>\n</body>\n</html>\n");
    page
}

/// The search and the contents: sections with their operations.
fn write_navigation(page: &mut String) {
    page.push_str(
        "<nav aria-label=\"Contents\"><label>Find <input id=\"find\" type=\"search\" placeholder=\"rules, PUT, dry_run …\"></label>\n\
         <details id=\"contents\" open><summary>Contents</summary>\n",
    );
    for (tag, _) in Tag::ALL {
        let _ = write!(page, "<p><a href=\"#{0}\">{0}</a></p>\n<ul>", tag.name());
        for endpoint in endpoints().iter().filter(|endpoint| endpoint.tag == tag) {
            let (id, method, summary) = (endpoint.id, endpoint.method.name(), escaped(endpoint.summary));
            let class = method.to_ascii_lowercase();
            let _ = write!(page, "<li><a href=\"#{id}\"><span class=\"{class}\">{method}</span> {summary}</a></li>");
        }
        page.push_str("</ul>\n");
    }
    page.push_str("<p><a href=\"#shapes\">shapes</a></p></details></nav>\n");
}

fn write_operation(page: &mut String, endpoint: &AdminEndpoint, operation: &Value) {
    let (method, path) = (endpoint.method.name(), escaped(endpoint.path));
    let _ = writeln!(
        page,
        "<article class=\"operation\" id=\"{}\" data-method=\"{2}\" data-path=\"{path}\"><h3><code class=\"{1}\">{2}</code> <code>{path}</code></h3>\
         <p><strong>{3}.</strong> {4}</p>",
        endpoint.id,
        method.to_ascii_lowercase(),
        method,
        escaped(endpoint.summary),
        marked(text(at(operation, &["description"]))),
    );
    let parameters = at(operation, &["parameters"]).as_array().map(Vec::as_slice).unwrap_or_default();
    if !parameters.is_empty() {
        page.push_str("<div class=\"scroll\" tabindex=\"0\"><table class=\"parameters\"><tr><th>parameter</th><th>in</th><th>takes</th><th>what for</th></tr>\n");
        for parameter in parameters {
            let needed = if at(parameter, &["required"]) == true { " <em>needed</em>" } else { "" };
            let _ = writeln!(
                page,
                "<tr><td><code>{}</code>{needed}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escaped(text(at(parameter, &["name"]))),
                text(at(parameter, &["in"])),
                taken(at(parameter, &["schema"])),
                marked(text(at(parameter, &["description"]))),
            );
        }
        page.push_str("</table></div>\n");
    }
    if let Some(content) = at(operation, &["requestBody", "content"]).as_object() {
        for (media, body) in content {
            let _ = writeln!(page, "<p>Body: <code>{}</code> {}</p>", escaped(media), taken(at(body, &["schema"])));
        }
    }
    page.push_str(
        "<div class=\"scroll\" tabindex=\"0\"><table><tr><th>status</th><th>answer</th><th>shape</th></tr>\n",
    );
    for (status, answer) in at(operation, &["responses"]).as_object().into_iter().flatten() {
        let shape = at(answer, &["content"]).as_object().and_then(|content| content.values().next());
        let shape = shape.map(|content| taken(at(content, &["schema"]))).unwrap_or_default();
        let about = marked(text(at(answer, &["description"])));
        let _ = writeln!(page, "<tr><td>{status}</td><td>{about}</td><td>{shape}</td></tr>");
    }
    let _ =
        writeln!(page, "</table></div>\n<pre tabindex=\"0\"><code>{}</code></pre></article>", escaped(&curl(endpoint)));
}

/// A curl command; names in capitals are to be filled in.
fn curl(endpoint: &AdminEndpoint) -> String {
    let mut call = String::from("curl -s");
    if endpoint.method != HttpMethod::Get {
        call += &format!(" -X {}", endpoint.method.name());
    }
    if endpoint.access != AdminAccess::Open {
        call += " -H \"Authorization: Bearer $TOLLGATE_TOKEN\"";
    }
    if endpoint.headers.contains(&super::endpoint::EndpointHeader::IfMatch) {
        call += " -H 'If-Match: \"VERSION\"'";
    }
    call += match endpoint.body {
        RequestBody::None => "",
        RequestBody::Json(_) => " -H 'Content-Type: application/json'",
        RequestBody::Patch(_) => " -H 'Content-Type: application/merge-patch+json'",
        RequestBody::Yaml => " -H 'Content-Type: application/yaml'",
    };
    let path = endpoint.path.split('/').map(|part| match part.strip_prefix('{') {
        Some(name) => name.trim_end_matches('}').to_ascii_uppercase(),
        None => part.to_owned(),
    });
    call += &format!(" $TOLLGATE_URL{}", path.collect::<Vec<String>>().join("/"));
    call + match endpoint.body {
        RequestBody::None => "",
        RequestBody::Json(names) | RequestBody::Patch(names) => example(names),
        RequestBody::Yaml => " --data-binary @rules.yaml",
    }
}

fn example(names: &[&str]) -> &'static str {
    match names.first().copied().unwrap_or_default() {
        "RuleInput" => {
            r#" -d '{"rule_id":"orders","match":{"endpoint":"POST /api/orders"},"key_by":"user_id","limit":{"requests":100,"window":"1m"}}'"#
        }
        "ShortRuleInput" | "ShortRuleUpsert" => {
            r#" -d '{"rule_id":"orders","endpoint_pattern":"/api/orders","key_type":"user","limit":100,"window_seconds":60}'"#
        }
        "RulePatch" => r#" -d '{"limit":{"requests":200}}'"#,
        "ShortRulePatch" => r#" -d '{"limit":200}'"#,
        "OverrideInput" => {
            r#" -d '{"client_key":"user:42","rule_id":"orders","max_requests":500,"valid_until":"2026-12-01T00:00:00Z","reason":"launch"}'"#
        }
        "GrantInput" => {
            r#" -d '{"client_key":"user:42","rule_id":"tokens-monthly","amount":500000,"reason":"ticket 4711"}'"#
        }
        "OverridePatch" => r#" -d '{"valid_until":"2027-01-01T00:00:00Z"}'"#,
        "ClientInput" => r#" -d '{"client_key":"key:abc","tier":"pro","organisation":"acme"}'"#,
        "ClientBody" | "ClientPatch" => r#" -d '{"tier":"pro"}'"#,
        "TokenInput" => r#" -d '{"name":"deploy","role":"operator","expires_in":"90d"}'"#,
        "KeyInput" => r#" -d '{"client_key":"user:42","name":"mobile app"}'"#,
        "KeyRotation" => r#" -d '{"overlap":"24h"}'"#,
        "ModeInput" => r#" -d '{"mode":"shadow"}'"#,
        _ => " -d '{}'",
    }
}

/// The members of a schema.
fn write_shape(page: &mut String, schema: &Value) {
    let about = text(at(schema, &["description"]));
    if !about.is_empty() {
        let _ = write!(page, "<p>{}</p>", marked(about));
    }
    let Some(members) = at(schema, &["properties"]).as_object() else {
        let _ = write!(page, "<p>{}</p>", taken(schema));
        return;
    };
    let needed =
        |name: &str| at(schema, &["required"]).as_array().is_some_and(|names| names.iter().any(|other| other == name));
    page.push_str("<div class=\"scroll\" tabindex=\"0\"><table><tr><th>member</th><th>is</th><th>what for</th></tr>\n");
    for (name, member) in members {
        let mark = if needed(name) { " <em>needed</em>" } else { "" };
        let about = marked(text(at(member, &["description"])));
        let _ = writeln!(
            page,
            "<tr><td><code>{}</code>{mark}</td><td>{}</td><td>{about}</td></tr>",
            escaped(name),
            taken(member)
        );
    }
    page.push_str("</table></div>");
}

/// The type of a schema, in a few words.
fn taken(schema: &Value) -> String {
    if let Some(name) = at(schema, &["$ref"]).as_str().and_then(|name| name.rsplit('/').next()) {
        return format!("<a href=\"#shape-{0}\">{0}</a>", escaped(name));
    }
    for many in ["anyOf", "oneOf"] {
        if let Some(schemas) = at(schema, &[many]).as_array() {
            let any: Vec<String> = schemas.iter().map(taken).filter(|text| !text.is_empty()).collect();
            return any.join(" or ");
        }
    }
    if let Some(words) = at(schema, &["enum"]).as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("<code>{}</code>", escaped(text(word)))).collect();
        return words.join(" ");
    }
    if at(schema, &["type"]) == "array" {
        return format!("list of {}", taken(at(schema, &["items"])));
    }
    match at(schema, &["type"]) {
        Value::String(name) => escaped(name),
        Value::Array(names) => names.iter().map(|name| escaped(text(name))).collect::<Vec<String>>().join(" or "),
        _ => String::new(),
    }
}

/// The value at a path; null if it is absent.
fn at<'a>(value: &'a Value, names: &[&str]) -> &'a Value {
    names.iter().fold(value, |value, name| value.get(name).unwrap_or(&Value::Null))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Text between backquotes, as code.
fn marked(text: &str) -> String {
    let parts = escaped(text);
    let parts = parts.split('`').enumerate();
    parts.map(|(place, part)| if place % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() }).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{SCRIPT, STYLE};

    #[test]
    fn the_page_shows_everything_and_fetches_nothing_from_elsewhere() {
        let page = page();
        for endpoint in endpoints() {
            assert!(page.contains(&format!("id=\"{}\"", endpoint.id)), "{}", endpoint.id);
        }
        for asset in page.split("src=\"").skip(1).chain(page.split("<link rel=\"stylesheet\" href=\"").skip(1)) {
            assert!(asset.starts_with("/docs/"), "{asset:.60}");
        }
        assert!(!page.contains("style=") && !page.contains("onclick"), "the policy allows nothing inline");
        for (_, link) in page.match_indices("href=\"#").map(|(at, _)| page.split_at(at + 7)) {
            let name = link.split('"').next().unwrap();
            assert!(page.contains(&format!("id=\"{name}\"")), "{name} leads nowhere");
        }
        assert!(!STYLE.contains("url(") && !SCRIPT.contains("innerHTML"));
    }
}
