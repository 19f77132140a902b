//! Signing in with a token, and out.

use maud::{Markup, html};

use crate::api::CallProblem;
use crate::layout::bare;
use crate::page_call::PageCall;
use crate::parameters::url;
use crate::response::PageResponse;

pub(super) const PATH: &str = "/console/sign-in";

/// The page, with the reason why the last attempt failed.
pub(super) fn show(call: &PageCall<'_>) -> PageResponse {
    PageResponse::of(form(call, call.query.get("next"), None))
}

/// Checks the token with the API, as every client of it is checked, and begins a session.
pub(super) async fn sign_in(call: &PageCall<'_>) -> PageResponse {
    let (token, next) = (call.form.get("token"), call.form.get("next"));
    let problem = match is_token(token) {
        true => call.client(token).get("/v1/whoami").await.err(),
        false => Some(CallProblem::new(422, "not_a_token", "A token begins with tg_ and has no spaces.")),
    };
    let cookie = call.shared.sessions.begin(token, call.shared.clock.wall());
    match (problem, cookie) {
        (None, Some(cookie)) => PageResponse::redirect(own(next)).cookie(cookie),
        (problem, _) => {
            let problem = problem.unwrap_or_else(|| CallProblem::new(500, "no_session", "No session could be made."));
            PageResponse::of(form(call, next, Some(&problem))).status(problem.status)
        }
    }
}

/// Ends the session of the browser.
pub(super) fn sign_out(call: &PageCall<'_>) -> PageResponse {
    PageResponse::redirect(PATH).cookie(call.shared.sessions.end())
}

/// The way to this page, for a caller who is not signed in or no longer.
pub(super) fn required(call: &PageCall<'_>, problem: &CallProblem) -> PageResponse {
    let next = if call.is_change { "" } else { Some(call.target).filter(|target| *target != "/").unwrap_or_default() };
    let page = PageResponse::redirect(url(PATH, &[("next", next)]));
    match (&call.session, problem.code.as_str()) {
        (Some(_), _) => page.cookie(call.shared.sessions.end()),
        (None, _) => page,
    }
}

/// A field of a request cannot hold anything else.
fn is_token(text: &str) -> bool {
    text.len() <= 512 && text.starts_with("tg_") && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Only pages of the console: never another site, however the address is spelled.
fn own(next: &str) -> &str {
    let is_page = next.strip_prefix("/console").is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_page && is_plain && !next.starts_with(PATH) { next } else { "/" }
}

fn form(call: &PageCall<'_>, next: &str, problem: Option<&CallProblem>) -> Markup {
    bare(
        "Sign in",
        html! {
            h1 { "Sign in" }
            @if let Some(problem) = problem { p class="note bad" role="alert" { (problem.detail) } }
            form method="post" action=(PATH) class="sign-in" {
                input type="hidden" name="next" value=(own(next));
                label class="field" {
                    span { "Token" }
                    input type="password" name="token" autocomplete="current-password" autofocus required maxlength="512" placeholder="tg_…";
                }
                button class="button primary" { "Sign in" }
            }
            p class="dim" { "The console may do what your token may do, in its namespaces. The token stays in an encrypted cookie for twelve hours." }
            @if call.is_local() { (guide()) }
        },
    )
}

/// How to get a first token, for a browser on the machine of the server.
fn guide() -> Markup {
    html! {
        section class="guide" {
            h2 { "Your first time here?" }
            ol {
                li { "On this machine, make a token where the database is:" pre { code { "tollgate db token" } } }
                li { "Paste what it prints above." }
            }
            p class="dim" {
                "A server that was started in a terminal has shown its first token there; one without a terminal keeps it in the file "
                code { "admin-token" } " beside its database. A server without a database has no tokens: start it with "
                code { "--db" } "."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_stays_in_the_console() {
        for good in ["/console/rules?name=a%20b", "/console", "/console?x=1"] {
            assert_eq!(own(good), good);
        }
        for bad in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/console.evil.example",
            "/console\\..\\..",
            "/consolex",
            "/v1/rules",
            "javascript:alert(1)",
            "/console/\r\nSet-Cookie: a=b",
            "/console/sign-in?next=/console/sign-in",
        ] {
            assert_eq!(own(bad), "/", "{bad}");
        }
    }

    #[test]
    fn only_tokens_reach_the_api() {
        assert!(is_token("tg_abc_def"));
        for bad in ["", "abc", "tg_a b", "tg_a\r\nX: y", "tg_é"] {
            assert!(!is_token(bad), "{bad}");
        }
    }
}
