//! Rules in the short form, at the paths of textbooks.

use serde_json::{Map, Value, json};
use tollgate_control::Precondition;

use super::file_rules::{in_file, show_file};
use super::resource::RuleResource;
use super::{list, plan_rules};
use crate::call::{AdminCall, IfMatch};
use crate::merge::merge;
use crate::problem::AdminProblem;
use crate::resource::Resource;
use crate::response::AdminResponse;
use crate::{changes, json, resource, short_form};

pub(super) async fn all(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (rules, next) = list::list(call).await?;
    let mut body = json!({ "rules": rules.iter().map(short_form::to_short_form).collect::<Value>() });
    if let (Some(next), Some(members)) = (next, body.as_object_mut()) {
        members.insert("next_cursor".to_owned(), next.into());
    }
    Ok(AdminResponse::json(&body))
}

pub(super) async fn get(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    match in_file(call, call.id()) {
        Some(rule) => Ok(AdminResponse::json(&short_form::to_short_form(&call.mask().value(show_file(&rule))))),
        None => shown(call, call.id()).await,
    }
}

pub(super) async fn create(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    convert_to_short(call, resource::create::<RuleResource>(call).await?)
}

pub(super) async fn update(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let wanted = call.request.if_match.unwrap_or(IfMatch::Anything);
    let (body, tell) = short_form::to_full_form(json::object(call.body)?)?;
    let applied = resource::merge_into::<RuleResource>(call, call.id(), body, wanted, "update").await.map_err(tell)?;
    convert_to_short(call, resource::answer::<RuleResource>(call, applied, call.id()).await?)
}

pub(super) async fn remove(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let applied = resource::remove::<RuleResource>(call).await?;
    match call.dry_run() {
        true => Ok(changes::response(call, &applied)),
        false => Ok(AdminResponse::json(&json!({ "deleted": true }))),
    }
}

/// Creates the rule that the body names, or merges into it.
pub(super) async fn upsert(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (body, tell) = short_form::to_full_form(json::object(call.body)?)?;
    let Some(id) = body.get("rule_id").and_then(Value::as_str).map(str::to_owned) else {
        return Err(AdminProblem::of_fault(
            "rule_id",
            "missing-field",
            "rule_id is missing",
            "name the rule that is meant",
        ));
    };
    let applied = match resource::merge_into::<RuleResource>(call, &id, body.clone(), IfMatch::Anything, "update").await
    {
        Err(problem) if problem.status == 404 => {
            let mut whole = json::object(call.body)?;
            short_form::complete(&mut whole);
            let mut fresh = Map::new();
            merge(&mut fresh, short_form::to_full_form(whole)?.0);
            let (_, draft) = RuleResource::read(call, Some(&id), fresh).map_err(tell)?;
            resource::write::<RuleResource>(call, &id, Some(draft), Precondition::Absent, "create").await
        }
        other => other,
    };
    convert_to_short(call, resource::answer::<RuleResource>(call, applied.map_err(tell)?, &id).await?)
}

async fn shown(call: &AdminCall<'_>, id: &str) -> Result<AdminResponse, AdminProblem> {
    if let Some(rule) = plan_rules::find(call, id).await? {
        return Ok(AdminResponse::json(&short_form::to_short_form(&call.mask().value(plan_rules::shown(&rule)))));
    }
    let record = RuleResource::find(call.control()?, call.namespace(), id).await?;
    let full = call.mask().value(RuleResource::shown(record.json()));
    Ok(AdminResponse::json(&short_form::to_short_form(&full)).version(record.version))
}

/// Converts a response from the full form to the short one.
fn convert_to_short(call: &AdminCall<'_>, response: AdminResponse) -> Result<AdminResponse, AdminProblem> {
    let full = response.body.as_ref().and_then(|(_, text)| serde_json::from_str::<Value>(text).ok());
    let Some(full) = full.filter(|_| !call.dry_run()) else { return Ok(response) };
    let AdminResponse { body, .. } = AdminResponse::json(&short_form::to_short_form(&full));
    let location = response.location.as_ref().and_then(|location| location.strip_prefix("/v1")).map(str::to_owned);
    Ok(AdminResponse { body, location, ..response })
}
