//! `refusals` of a route: bodies of its own, pages for browsers, and where to read on.

use http::HeaderValue;
use tollgate_rules::problem::Problems;
use tollgate_rules::read::FieldValue;

use crate::template::{Escaping, Template};

/// How the refusals of a route look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalSpec {
    /// A page about the refusal; of a rule's own `doc_url`, that one is shown.
    pub doc_url: Option<Template>,
    /// What browsers get, if not the same as programs.
    pub html: Option<HtmlPage>,
    /// Bodies by status; problem documents for the others.
    pub bodies: Vec<RefusalBody>,
}

/// The page for browsers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HtmlPage {
    /// The one of the gateway.
    Plain,
    /// One of the route's own.
    Own(Template),
}

/// A body for some statuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalBody {
    /// The statuses.
    pub statuses: Vec<u16>,
    /// The media type.
    pub content_type: HeaderValue,
    /// How values are written into it.
    pub escaping: Escaping,
    /// The text.
    pub text: Template,
}

const FIELDS: &[&str] = &["doc_url", "html", "bodies"];
const BODY_FIELDS: &[&str] = &["status", "content_type", "body"];
/// Longest text of a refusal: it is sent to callers that are many.
const TEXT_BYTES_MAX: usize = 64 << 10;

impl RefusalSpec {
    pub(super) fn read(value: FieldValue<'_>, problems: &mut Problems) -> RefusalSpec {
        const EXAMPLE: &str = "{ doc_url: \"https://docs.example.com/errors/{code}\", html: true }";
        let fields = value.fields(FIELDS, EXAMPLE, problems);
        let mut spec = RefusalSpec::default();
        if let Some(value) = fields.get("doc_url") {
            spec.doc_url = read_doc_url(&value, problems);
        }
        if let Some(value) = fields.get("html") {
            spec.html = match value.text(problems) {
                Some("true") => Some(HtmlPage::Plain),
                Some("false") | None => None,
                Some(_) => read_template(&value, problems).map(HtmlPage::Own),
            };
        }
        if let Some(value) = fields.get("bodies") {
            let items: Vec<FieldValue<'_>> = value.items("bodies", problems).collect();
            for item in items {
                spec.bodies.extend(read_body(item, problems));
            }
        }
        spec
    }

    /// The body for a status.
    pub(crate) fn body(&self, status: u16) -> Option<&RefusalBody> {
        self.bodies.iter().find(|body| body.statuses.contains(&status))
    }
}

fn read_doc_url(value: &FieldValue<'_>, problems: &mut Problems) -> Option<Template> {
    let text = value.text(problems)?;
    let is_url = text.strip_prefix("https://").or(text.strip_prefix("http://")).is_some_and(|rest| !rest.is_empty());
    if !is_url || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let help = "write the URL of a page, such as https://docs.example.com/errors/{code}";
        problems.push(value.problem("bad-url", format!("{} is not the URL of a page", value.path)).help(help));
        return None;
    }
    read_template(value, problems)
}

fn read_template(value: &FieldValue<'_>, problems: &mut Problems) -> Option<Template> {
    let text = value.text(problems)?;
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("{} has {} bytes", value.path, text.len());
        problems.push(value.problem("out-of-range", message).help(format!("at most {TEXT_BYTES_MAX}")));
        return None;
    }
    Template::parse(text).map_err(|error| problems.push(value.fault("bad-template", error))).ok()
}

fn read_body(value: FieldValue<'_>, problems: &mut Problems) -> Option<RefusalBody> {
    let fields = value.fields(BODY_FIELDS, "{ status: 429, content_type: text/plain, body: \"Wait.\" }", problems);
    let statuses: Vec<u16> = fields
        .required("status", "name the statuses, such as [429, 503]", problems)?
        .one_or_more()
        .iter()
        .filter_map(|item| item.integer(400..=599, problems))
        .filter_map(|status| u16::try_from(status).ok())
        .collect();
    let content_type = fields.required("content_type", "write a media type, such as application/json", problems)?;
    let media = content_type.text(problems)?;
    let header = HeaderValue::from_str(media).ok().filter(|_| media.split_once('/').is_some());
    let Some(header) = header else {
        let message = format!("{} is not a media type", content_type.path);
        problems.push(content_type.problem("bad-media-type", message).help("write one such as text/plain"));
        return None;
    };
    let text = read_template(&fields.required("body", "write the text", problems)?, problems)?;
    Some(RefusalBody { statuses, content_type: header, escaping: Escaping::of(media), text })
}
