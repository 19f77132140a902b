//! Overrides: other numbers of one rule for one client, for a time.

use serde_json::{Map, Value, json};
use tollgate_control::record::{OverrideDraft, OverrideRecord};
use tollgate_control::{Control, Edit, OverrideFilter, Precondition, RecordKind};

use super::call::{Call, IfMatch};
use super::changes;
use super::endpoint::{
    Body, CURSOR, Content, DRY_RUN, Endpoint, Header, LIMIT, Method, NamespaceScope, Tag, Takes, parameter, text,
};
use super::fields::Fields;
use super::problem::AdminProblem;
use super::response::AdminResponse;
use super::thing::{self, Thing};

const ONE: &str = "/v1/overrides/{override_id}";

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        reach: NamespaceScope::Namespaces,
        query: &[
            text("client_key", "Of this client."),
            text("rule_id", "Of this rule."),
            parameter("active", Takes::OneOf(&["true"]), "Only those that hold now."),
            LIMIT,
            CURSOR,
        ],
        answers: &[(200, Content::Json("OverrideList"))],
        ..Endpoint::get("/v1/overrides", "listOverrides", Tag::Overrides, "List overrides", |call| Box::pin(list(call)))
    },
    Endpoint {
        query: &[DRY_RUN],
        headers: &[Header::IdempotencyKey],
        body: Body::Json(&["OverrideInput"]),
        answers: &[(201, Content::Created("Override")), (200, Content::Json("DryRun"))],
        ..Endpoint::change(
            Method::Post,
            "/v1/overrides",
            "createOverride",
            Tag::Overrides,
            "Make an override",
            |call| Box::pin(thing::create::<Override>(call)),
        )
    },
    Endpoint {
        headers: &[Header::IfNoneMatch],
        answers: &[(200, Content::Versioned("Override"))],
        ..Endpoint::get(ONE, "getOverride", Tag::Overrides, "Read an override", |call| {
            Box::pin(thing::get::<Override>(call))
        })
    },
    Endpoint {
        query: &[DRY_RUN],
        headers: &[Header::IfMatch, Header::IfNoneMatch],
        body: Body::Json(&["OverrideInput"]),
        answers: &[(200, Content::Versioned("Override")), (201, Content::Created("Override"))],
        ..Endpoint::change(Method::Put, ONE, "replaceOverride", Tag::Overrides, "Replace an override", |call| {
            Box::pin(thing::replace::<Override>(call))
        })
    },
    Endpoint {
        detail: "Sending another `valid_until` extends it.",
        query: &[DRY_RUN],
        headers: &[Header::IfMatch],
        body: Body::Patch(&["OverridePatch"]),
        answers: &[(200, Content::Versioned("Override"))],
        ..Endpoint::change(
            Method::Patch,
            ONE,
            "updateOverride",
            Tag::Overrides,
            "Change parts of an override",
            |call| Box::pin(thing::patch::<Override>(call)),
        )
    },
    Endpoint {
        query: &[DRY_RUN],
        headers: &[Header::IfMatchOptional],
        answers: &[(204, Content::Nothing), (200, Content::Json("DryRun"))],
        ..Endpoint::change(Method::Delete, ONE, "deleteOverride", Tag::Overrides, "Remove an override", |call| {
            Box::pin(thing::delete::<Override>(call))
        })
    },
    Endpoint {
        detail: "From now on it holds no more; what it was stays readable. One that has ended already stays as it is.",
        query: &[DRY_RUN],
        headers: &[Header::IfMatchOptional],
        answers: &[(200, Content::Versioned("Override"))],
        ..Endpoint::change(
            Method::Post,
            "/v1/overrides/{override_id}/end",
            "endOverride",
            Tag::Overrides,
            "End an override now",
            |call| Box::pin(end(call)),
        )
    },
];

/// Overrides, as things that are kept.
pub(super) struct Override;

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
];

impl Thing for Override {
    const KIND: RecordKind = RecordKind::Override;
    const PATH: &'static str = "/v1/overrides";
    const PREFIX: &'static str = "ovr";
    type Record = OverrideRecord;
    type Draft = OverrideDraft;

    fn read(
        call: &Call<'_>,
        id: Option<&str>,
        body: Map<String, Value>,
    ) -> Result<(Option<String>, OverrideDraft), AdminProblem> {
        let mut fields = Fields::of(body, FIELDS);
        fields.same("namespace", call.namespace());
        let named = match id {
            Some(id) => {
                fields.same("override_id", id);
                None
            }
            None => fields.text("override_id"),
        };
        let draft = OverrideDraft {
            client_key: fields.needed_text("client_key", "whom it is for, such as \"user:42\""),
            rule_id: fields.needed_text("rule_id", "the rule whose numbers it changes"),
            max_requests: fields.count("max_requests"),
            burst_size: fields.count("burst_size").unwrap_or(0),
            unlimited: fields.flag("unlimited").unwrap_or(false),
            valid_from: fields.time("valid_from"),
            valid_until: fields.needed_time("valid_until", "an override ends: say when, such as 2026-12-01T00:00:00Z"),
            reason: fields.text("reason").unwrap_or_default(),
        };
        fields.rest().map(|_| (named, draft))
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

async fn list(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "overrides": [], "next_cursor": null })));
    }
    let filter = OverrideFilter {
        namespaces: call.namespaces(),
        client_key: call.query().owned("client_key"),
        rule_id: call.query().owned("rule_id"),
        holds_at: call.query().flag("active").map(|_| call.admin.now()),
    };
    let listing = call.control()?.overrides(&filter, &call.page()?).await?;
    let overrides: Value = listing.entries.iter().map(Override::json).collect();
    let body = json!({ "overrides": overrides, "next_cursor": call.cursor(listing.next.as_deref()) });
    Ok(AdminResponse::json(&call.mask().value(body)))
}

async fn end(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    let now = call.admin.now();
    let record = call.control()?.overriding(call.namespace(), call.id()).await?;
    let draft = OverrideDraft { valid_until: record.draft.valid_until.min(now), ..record.draft };
    let version = if let Some(IfMatch::Version(version)) = call.asked.if_match { version } else { record.version };
    let expect = Precondition::Version(version);
    let applied = thing::write::<Override>(call, call.id(), Some(draft), expect, "end").await?;
    match call.dry_run() {
        true => Ok(changes::said(call, &applied)),
        false => thing::get::<Override>(call).await,
    }
}
