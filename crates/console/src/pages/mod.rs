//! The pages, and which one answers a path.

mod access;
mod audit;
mod client;
mod clients;
mod data_api;
mod decision;
mod explain;
mod explain_request;
mod help;
mod mode;
mod nodes;
mod overrides;
mod overview;
mod penalties;
mod preview;
mod rule;
mod rule_edit;
mod rule_text;
mod rules;
mod search;
mod sign_in;
mod system;
mod traffic;
mod webhooks;
mod what_if;

use maud::{Markup, html};

use crate::api::CallProblem;
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parts::{heading, trouble};
use crate::response::{PageResponse, problem_title};

/// What a page is made of, or why it cannot be shown.
pub(crate) type PageResult = Result<PageResponse, CallProblem>;

/// Answers a request for a page.
pub(crate) async fn respond(call: &PageCall<'_>) -> PageResponse {
    if call.path == sign_in::PATH {
        return if call.is_change { sign_in::sign_in(call).await } else { sign_in::show(call) };
    }
    let operator = match call.operator().await {
        Ok(operator) => operator,
        Err(problem) if problem.status == 401 => return sign_in::required(call, &problem),
        Err(problem) => return PageResponse::problem(&problem),
    };
    if call.is_change && !call.is_own_form() {
        return PageResponse::bad_form();
    }
    let page = if call.is_change { change(call, &operator).await } else { read(call, &operator).await };
    match page {
        Ok(page) => page,
        Err(problem) if problem.status == 401 => sign_in::required(call, &problem),
        Err(problem) => problem_page(call, &operator, &problem),
    }
}

/// A page that cannot be shown, or a change that was refused: what is wrong, inside the frame.
fn problem_page(call: &PageCall<'_>, operator: &Operator<'_>, problem: &CallProblem) -> PageResponse {
    let title = problem_title(problem);
    let body = html! {
        (heading(title, html! {}, html! {}))
        (trouble(problem))
        @if call.is_change { p { "Nothing was changed. Go back in the browser: the form still has what you typed." } }
    };
    let page = Framed { title, section: NavigationEntry::None, live: None, done: "", body };
    PageResponse::of(page.markup(operator)).status(problem.status)
}

async fn read(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    match call.path {
        "/" | "/console" => overview::show(call, operator).await,
        "/console/rules" => rules::show(call, operator).await,
        "/console/rule" => rule::show(call, operator).await,
        "/console/rule/edit" => rule_edit::show(call, operator).await,
        "/console/clients" => clients::show(call, operator).await,
        "/console/client" => client::show(call, operator).await,
        "/console/explain" => explain::show(call, operator).await,
        "/console/what-if" => what_if::show(call, operator).await,
        "/console/decision" => decision::show(call, operator).await,
        "/console/audit" => audit::show(call, operator).await,
        "/console/generation" => audit::generation(call, operator).await,
        "/console/access" => access::show(call, operator).await,
        nodes::PATH => nodes::show(call, operator).await,
        "/console/system" => system::show(call, operator).await,
        "/console/search" => search::show(call, operator).await,
        "/console/data-api" => data_api::show(operator),
        "/console/help" => Ok(help::show(operator)),
        "/console/form-token" => Ok(PageResponse::text(operator.form_token)),
        _ => Ok(PageResponse::not_found()),
    }
}

async fn change(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    match call.path {
        "/console/sign-out" => Ok(sign_in::sign_out(call)),
        "/console/mode" => mode::set(call, operator).await,
        "/console/rule/check" => rule_edit::check(call, operator).await,
        "/console/rule/review" => rule_edit::review(call, operator).await,
        "/console/rule/save" => rule_edit::save(call, operator).await,
        "/console/rule/mode" => rule::set_mode(call, operator).await,
        "/console/rule/delete" => rule::delete(call, operator).await,
        "/console/override" => overrides::create(call, operator).await,
        "/console/override/end" => overrides::end(call, operator).await,
        "/console/counters/reset" => traffic::reset(call, operator).await,
        "/console/webhook" => webhooks::create(call, operator).await,
        "/console/webhook/test" => webhooks::test(call, operator).await,
        "/console/webhook/delete" => webhooks::delete(call, operator).await,
        "/console/data-api/try" => data_api::try_operation(call, operator).await,
        "/console/penalty/lift" => penalties::lift(call, operator).await,
        "/console/client/save" => client::save(call, operator).await,
        "/console/audit/revert" => audit::revert(call, operator).await,
        "/console/generation/rollback" => audit::roll_back(call, operator).await,
        "/console/access/token" => access::create_token(call, operator).await,
        "/console/access/token/revoke" => access::revoke_token(call, operator).await,
        "/console/access/key" => access::create_key(call, operator).await,
        "/console/access/key/revoke" => access::revoke_key(call, operator).await,
        _ => Ok(PageResponse::not_found()),
    }
}

/// The parts of a page that move, by the ids of their elements; none for a caller that is not signed in.
pub(crate) async fn live(call: &PageCall<'_>) -> Option<Vec<(&'static str, Markup)>> {
    let operator = call.operator().await.ok()?;
    match call.query.get("page") {
        "overview" => Some(overview::live(call, &operator).await),
        "nodes" => Some(nodes::live(call, &operator).await),
        "rule" => Some(rule::live(call, &operator).await),
        _ => None,
    }
}

/// A page in the frame.
fn framed(operator: &Operator<'_>, framed: Framed<'_>) -> PageResult {
    Ok(PageResponse::of(framed.markup(operator)))
}
