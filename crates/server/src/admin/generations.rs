//! Generations: every change makes one.

use serde_json::{Value, json};
use tollgate_control::{Change, Edit, GenerationRecord};

use super::call::Call;
use super::changes;
use super::endpoint::{CURSOR, Content, DRY_RUN, Endpoint, LIMIT, Method, Parameter, Reach, Tag, Takes, parameter};
use super::problem::Problem;
use super::said::Said;
use super::thing;

const FROM: Parameter = parameter("from", Takes::Generation, "The generation to begin with.").needed();
const TO: Parameter =
    parameter("to", Takes::Generation, "The generation to end with; it may be the earlier one.").needed();

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        detail: "The latest first.",
        reach: Reach::Namespaces,
        query: &[LIMIT, CURSOR],
        answers: &[(200, Content::Json("GenerationList"))],
        ..Endpoint::get("/v1/generations", "listGenerations", Tag::Generations, "List generations", |call| {
            Box::pin(list(call))
        })
    },
    Endpoint {
        reach: Reach::Namespaces,
        query: &[FROM, TO],
        answers: &[(200, Content::Json("Diff"))],
        ..Endpoint::get(
            "/v1/generations/diff",
            "diffGenerations",
            Tag::Generations,
            "What differs between two",
            |call| Box::pin(diff(call)),
        )
    },
    Endpoint {
        detail: "As a new generation: nothing is forgotten. With `namespace`, or a token that is for some, only there. \
                 Tokens and the mode stay as they are.",
        reach: Reach::Namespaces,
        query: &[DRY_RUN],
        answers: &[(200, Content::Json("Changes"))],
        ..Endpoint::change(
            Method::Post,
            "/v1/generations/{generation}/rollback",
            "rollBack",
            Tag::Generations,
            "Bring back what was in force in a generation",
            |call| Box::pin(roll_back(call)),
        )
    },
];

async fn list(call: &Call<'_>) -> Result<Said, Problem> {
    if !call.may_see() {
        return Ok(Said::json(&json!({ "generations": [], "next_cursor": null })));
    }
    let listing = call.control()?.generations(call.namespaces().as_deref(), &call.page()?).await?;
    let generations: Value = listing.entries.iter().map(GenerationRecord::json).collect();
    Ok(Said::json(&json!({ "generations": generations, "next_cursor": call.cursor(listing.next.as_deref()) })))
}

async fn diff(call: &Call<'_>) -> Result<Said, Problem> {
    let [from, to] = ["from", "to"].map(|name| call.query().number(name).unwrap_or_default());
    let changes = match call.may_see() {
        true => call.control()?.diff(from, to).await?,
        false => Vec::new(),
    };
    let theirs: Vec<Change> = changes.into_iter().filter(|change| is_theirs(call, &change.namespace)).collect();
    Ok(Said::json(&json!({ "from": from, "to": to, "changes": changes::shown(&call.mask(), &theirs) })))
}

/// True if a namespace is among those the call is about. What belongs to none is for those who may see all.
fn is_theirs(call: &Call<'_>, namespace: &str) -> bool {
    call.namespaces().is_none_or(|names| names.iter().any(|name| name == namespace))
}

async fn roll_back(call: &Call<'_>) -> Result<Said, Problem> {
    let Some(generation) = call.id().parse::<i64>().ok().filter(|generation| *generation >= 0) else {
        return Err(Problem::not_found("such generation: a generation is a number"));
    };
    let edits = call.control()?.way_back(generation).await?;
    let namespace = |edit: &Edit| match edit {
        Edit::Rule { namespace, .. }
        | Edit::Override { namespace, .. }
        | Edit::Client { namespace, .. }
        | Edit::Namespace { namespace, .. } => namespace.clone(),
    };
    let edits = edits.into_iter().filter(|edit| is_theirs(call, &namespace(edit))).collect();
    let applied = thing::apply(call, edits, &format!("rollback to {generation}")).await?;
    Ok(changes::said(call, &applied))
}
