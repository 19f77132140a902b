//! What can be done with rules.

use serde_json::json;
use tollgate_control::record::Role;

use super::{Rule, aliases, get, list, refresh};
use crate::endpoint::{
    Access, Body, CURSOR, Content, DRY_RUN, Endpoint, Header, LIMIT, Method, NamespaceScope, Parameter, Tag, Takes,
    parameter, text,
};
use crate::response::AdminResponse;
use crate::{exchange, thing};

const ONE: &str = "/v1/rules/{rule_id}";
const EITHER: &[&str] = &["RuleInput", "ShortRuleInput"];

const FILTERS: &[Parameter] = &[
    text("endpoint", "That govern this path: /api/orders, or POST /api/orders. Other conditions are not looked at."),
    text("pattern", "With this endpoint pattern, spelled alike."),
    text("tier", "That ask for this tier, alone or among others."),
    text("client_key", "For this client."),
    text("name", "Of this name."),
    parameter("enabled", Takes::Flag, "On or off."),
    parameter("source", Takes::OneOf(&["database", "file", "envoy"]), "Where they come from."),
    LIMIT,
    CURSOR,
];

pub(crate) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        detail: "Of all namespaces that the token is for, unless one is named. Rules of files come first, then those of \
                 the database in the order of namespace and id.",
        reach: NamespaceScope::Namespaces,
        query: FILTERS,
        answers: &[(200, Content::Json("RuleList"))],
        ..Endpoint::get("/v1/rules", "listRules", Tag::Rules, "List rules", |call| {
            Box::pin(async move {
                let (rules, next) = list::list(call).await?;
                Ok(AdminResponse::json(&json!({ "rules": rules, "next_cursor": next })))
            })
        })
    },
    Endpoint {
        detail: "In the full form, which is that of rules files, or in the short one. Without `rule_id` one is made up.",
        query: &[DRY_RUN],
        headers: &[Header::IdempotencyKey],
        body: Body::Json(EITHER),
        answers: &[(201, Content::Created("Rule")), (200, Content::Json("DryRun"))],
        ..Endpoint::change(Method::Post, "/v1/rules", "createRule", Tag::Rules, "Make a rule", |call| {
            Box::pin(thing::create::<Rule>(call))
        })
    },
    Endpoint {
        headers: &[Header::IfNoneMatch],
        answers: &[(200, Content::Versioned("Rule"))],
        ..Endpoint::get(ONE, "getRule", Tag::Rules, "Read a rule", |call| Box::pin(get(call)))
    },
    Endpoint {
        query: &[DRY_RUN],
        headers: &[Header::IfMatch, Header::IfNoneMatch],
        body: Body::Json(EITHER),
        answers: &[(200, Content::Versioned("Rule")), (201, Content::Created("Rule"))],
        ..Endpoint::change(Method::Put, ONE, "replaceRule", Tag::Rules, "Replace a rule", |call| {
            Box::pin(thing::replace::<Rule>(call))
        })
    },
    Endpoint {
        query: &[DRY_RUN],
        headers: &[Header::IfMatch],
        body: Body::Patch(&["RulePatch", "ShortRulePatch"]),
        answers: &[(200, Content::Versioned("Rule"))],
        ..Endpoint::change(Method::Patch, ONE, "updateRule", Tag::Rules, "Change parts of a rule", |call| {
            Box::pin(thing::patch::<Rule>(call))
        })
    },
    Endpoint {
        detail: "Its overrides go with it. What was counted for it expires by itself.",
        query: &[DRY_RUN],
        headers: &[Header::IfMatchOptional],
        answers: &[(204, Content::Nothing), (200, Content::Json("DryRun"))],
        ..Endpoint::change(Method::Delete, ONE, "deleteRule", Tag::Rules, "Remove a rule", |call| {
            Box::pin(thing::delete::<Rule>(call))
        })
    },
    Endpoint {
        detail: "For webhooks and bridges, and after tables were changed by hand. Answers before it is done.",
        reach: NamespaceScope::Nothing,
        answers: &[(202, Content::Json("Refreshed"))],
        ..Endpoint::change(
            Method::Post,
            "/v1/rules/refresh",
            "refreshRules",
            Tag::Rules,
            "Let all nodes read everything anew",
            |call| Box::pin(refresh(call)),
        )
    },
    Endpoint {
        detail: "Rules, clients and overrides of the database, as a rules file. It holds client keys, so it is for operators.",
        access: Access::Needs(Role::Operator),
        answers: &[(200, Content::Text("application/yaml"))],
        ..Endpoint::get("/v1/rules/export", "exportRules", Tag::Rules, "Export a namespace as a rules file", |call| {
            Box::pin(exchange::export(call))
        })
    },
    Endpoint {
        detail: "Everything in the file is made or replaced, as one generation; what the file does not have stays, unless \
                 `prune` says otherwise.",
        query: &[DRY_RUN, parameter("prune", Takes::Flag, "Also remove rules that the file does not have.")],
        body: Body::Yaml,
        answers: &[(200, Content::Json("Changes"))],
        ..Endpoint::change(Method::Post, "/v1/rules/import", "importRules", Tag::Rules, "Import a rules file", |call| {
            Box::pin(exchange::import(call))
        })
    },
    Endpoint {
        reach: NamespaceScope::Namespaces,
        query: FILTERS,
        answers: &[(200, Content::Json("ShortRuleList"))],
        ..Endpoint::get("/rules", "listShortRules", Tag::Aliases, "List rules in their short form", |call| {
            Box::pin(aliases::all(call))
        })
    },
    Endpoint {
        query: &[DRY_RUN],
        headers: &[Header::IdempotencyKey],
        body: Body::Json(&["ShortRuleInput"]),
        answers: &[(201, Content::Created("ShortRule")), (200, Content::Json("DryRun"))],
        ..Endpoint::change(Method::Post, "/rules", "createShortRule", Tag::Aliases, "Make a rule", |call| {
            Box::pin(aliases::create(call))
        })
    },
    Endpoint {
        headers: &[Header::IfNoneMatch],
        answers: &[(200, Content::Versioned("ShortRule"))],
        ..Endpoint::get("/rules/{rule_id}", "getShortRule", Tag::Aliases, "Read a rule", |call| {
            Box::pin(aliases::get(call))
        })
    },
    Endpoint {
        detail: "What is not sent stays as it is.",
        query: &[DRY_RUN],
        headers: &[Header::IfMatchOptional],
        body: Body::Json(&["ShortRulePatch"]),
        answers: &[(200, Content::Versioned("ShortRule"))],
        ..Endpoint::change(Method::Put, "/rules/{rule_id}", "updateShortRule", Tag::Aliases, "Change a rule", |call| {
            Box::pin(aliases::update(call))
        })
    },
    Endpoint {
        query: &[DRY_RUN],
        headers: &[Header::IfMatchOptional],
        answers: &[(200, Content::Json("Deleted"))],
        ..Endpoint::change(
            Method::Delete,
            "/rules/{rule_id}",
            "deleteShortRule",
            Tag::Aliases,
            "Remove a rule",
            |call| Box::pin(aliases::remove(call)),
        )
    },
    Endpoint {
        detail: "`rule_id` in the body says which. What is not sent stays as it is.",
        query: &[DRY_RUN],
        body: Body::Json(&["ShortRuleUpsert"]),
        answers: &[(200, Content::Versioned("ShortRule"))],
        ..Endpoint::change(
            Method::Put,
            "/admin/rate-rules",
            "upsertShortRule",
            Tag::Aliases,
            "Make or change a rule",
            |call| Box::pin(aliases::upsert(call)),
        )
    },
];
