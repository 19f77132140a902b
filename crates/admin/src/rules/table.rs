//! The endpoints of rules.

use serde_json::json;

use super::read::{get, refresh};
use super::resource::RuleResource;
use super::{aliases, list};
use crate::access::NamespaceScope;
use crate::endpoint::{AdminEndpoint, EndpointHeader, HttpMethod, RequestBody, ResponseContent, Tag};
use crate::parameter::{CURSOR, DRY_RUN, LIMIT, Parameter, ParameterKind, parameter, text};
use crate::resource;
use crate::response::AdminResponse;

const ONE: &str = "/v1/rules/{rule_id}";
const EITHER: &[&str] = &["RuleInput", "ShortRuleInput"];

const FILTERS: &[Parameter] = &[
    text("endpoint", "That govern this path: /api/orders, or POST /api/orders. Other conditions are not looked at."),
    text("pattern", "With this endpoint pattern, spelled alike."),
    text("tier", "That ask for this tier, alone or among others."),
    text("client_key", "For this client."),
    text("name", "Of this name."),
    text("search", "With this text in the id, the name or the endpoint, in any case."),
    parameter("enabled", ParameterKind::Flag, "On or off."),
    parameter("source", ParameterKind::OneOf(&["database", "file", "envoy"]), "Where they come from."),
    LIMIT,
    CURSOR,
];

pub(crate) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        detail: "Of all namespaces that the token is for, unless one is named. Rules of files come first, then those of \
                 plans of the database, which are changed with their plan, then the others of the database in the order \
                 of namespace and id.",
        scope: NamespaceScope::Namespaces,
        query: FILTERS,
        responses: &[(200, ResponseContent::Json("RuleList"))],
        ..AdminEndpoint::get("/v1/rules", "listRules", Tag::Rules, "List rules", |call| {
            Box::pin(async move {
                let (rules, next) = list::list(call).await?;
                Ok(AdminResponse::json(&json!({ "rules": rules, "next_cursor": next })))
            })
        })
    },
    AdminEndpoint {
        detail: "In the full form, which is that of rules files, or in the short one. Without `rule_id` one is made up.",
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IdempotencyKey],
        body: RequestBody::Json(EITHER),
        responses: &[(201, ResponseContent::Created("Rule")), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(HttpMethod::Post, "/v1/rules", "createRule", Tag::Rules, "Make a rule", |call| {
            Box::pin(resource::create::<RuleResource>(call))
        })
    },
    AdminEndpoint {
        headers: &[EndpointHeader::IfNoneMatch],
        responses: &[(200, ResponseContent::Versioned("Rule"))],
        ..AdminEndpoint::get(ONE, "getRule", Tag::Rules, "Read a rule", |call| Box::pin(get(call)))
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatch, EndpointHeader::IfNoneMatch],
        body: RequestBody::Json(EITHER),
        responses: &[(200, ResponseContent::Versioned("Rule")), (201, ResponseContent::Created("Rule"))],
        ..AdminEndpoint::change(HttpMethod::Put, ONE, "replaceRule", Tag::Rules, "Replace a rule", |call| {
            Box::pin(resource::replace::<RuleResource>(call))
        })
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatch],
        body: RequestBody::Patch(&["RulePatch", "ShortRulePatch"]),
        responses: &[(200, ResponseContent::Versioned("Rule"))],
        ..AdminEndpoint::change(HttpMethod::Patch, ONE, "updateRule", Tag::Rules, "Change parts of a rule", |call| {
            Box::pin(resource::patch::<RuleResource>(call))
        })
    },
    AdminEndpoint {
        detail: "Its overrides and grants go with it. What was counted for it expires by itself.",
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatchOptional],
        responses: &[(204, ResponseContent::Nothing), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(HttpMethod::Delete, ONE, "deleteRule", Tag::Rules, "Remove a rule", |call| {
            Box::pin(resource::delete::<RuleResource>(call))
        })
    },
    AdminEndpoint {
        detail: "For webhooks and bridges, and after tables were changed by hand. Answers before it is done.",
        scope: NamespaceScope::Nothing,
        responses: &[(202, ResponseContent::Json("Refreshed"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/rules/refresh",
            "refreshRules",
            Tag::Rules,
            "Let all nodes read everything anew",
            |call| Box::pin(refresh(call)),
        )
    },
    AdminEndpoint {
        scope: NamespaceScope::Namespaces,
        query: FILTERS,
        responses: &[(200, ResponseContent::Json("ShortRuleList"))],
        ..AdminEndpoint::get("/rules", "listShortRules", Tag::Aliases, "List rules in their short form", |call| {
            Box::pin(aliases::all(call))
        })
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IdempotencyKey],
        body: RequestBody::Json(&["ShortRuleInput"]),
        responses: &[(201, ResponseContent::Created("ShortRule")), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(HttpMethod::Post, "/rules", "createShortRule", Tag::Aliases, "Make a rule", |call| {
            Box::pin(aliases::create(call))
        })
    },
    AdminEndpoint {
        headers: &[EndpointHeader::IfNoneMatch],
        responses: &[(200, ResponseContent::Versioned("ShortRule"))],
        ..AdminEndpoint::get("/rules/{rule_id}", "getShortRule", Tag::Aliases, "Read a rule", |call| {
            Box::pin(aliases::get(call))
        })
    },
    AdminEndpoint {
        detail: "What is not sent stays as it is.",
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatchOptional],
        body: RequestBody::Json(&["ShortRulePatch"]),
        responses: &[(200, ResponseContent::Versioned("ShortRule"))],
        ..AdminEndpoint::change(
            HttpMethod::Put,
            "/rules/{rule_id}",
            "updateShortRule",
            Tag::Aliases,
            "Change a rule",
            |call| Box::pin(aliases::update(call)),
        )
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatchOptional],
        responses: &[(200, ResponseContent::Json("Deleted"))],
        ..AdminEndpoint::change(
            HttpMethod::Delete,
            "/rules/{rule_id}",
            "deleteShortRule",
            Tag::Aliases,
            "Remove a rule",
            |call| Box::pin(aliases::remove(call)),
        )
    },
    AdminEndpoint {
        detail: "`rule_id` in the body says which. What is not sent stays as it is.",
        query: &[DRY_RUN],
        body: RequestBody::Json(&["ShortRuleUpsert"]),
        responses: &[(200, ResponseContent::Versioned("ShortRule"))],
        ..AdminEndpoint::change(
            HttpMethod::Put,
            "/admin/rate-rules",
            "upsertShortRule",
            Tag::Aliases,
            "Make or change a rule",
            |call| Box::pin(aliases::upsert(call)),
        )
    },
];
