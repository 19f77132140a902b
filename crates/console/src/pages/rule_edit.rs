//! Making and changing rules: a text, its mistakes while it is typed, what it would change and would have refused, then
//! the change.

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

use super::rule_text::{only_rule, text_of};
use super::{PageResult, framed, preview};
use crate::api::{CallProblem, OperatorCall};
use crate::json::{list, member, number, text};
use crate::layout::{Framed, NavigationEntry, form_token};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::{encoded, url};
use crate::parts::{badge, changes, faults, heading, rule_link, rule_url, trouble};
use crate::response::PageResponse;

/// What the form holds: the text, and the rule that it is about.
struct RuleForm<'a> {
    source: &'a str,
    namespace: &'a str,
    /// The rule that is edited; empty for a new one.
    id: &'a str,
    /// Its version when it was read.
    version: &'a str,
}

impl<'a> RuleForm<'a> {
    fn of(call: &'a PageCall<'_>) -> RuleForm<'a> {
        let form = &call.form;
        RuleForm {
            source: form.raw("source"),
            namespace: form.get("namespace"),
            id: form.get("id"),
            version: form.get("version"),
        }
    }

    fn hidden(&self) -> Markup {
        html! {
            input type="hidden" name="namespace" value=(self.namespace);
            input type="hidden" name="id" value=(self.id);
            input type="hidden" name="version" value=(self.version);
        }
    }
}

/// The editor.
pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let namespace = call.query.given("namespace").unwrap_or(operator.home());
    let id = call.query.get("id");
    let rule = match id {
        "" => Value::Null,
        id => operator.api.get(&url(&format!("/v1/rules/{}", encoded(id)), &[("namespace", namespace)])).await?,
    };
    let (source, version) =
        (text_of(&rule), number(&rule, "version").map(|version| version.to_string()).unwrap_or_default());
    let form = RuleForm { source: &source, namespace, id, version: &version };
    let body = editor(operator, &form, html! { p class="dim" { "Mistakes show here while you type." } });
    framed(operator, Framed { title: "Edit a rule", section: NavigationEntry::Rules, live: None, done: "", body })
}

fn editor(operator: &Operator<'_>, form: &RuleForm<'_>, checked: Markup) -> Markup {
    let title = if form.id.is_empty() { "New rule".to_owned() } else { format!("Edit {}", form.id) };
    let about = html! { "In the namespace " code { (form.namespace) } ", as it would stand in a rules file." };
    html! {
        (heading(&title, about, html! {}))
        form method="post" action="/console/rule/review" class="editor" data-check="/console/rule/check" {
            (form_token(operator))
            (form.hidden())
            // The newline is dropped by browsers, and keeps one that the text begins with.
            textarea name="source" aria-label="Rule" spellcheck="false" autocomplete="off" rows="14" aria-describedby="checked" { (PreEscaped("\n")) (form.source) }
            aside {
                div id="checked" aria-live="polite" { (checked) }
                details open {
                    summary { "Fields of a rule" }
                    dl class="fields" {
                        dt { code { "match" } } dd { "Which requests: endpoint, tier, any attribute; lists and patterns." }
                        dt { code { "key_by" } } dd { "What is counted apart: user_id, api_key, ip, global, or several." }
                        dt { code { "limit" } } dd { "requests, window, algorithm (token_bucket, sliding_window, fixed_window, …), burst." }
                        dt { code { "mode" } } dd { "enforce, or shadow: counted, never refused." }
                        dt { code { "on_fail" } } dd { "While the store is away: local, allow or deny." }
                    }
                }
            }
            div class="actions" {
                button class="button primary" { "Review the change" }
                button class="button" formaction="/console/rule/check" { "Check" }
                a class="button" href=(if form.id.is_empty() { "/console/rules".to_owned() } else { rule_url(form.namespace, form.id) }) { "Cancel" }
            }
        }
    }
}

/// The mistakes of the text: a fragment for the script, the whole editor without it.
pub(super) async fn check(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let form = RuleForm::of(call);
    let checked = match dry_run(operator, &form).await {
        Ok(outcome) => html! { p class="note good" { "No mistakes. " (counted(&outcome)) } (warnings(&outcome)) },
        Err(problem) if problem.faults.is_empty() => trouble(&problem),
        Err(problem) => html! { div class="note bad" { (faults(&problem)) } },
    };
    if call.form.get("part") == "list" {
        return Ok(PageResponse::of(checked));
    }
    let body = editor(operator, &form, checked);
    framed(operator, Framed { title: "Edit a rule", section: NavigationEntry::Rules, live: None, done: "", body })
}

/// What saving would change, and what the rule would have done in the last hour.
pub(super) async fn review(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let form = RuleForm::of(call);
    let outcome = match dry_run(operator, &form).await {
        Ok(outcome) => outcome,
        Err(problem) => {
            let body = editor(operator, &form, trouble(&problem));
            let page = framed(
                operator,
                Framed { title: "Edit a rule", section: NavigationEntry::Rules, live: None, done: "", body },
            );
            return page.map(|page| page.status(problem.status));
        }
    };
    let preview = preview::of_changes(operator, form.namespace, list(&outcome, "changes")).await;
    let about = html! { "Nothing is written yet." };
    let body = html! {
        (heading("Review the change", about, html! {}))
        (warnings(&outcome))
        @for change in list(&outcome, "changes") {
            section class="card" {
                h2 { (text(change, "kind")) " " (text(change, "id")) " " @if member(change, "before").is_null() { (badge("new")) } }
                (changes(change))
            }
        }
        @if list(&outcome, "changes").is_empty() { p class="note" { "The rule is already so: there is nothing to save." } }
        (preview)
        form method="post" action="/console/rule/save" {
            (form_token(operator))
            (form.hidden())
            textarea name="source" hidden readonly aria-label="Rule" { (PreEscaped("\n")) (form.source) }
            div class="actions" {
                button class="button primary" { "Save" }
                button class="button" formaction="/console/rule/check" { "Back to the text" }
            }
        }
    };
    framed(operator, Framed { title: "Review", section: NavigationEntry::Rules, live: None, done: "", body })
}

/// Writes the change.
pub(super) async fn save(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let form = RuleForm::of(call);
    match write(operator, &form).await {
        Ok(id) if id.is_empty() => Ok(PageResponse::redirect("/console/rules?done=rule-saved")),
        Ok(id) => Ok(PageResponse::redirect(url(
            "/console/rule",
            &[("namespace", form.namespace), ("id", &id), ("done", "rule-saved")],
        ))),
        Err(problem) => {
            let body = html! {
                (editor(operator, &form, trouble(&problem)))
                @if problem.status == 412 { p { "See what it is now: " (rule_link(form.namespace, form.id)) } }
            };
            let page = framed(
                operator,
                Framed { title: "Edit a rule", section: NavigationEntry::Rules, live: None, done: "", body },
            );
            page.map(|page| page.status(problem.status))
        }
    }
}

/// Saves one rule with the version that was read, anything else as an import. Returns the rule's id.
async fn write(operator: &Operator<'_>, form: &RuleForm<'_>) -> Result<String, CallProblem> {
    let in_namespace = [("namespace", form.namespace)];
    let Some((id, mut document)) = only_rule(form.source) else {
        return import(operator, form, false).await.map(|_| String::new());
    };
    let target = url(&format!("/v1/rules/{}", encoded(&id)), &in_namespace);
    if form.id.is_empty() || form.id != id {
        document.insert("rule_id".to_owned(), id.as_str().into());
        operator.api.send("POST", &url("/v1/rules", &in_namespace), &Value::Object(document)).await?;
        return Ok(id);
    }
    let now = operator.api.get(&target).await?;
    for kept in ["name", "enabled"] {
        if let Some(value) = now.get(kept).filter(|value| !value.is_null()) {
            document.insert(kept.to_owned(), value.clone());
        }
    }
    let tag = format!("\"{}\"", form.version);
    operator.api.send_if("PUT", &target, &Value::Object(document), &tag).await?;
    Ok(id)
}

async fn dry_run(operator: &Operator<'_>, form: &RuleForm<'_>) -> Result<Value, CallProblem> {
    let outcome = import(operator, form, true).await?;
    let is_taken = |change: &&Value| {
        let is_own = text(change, "id") == form.id && !form.id.is_empty();
        text(change, "kind") == "rule" && !member(change, "before").is_null() && !is_own
    };
    match list(&outcome, "changes").iter().find(is_taken).filter(|_| only_rule(form.source).is_some()) {
        Some(change) => {
            let detail =
                format!("There is a rule {} already: choose another name, or edit that one.", text(change, "id"));
            Err(CallProblem::new(409, "conflict", &detail))
        }
        None => Ok(outcome),
    }
}

async fn import(operator: &Operator<'_>, form: &RuleForm<'_>, dry_run: bool) -> Result<Value, CallProblem> {
    let dry_run = if dry_run { "true" } else { "" };
    let target = url("/v1/rules/import", &[("namespace", form.namespace), ("dry_run", dry_run)]);
    let call = OperatorCall {
        method: "POST",
        target: &target,
        body: form.source.as_bytes(),
        media: "application/yaml",
        ..OperatorCall::default()
    };
    operator.api.call(call).await.map(|response| response.json)
}

fn counted(outcome: &Value) -> String {
    match list(outcome, "changes").len() {
        0 => "Nothing would change.".to_owned(),
        1 => "One change.".to_owned(),
        many => format!("{many} changes, in one generation."),
    }
}

fn warnings(outcome: &Value) -> Markup {
    html! {
        @for warning in list(outcome, "warnings") {
            div class="note warn" {
                p { strong { (text(warning, "message")) } @if !text(warning, "help").is_empty() { " " (text(warning, "help")) } }
            }
        }
    }
}
