//! Responses: a page, a fragment of one, or the way to another page.

use http::{HeaderName, HeaderValue, header};
use maud::{Markup, html};
use tollgate_admin::AdminProblem;
use tollgate_service::Reply;
use tollgate_web::{ResponseBody, WebResponse, response_of};

use crate::api::CallProblem;
use crate::layout;

/// What a page answers.
pub(crate) struct PageResponse {
    status: u16,
    media: &'static str,
    body: String,
    location: Option<String>,
    cookie: Option<String>,
}

const HTML: &str = "text/html; charset=utf-8";

/// Fields of every response. `same-origin` and not `no-referrer`: with that, browsers send `Origin: null` with a form.
const FIELDS: [(HeaderName, &str); 7] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
];

impl PageResponse {
    /// A page.
    pub(crate) fn of(markup: Markup) -> PageResponse {
        PageResponse { status: 200, media: HTML, body: markup.into_string(), location: None, cookie: None }
    }

    /// A text for a script of ours: no page of another origin can read it.
    pub(crate) fn text(text: &str) -> PageResponse {
        PageResponse { media: "text/plain; charset=utf-8", body: text.to_owned(), ..PageResponse::of(html! {}) }
    }

    /// With another status.
    pub(crate) fn status(self, status: u16) -> PageResponse {
        PageResponse { status, ..self }
    }

    /// With a field `Set-Cookie`.
    pub(crate) fn cookie(self, cookie: String) -> PageResponse {
        PageResponse { cookie: Some(cookie), ..self }
    }

    /// The way to another page of the console.
    pub(crate) fn redirect(location: impl Into<String>) -> PageResponse {
        PageResponse { status: 303, media: HTML, body: String::new(), location: Some(location.into()), cookie: None }
    }

    pub(crate) fn not_found() -> PageResponse {
        PageResponse::plain("No such page", "There is no such page here.").status(404)
    }

    pub(crate) fn bad_form() -> PageResponse {
        let detail = "This form is no longer valid: go back, load the page again, and send it once more.";
        PageResponse::plain("Form refused", detail).status(403)
    }

    /// A problem of the API, for a caller of whom nothing is known.
    pub(crate) fn problem(problem: &CallProblem) -> PageResponse {
        PageResponse::plain(problem_title(problem), &problem.detail).status(problem.status)
    }

    fn plain(title: &str, detail: &str) -> PageResponse {
        PageResponse::of(layout::bare(
            title,
            html! {
                h1 { (title) }
                p { (detail) }
                p { a class="button" href="/" { "Overview" } }
            },
        ))
    }

    pub(crate) fn response(self) -> WebResponse {
        let mut response = WebResponse::new(ResponseBody::full(self.body));
        *response.status_mut() = self.status.try_into().unwrap_or_default();
        add_fields(&mut response);
        let fields = response.headers_mut();
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media));
        let values = [(header::LOCATION, self.location), (header::SET_COOKIE, self.cookie)];
        for (name, value) in values {
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                fields.insert(name, value);
            }
        }
        response
    }
}

/// What a page about a problem is called.
pub(crate) fn problem_title(problem: &CallProblem) -> &'static str {
    match problem.status {
        403 => "Not with this token",
        404 => "Not found",
        412 => "Changed meanwhile",
        503 => "Not available now",
        _ => "That did not work",
    }
}

/// Adds the fields of every response.
pub(crate) fn add_fields(response: &mut WebResponse) {
    for (name, value) in FIELDS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// A refusal of the API before any page was chosen.
pub(crate) fn of_problem(problem: &AdminProblem) -> WebResponse {
    let mut reply = Reply::default();
    reply.clear();
    problem.write_to(&mut reply);
    let mut response = response_of(reply);
    add_fields(&mut response);
    response
}
