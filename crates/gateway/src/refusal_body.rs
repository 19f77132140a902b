//! The body of a refusal: a problem document, or what the route says in its place.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use tollgate_service::Reply;
use tollgate_web::{ResponseBody, WebResponse, response_of};

use crate::request_head::tokens;
use crate::routes::CompiledRoute;
use crate::spec::{HtmlPage, RefusalSpec};
use crate::template::{Escaping, TemplateValue};

/// How the refusals of one request look.
pub(crate) struct RefusalStyle {
    route: Arc<CompiledRoute>,
    prefers_html: bool,
}

/// What a refusal says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusalText<'a> {
    /// Stable, for programs.
    pub(crate) code: &'a str,
    /// For people.
    pub(crate) message: &'a str,
    /// The rule that refuses, and its page.
    pub(crate) rule: Option<&'a str>,
    pub(crate) doc_url: Option<&'a str>,
    /// The id in the access log.
    pub(crate) decision_id: &'a str,
}

impl RefusalStyle {
    /// The style of a route; `None` if it has none of its own.
    pub(crate) fn of(route: &Arc<CompiledRoute>, headers: &HeaderMap) -> Option<RefusalStyle> {
        let spec = route.spec.refusals.as_ref()?;
        let prefers_html = spec.html.is_some() && prefers_html(headers);
        Some(RefusalStyle { route: route.clone(), prefers_html })
    }

    fn spec(&self) -> Option<&RefusalSpec> {
        self.route.spec.refusals.as_ref()
    }
}

/// The response of a refusal.
pub(crate) fn respond(style: Option<&RefusalStyle>, text: &RefusalText<'_>, mut reply: Reply) -> WebResponse {
    let Some((style, spec)) = style.and_then(|style| Some((style, style.spec()?))) else { return response_of(reply) };
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let number = reply.status.to_string();
    let wait = reply.fields.get("Retry-After").map(|wait| String::from_utf8_lossy(wait).into_owned());
    let value = |doc_url| {
        let wait = wait.as_deref();
        let number = number.as_str();
        move |wanted| match wanted {
            TemplateValue::Status => Some(number),
            TemplateValue::Title => status.canonical_reason(),
            TemplateValue::Code => Some(text.code),
            TemplateValue::Message => Some(text.message),
            TemplateValue::RetryAfter => wait,
            TemplateValue::Rule => text.rule,
            TemplateValue::DocUrl => doc_url,
            TemplateValue::DecisionId => Some(text.decision_id),
        }
    };
    let of_route = spec.doc_url.as_ref().map(|url| url.fill(Escaping::Url, value(None)));
    let doc_url = text.doc_url.or(of_route.as_deref());
    let own: Option<(String, HeaderValue)> = match (&spec.html, spec.body(reply.status)) {
        (Some(HtmlPage::Plain), _) if style.prefers_html => Some((page(status, text, doc_url), HTML)),
        (Some(HtmlPage::Own(page)), _) if style.prefers_html => Some((page.fill(Escaping::Html, value(doc_url)), HTML)),
        (_, Some(body)) => Some((body.text.fill(body.escaping, value(doc_url)), body.content_type.clone())),
        _ => None,
    };
    if let (None, None, Some(url)) = (&own, text.doc_url, doc_url) {
        add_member("doc_url", url, &mut reply.body);
    }
    let mut response = response_of(reply);
    let is_page = style.prefers_html;
    let fields = response.headers_mut();
    if spec.html.is_some() {
        fields.append(header::VARY, HeaderValue::from_static("accept"));
    }
    if let Some((body, content_type)) = own {
        fields.insert(header::CONTENT_TYPE, content_type);
        fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if is_page && spec.html == Some(HtmlPage::Plain) {
            fields.insert(header::CONTENT_SECURITY_POLICY, PAGE_POLICY);
        }
        *response.body_mut() = ResponseBody::full(body);
    }
    response
}

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// The page has a style and nothing else.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");

/// Adds a member to a JSON object.
pub(crate) fn add_member(name: &str, text: &str, object: &mut Vec<u8>) {
    if object.pop_if(|last| *last == b'}').is_some() {
        let text = Escaping::Json.escaped(text);
        object.extend_from_slice(format!(",\"{name}\":\"{text}\"}}").as_bytes());
    }
}

/// The gateway's own page.
fn page(status: StatusCode, text: &RefusalText<'_>, doc_url: Option<&str>) -> String {
    let escaped = |text: &str| Escaping::Html.escaped(text);
    let title = status.canonical_reason().unwrap_or("Refused");
    let more = doc_url.map(|url| format!("<p><a href=\"{}\">More about this</a></p>\n", escaped(url)));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>body{{font:16px/1.5 \
         system-ui,sans-serif;max-width:32em;margin:20vh auto;padding:0 1em;color-scheme:light \
         dark}}small{{opacity:.6}}</style>\n<h1>{title}</h1>\n<p>{}</p>\n{}<p><small>{} · {}</small></p>\n</html>\n",
        escaped(text.message),
        more.unwrap_or_default(),
        status.as_u16(),
        escaped(text.decision_id),
    )
}

/// Whether `Accept` names HTML, and not below JSON: browsers do, programs that take anything do not.
fn prefers_html(headers: &HeaderMap) -> bool {
    let (mut html, mut json) = (0, 0);
    for range in tokens(headers, &header::ACCEPT) {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(1_000, thousandths);
        match media.as_str() {
            "text/html" | "application/xhtml+xml" => html = html.max(weight),
            _ if media.ends_with("json") => json = json.max(weight),
            _ => {}
        }
    }
    html > 0 && html >= json
}

/// A weight from 0 to 1 with at most three decimals; 0 if it is none.
fn thousandths(text: &str) -> u32 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = format!("{part:0<3}");
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    match (number(whole), number(&part)) {
        (Some(whole @ 0..=1), Some(part)) if part < 1_000 => (whole * 1_000 + part).min(1_000),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_get_pages_and_programs_do_not() {
        let prefers = |accept: &'static str| {
            prefers_html(&HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]))
        };
        assert!(prefers("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(prefers("application/json;q=0.5, Text/HTML;q=0.55"));
        for accept in
            ["*/*", "application/json", "text/html;q=0.5, application/problem+json", "text/html;q=0", "text/html;q=x"]
        {
            assert!(!prefers(accept), "{accept}");
        }
    }

    #[test]
    fn a_member_is_escaped() {
        let mut object = b"{\"a\":1}".to_vec();
        add_member("b", "\"}", &mut object);
        assert_eq!(object, b"{\"a\":1,\"b\":\"\\\"}\"}");
    }
}
