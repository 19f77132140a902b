//! The same rules in their short form, at the paths that people know from textbooks.

use serde_json::{Map, Value, json};
use tollgate_control::Precondition;

use super::{Rule, in_file, list, show_file};
use crate::call::{Call, IfMatch};
use crate::merge::merge;
use crate::problem::AdminProblem;
use crate::response::AdminResponse;
use crate::thing::Thing;
use crate::{changes, json, short, thing};

pub(super) async fn all(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    let (rules, next) = list::list(call).await?;
    let mut body = json!({ "rules": rules.iter().map(short::narrow).collect::<Value>() });
    if let (Some(next), Some(members)) = (next, body.as_object_mut()) {
        members.insert("next_cursor".to_owned(), next.into());
    }
    Ok(AdminResponse::json(&body))
}

pub(super) async fn get(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    match in_file(call, call.id()) {
        Some(rule) => Ok(AdminResponse::json(&short::narrow(&call.mask().value(show_file(&rule))))),
        None => shown(call, call.id()).await,
    }
}

pub(super) async fn create(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    narrowed(call, thing::create::<Rule>(call).await?)
}

pub(super) async fn update(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    let wanted = call.asked.if_match.unwrap_or(IfMatch::Anything);
    let (body, tell) = short::widen(json::object(call.body)?)?;
    let applied = thing::merge_into::<Rule>(call, call.id(), body, wanted, "update").await.map_err(tell)?;
    narrowed(call, thing::answer::<Rule>(call, applied, call.id()).await?)
}

pub(super) async fn remove(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    let applied = thing::remove::<Rule>(call).await?;
    match call.dry_run() {
        true => Ok(changes::said(call, &applied)),
        false => Ok(AdminResponse::json(&json!({ "deleted": true }))),
    }
}

/// Makes the rule that the body names, or merges into it.
pub(super) async fn upsert(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    let (body, tell) = short::widen(json::object(call.body)?)?;
    let Some(id) = body.get("rule_id").and_then(Value::as_str).map(str::to_owned) else {
        return Err(AdminProblem::of_fault(
            "rule_id",
            "missing-field",
            "rule_id is missing",
            "name the rule that is meant",
        ));
    };
    let applied = match thing::merge_into::<Rule>(call, &id, body.clone(), IfMatch::Anything, "update").await {
        Err(problem) if problem.status == 404 => {
            let mut whole = json::object(call.body)?;
            short::complete(&mut whole);
            let mut fresh = Map::new();
            merge(&mut fresh, short::widen(whole)?.0);
            let (_, draft) = Rule::read(call, Some(&id), fresh).map_err(tell)?;
            thing::write::<Rule>(call, &id, Some(draft), Precondition::Absent, "create").await
        }
        other => other,
    };
    narrowed(call, thing::answer::<Rule>(call, applied.map_err(tell)?, &id).await?)
}

async fn shown(call: &Call<'_>, id: &str) -> Result<AdminResponse, AdminProblem> {
    let record = Rule::find(call.control()?, call.namespace(), id).await?;
    let full = call.mask().value(record.json());
    Ok(AdminResponse::json(&short::narrow(&full)).version(record.version))
}

/// What was answered in the full form, in the short one.
fn narrowed(call: &Call<'_>, said: AdminResponse) -> Result<AdminResponse, AdminProblem> {
    let full = said.body.as_ref().and_then(|(_, text)| serde_json::from_str::<Value>(text).ok());
    let Some(full) = full.filter(|_| !call.dry_run()) else { return Ok(said) };
    let AdminResponse { body, .. } = AdminResponse::json(&short::narrow(&full));
    let location = said.location.as_ref().and_then(|location| location.strip_prefix("/v1")).map(str::to_owned);
    Ok(AdminResponse { body, location, ..said })
}
