//! Generations: every change makes one. Lists, differences, rollback and revert.

use serde_json::{Value, json};
use tollgate_control::{Change, Dependents, Edit, GenerationRecord};

use super::access::NamespaceScope;
use super::call::AdminCall;
use super::changes;
use super::endpoint::{AdminEndpoint, HttpMethod, ResponseContent, Tag};
use super::parameter::{CURSOR, DRY_RUN, LIMIT, Parameter, ParameterKind, parameter};
use super::problem::AdminProblem;
use super::resource;
use super::response::AdminResponse;

const FROM: Parameter = parameter("from", ParameterKind::Generation, "The generation to begin with.").required();
const TO: Parameter =
    parameter("to", ParameterKind::Generation, "The generation to end with; it may be the earlier one.").required();

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        detail: "The latest first.",
        scope: NamespaceScope::Namespaces,
        query: &[LIMIT, CURSOR],
        responses: &[(200, ResponseContent::Json("GenerationList"))],
        ..AdminEndpoint::get("/v1/generations", "listGenerations", Tag::Generations, "List generations", |call| {
            Box::pin(list(call))
        })
    },
    AdminEndpoint {
        scope: NamespaceScope::Namespaces,
        query: &[FROM, TO],
        responses: &[(200, ResponseContent::Json("Diff"))],
        ..AdminEndpoint::get(
            "/v1/generations/diff",
            "diffGenerations",
            Tag::Generations,
            "What differs between two",
            |call| Box::pin(diff(call)),
        )
    },
    AdminEndpoint {
        detail: "The rules and settings of one namespace, as a new generation: nothing is forgotten. Overrides, grants, \
                 switches and clients stay as they are, unless asked for; tokens and the mode always do. An override, \
                 grant or switch whose rule goes stays without effect until the rule returns.",
        query: &[
            parameter("overrides", ParameterKind::Flag, "Bring back overrides, grants and switches of rules as well."),
            parameter("clients", ParameterKind::Flag, "Bring back clients as well."),
            DRY_RUN,
        ],
        responses: &[(200, ResponseContent::Json("Changes"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/generations/{generation}/rollback",
            "rollBack",
            Tag::Generations,
            "Bring back what was in force in a generation",
            |call| Box::pin(roll_back(call)),
        )
    },
    AdminEndpoint {
        detail: "Puts one thing back to what it was before a change, as a new generation. 412 if something else has \
                 changed it since: revert that change first.",
        scope: NamespaceScope::Namespaces,
        query: &[DRY_RUN],
        responses: &[(200, ResponseContent::Json("Changes"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/audit/{number}/revert",
            "revertChange",
            Tag::Generations,
            "Revert one change, by its number in the audit",
            |call| Box::pin(revert(call)),
        )
    },
];

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "generations": [], "next_cursor": null })));
    }
    let listing = call.control()?.generations(call.namespaces().as_deref(), &call.page()?).await?;
    let generations: Value = listing.entries.iter().map(GenerationRecord::json).collect();
    Ok(AdminResponse::json(&json!({ "generations": generations, "next_cursor": call.cursor(listing.next.as_deref()) })))
}

async fn diff(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let [from, to] = ["from", "to"].map(|name| call.query().number(name).unwrap_or_default());
    let changes = match call.may_see() {
        true => call.control()?.diff(from, to).await?,
        false => Vec::new(),
    };
    let theirs: Vec<Change> = changes.into_iter().filter(|change| is_theirs(call, &change.namespace)).collect();
    Ok(AdminResponse::json(&json!({ "from": from, "to": to, "changes": changes::shown(&call.mask(), &theirs) })))
}

/// True if the call covers the namespace. Records without a namespace are for tokens that are for all.
fn is_theirs(call: &AdminCall<'_>, namespace: &str) -> bool {
    call.namespaces().is_none_or(|names| names.iter().any(|name| name == namespace))
}

async fn roll_back(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let Some(generation) = call.id().parse::<i64>().ok().filter(|generation| *generation >= 0) else {
        return Err(AdminProblem::not_found("such generation: a generation is a number"));
    };
    let edits = call.control()?.rollback_edits(generation).await?;
    let [overrides, clients] = ["overrides", "clients"].map(|name| call.query().flag(name).unwrap_or(false));
    let is_wanted = |edit: &Edit| match edit {
        Edit::Rule { namespace, .. } | Edit::Plan { namespace, .. } | Edit::Namespace { namespace, .. } => {
            namespace == call.namespace()
        }
        Edit::Override { namespace, .. } | Edit::Grant { namespace, .. } | Edit::RuleMode { namespace, .. } => {
            overrides && namespace == call.namespace()
        }
        Edit::Client { namespace, .. } => clients && namespace == call.namespace(),
    };
    let edits = edits.into_iter().filter(is_wanted).collect();
    let dependents = if overrides { Dependents::Delete } else { Dependents::Keep };
    let applied = resource::apply_with(call, edits, &format!("rollback to {generation}"), dependents).await?;
    Ok(changes::response(call, &applied))
}

async fn revert(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let number = call.id().parse::<i64>().ok().filter(|number| *number > 0);
    let number = number.ok_or_else(|| AdminProblem::not_found("such change: GET /v1/audit lists them by number"))?;
    let edit = call.control()?.revert_edit(number, |namespace| is_theirs(call, namespace)).await?;
    let applied = resource::apply(call, vec![edit], &format!("revert {number}")).await?;
    Ok(changes::response(call, &applied))
}
