//! Overrides: other numbers of one rule for one client, for a time.

use serde_json::{Map, Value, json};
use tollgate_control::record::{OverrideDraft, OverrideRecord};
use tollgate_control::{Control, Edit, OverrideFilter, Precondition, RecordKind};

use super::access::NamespaceScope;
use super::body_fields::BodyFields;
use super::call::{AdminCall, IfMatch};
use super::changes;
use super::endpoint::{AdminEndpoint, EndpointHeader, HttpMethod, RequestBody, ResponseContent, Tag};
use super::file_entries::{self, MixedPage};
use super::parameter::{CURSOR, DRY_RUN, LIMIT, ParameterKind, parameter, text};
use super::problem::AdminProblem;
use super::resource::{self, Resource};
use super::response::AdminResponse;

const ONE: &str = "/v1/overrides/{override_id}";

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        detail: "Those of the rules file first, with `source` `file`: they are changed in the file, and their ids are their \
                 places in it. One without an end ends in 2553.",
        scope: NamespaceScope::Namespaces,
        query: &[
            text("client_key", "Of this client."),
            text("rule_id", "Of this rule."),
            parameter("active", ParameterKind::OneOf(&["true"]), "Only those that hold now."),
            LIMIT,
            CURSOR,
        ],
        responses: &[(200, ResponseContent::Json("OverrideList"))],
        ..AdminEndpoint::get("/v1/overrides", "listOverrides", Tag::Overrides, "List overrides", |call| {
            Box::pin(list(call))
        })
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IdempotencyKey],
        body: RequestBody::Json(&["OverrideInput"]),
        responses: &[(201, ResponseContent::Created("Override")), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/overrides",
            "createOverride",
            Tag::Overrides,
            "Make an override",
            |call| Box::pin(resource::create::<OverrideResource>(call)),
        )
    },
    AdminEndpoint {
        headers: &[EndpointHeader::IfNoneMatch],
        responses: &[(200, ResponseContent::Versioned("Override"))],
        ..AdminEndpoint::get(ONE, "getOverride", Tag::Overrides, "Read an override", |call| Box::pin(get(call)))
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatch, EndpointHeader::IfNoneMatch],
        body: RequestBody::Json(&["OverrideInput"]),
        responses: &[(200, ResponseContent::Versioned("Override")), (201, ResponseContent::Created("Override"))],
        ..AdminEndpoint::change(
            HttpMethod::Put,
            ONE,
            "replaceOverride",
            Tag::Overrides,
            "Replace an override",
            |call| Box::pin(resource::replace::<OverrideResource>(call)),
        )
    },
    AdminEndpoint {
        detail: "Sending another `valid_until` extends it.",
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatch],
        body: RequestBody::Patch(&["OverridePatch"]),
        responses: &[(200, ResponseContent::Versioned("Override"))],
        ..AdminEndpoint::change(
            HttpMethod::Patch,
            ONE,
            "updateOverride",
            Tag::Overrides,
            "Change parts of an override",
            |call| Box::pin(resource::patch::<OverrideResource>(call)),
        )
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatchOptional],
        responses: &[(204, ResponseContent::Nothing), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(
            HttpMethod::Delete,
            ONE,
            "deleteOverride",
            Tag::Overrides,
            "Remove an override",
            |call| Box::pin(resource::delete::<OverrideResource>(call)),
        )
    },
    AdminEndpoint {
        detail: "From now on it holds no more; what it was stays readable. One that has ended already stays as it is.",
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatchOptional],
        responses: &[(200, ResponseContent::Versioned("Override"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/overrides/{override_id}/end",
            "endOverride",
            Tag::Overrides,
            "End an override now",
            |call| Box::pin(end(call)),
        )
    },
];

/// Overrides, as a resource.
pub(super) struct OverrideResource;

const FIELDS: &[&str] = &[
    "override_id",
    "namespace",
    "client_key",
    "rule_id",
    "max_requests",
    "burst_size",
    "unlimited",
    "valid_from",
    "valid_until",
    "reason",
    "created_at",
    "updated_at",
    "version",
    "source",
    "location",
];

impl Resource for OverrideResource {
    const KIND: RecordKind = RecordKind::Override;
    const PATH: &'static str = "/v1/overrides";
    const PREFIX: &'static str = "ovr";
    type Record = OverrideRecord;
    type Draft = OverrideDraft;

    fn read(
        call: &AdminCall<'_>,
        id: Option<&str>,
        body: Map<String, Value>,
    ) -> Result<(Option<String>, OverrideDraft), AdminProblem> {
        let mut fields = BodyFields::of(body, FIELDS);
        fields.same("namespace", call.namespace());
        let named = match id {
            Some(id) => {
                fields.same("override_id", id);
                None
            }
            None => fields.text("override_id"),
        };
        let draft = OverrideDraft {
            client_key: fields.required_text("client_key", "whom it is for, such as \"user:42\""),
            rule_id: fields.required_text("rule_id", "the rule whose numbers it changes"),
            max_requests: fields.count("max_requests"),
            burst_size: fields.count("burst_size").unwrap_or(0),
            unlimited: fields.flag("unlimited").unwrap_or(false),
            valid_from: fields.time("valid_from"),
            valid_until: fields
                .required_time("valid_until", "an override ends: say when, such as 2026-12-01T00:00:00Z"),
            reason: fields.text("reason").unwrap_or_default(),
        };
        fields.rest().map(|_| (named, draft))
    }

    fn guard(call: &AdminCall<'_>, id: &str) -> Result<(), AdminProblem> {
        let of_file = file_entries::overriding(call, id);
        of_file.map_or(Ok(()), |found| Err(file_entries::refuse("This override", "override_in_file", &found)))
    }

    async fn find(control: &Control, namespace: &str, id: &str) -> tollgate_control::Result<OverrideRecord> {
        control.overriding(namespace, id).await
    }

    fn json(record: &OverrideRecord) -> Value {
        record.json()
    }

    fn version(record: &OverrideRecord) -> i64 {
        record.version
    }

    fn writable(record: &OverrideRecord) -> Map<String, Value> {
        let OverrideDraft { client_key, rule_id, max_requests, burst_size, unlimited, valid_from, valid_until, reason } =
            &record.draft;
        let body = json!({
            "client_key": client_key,
            "rule_id": rule_id,
            "max_requests": max_requests,
            "burst_size": burst_size,
            "unlimited": unlimited,
            "valid_from": valid_from.map(|from| from.to_string()),
            "valid_until": valid_until.to_string(),
            "reason": reason,
        });
        body.as_object().cloned().unwrap_or_default()
    }

    fn edit(namespace: &str, id: &str, to: Option<OverrideDraft>, expect: Precondition) -> Edit {
        Edit::Override { namespace: namespace.to_owned(), override_id: id.to_owned(), to, expect }
    }
}

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "overrides": [], "next_cursor": null })));
    }
    let filter = OverrideFilter {
        namespaces: call.namespaces(),
        client_key: call.query().owned("client_key"),
        rule_id: call.query().owned("rule_id"),
        holds_at: call.query().flag("active").map(|_| call.state.now()),
    };
    let mut page = MixedPage::of(&call.page()?);
    if let Some(file) = (call.state.node.rules_file)() {
        page.add_overrides(&file, &filter);
    }
    let rest = match page.rest() {
        Some(rest) => {
            let listing = call.control()?.overrides(&filter, &rest).await?;
            Some((listing.entries.iter().map(OverrideResource::json).collect(), listing.next))
        }
        None => None,
    };
    let (overrides, next) = page.end(rest);
    let body = json!({ "overrides": overrides, "next_cursor": call.cursor(next.as_deref()) });
    Ok(AdminResponse::json(&call.mask().value(body)))
}

async fn get(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    match file_entries::overriding(call, call.id()) {
        Some(found) => Ok(AdminResponse::json(&call.mask().value(found))),
        None => resource::get::<OverrideResource>(call).await,
    }
}

async fn end(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let now = call.state.now();
    OverrideResource::guard(call, call.id())?;
    let record = call.control()?.overriding(call.namespace(), call.id()).await?;
    let draft = OverrideDraft { valid_until: record.draft.valid_until.min(now), ..record.draft };
    let version = if let Some(IfMatch::Version(version)) = call.request.if_match { version } else { record.version };
    let expect = Precondition::Version(version);
    let applied = resource::write::<OverrideResource>(call, call.id(), Some(draft), expect, "end").await?;
    match call.dry_run() {
        true => Ok(changes::response(call, &applied)),
        false => resource::get::<OverrideResource>(call).await,
    }
}
