//! Grants: units that one client gets once, in the period of a quota. A grant is made and deleted, not changed: what was
//! promised to a customer is one row of the audit.

use serde_json::{Map, Value, json};
use tollgate_control::record::{GrantDraft, GrantRecord};
use tollgate_control::{Control, Edit, GrantFilter, Precondition, RecordKind};

use super::access::NamespaceScope;
use super::body_fields::BodyFields;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, EndpointHeader, HttpMethod, RequestBody, ResponseContent, Tag};
use super::parameter::{CURSOR, DRY_RUN, LIMIT, ParameterKind, parameter, text};
use super::problem::AdminProblem;
use super::resource::{self, Resource};
use super::response::AdminResponse;

const ONE: &str = "/v1/grants/{grant_id}";

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        scope: NamespaceScope::Namespaces,
        query: &[
            text("client_key", "To this client."),
            text("rule_id", "Of this rule."),
            parameter("active", ParameterKind::OneOf(&["true"]), "Only those that have started and not ended."),
            LIMIT,
            CURSOR,
        ],
        responses: &[(200, ResponseContent::Json("GrantList"))],
        ..AdminEndpoint::get("/v1/grants", "listGrants", Tag::Grants, "List grants", |call| Box::pin(list(call)))
    },
    AdminEndpoint {
        detail: "It counts in the period of the client's calendar that contains `valid_from`, which is now if it is left \
                 out, until that period ends or `valid_until` passes. Send an `Idempotency-Key`: grants add up.",
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IdempotencyKey],
        body: RequestBody::Json(&["GrantInput"]),
        responses: &[(201, ResponseContent::Created("Grant")), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/grants",
            "createGrant",
            Tag::Grants,
            "Grant units to a client once",
            |call| Box::pin(resource::create::<GrantResource>(call)),
        )
    },
    AdminEndpoint {
        headers: &[EndpointHeader::IfNoneMatch],
        responses: &[(200, ResponseContent::Versioned("Grant"))],
        ..AdminEndpoint::get(ONE, "getGrant", Tag::Grants, "Read a grant", |call| {
            Box::pin(resource::get::<GrantResource>(call))
        })
    },
    AdminEndpoint {
        detail: "What was used of it stays used.",
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatchOptional],
        responses: &[(204, ResponseContent::Nothing), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(HttpMethod::Delete, ONE, "deleteGrant", Tag::Grants, "Take a grant back", |call| {
            Box::pin(resource::delete::<GrantResource>(call))
        })
    },
];

/// Grants, as a resource.
pub(super) struct GrantResource;

const FIELDS: &[&str] = &[
    "grant_id",
    "namespace",
    "client_key",
    "rule_id",
    "amount",
    "valid_from",
    "valid_until",
    "reason",
    "created_at",
    "updated_at",
    "version",
];

impl Resource for GrantResource {
    const KIND: RecordKind = RecordKind::Grant;
    const PATH: &'static str = "/v1/grants";
    const PREFIX: &'static str = "grt";
    type Record = GrantRecord;
    type Draft = GrantDraft;

    fn read(
        call: &AdminCall<'_>,
        id: Option<&str>,
        body: Map<String, Value>,
    ) -> Result<(Option<String>, GrantDraft), AdminProblem> {
        let mut fields = BodyFields::of(body, FIELDS);
        fields.same("namespace", call.namespace());
        let named = match id {
            Some(id) => {
                fields.same("grant_id", id);
                None
            }
            None => fields.text("grant_id"),
        };
        let draft = GrantDraft {
            client_key: fields.required_text("client_key", "whom it is for, such as \"user:42\""),
            rule_id: fields.required_text("rule_id", "the quota it adds to"),
            amount: fields.required_count("amount", "say how many units it adds"),
            valid_from: fields.time("valid_from"),
            valid_until: fields.time("valid_until"),
            reason: fields.text("reason").unwrap_or_default(),
        };
        if draft.valid_until.is_some_and(|until| until <= call.state.now()) {
            let help = "leave it out to let the grant end with its period";
            fields.refuse("valid_until", "bad-time", "valid_until is in the past", help);
        }
        fields.rest().map(|_| (named, draft))
    }

    async fn find(control: &Control, namespace: &str, id: &str) -> tollgate_control::Result<GrantRecord> {
        control.grant(namespace, id).await
    }

    fn json(record: &GrantRecord) -> Value {
        record.json()
    }

    fn version(record: &GrantRecord) -> i64 {
        record.version
    }

    fn writable(record: &GrantRecord) -> Map<String, Value> {
        let GrantDraft { client_key, rule_id, amount, valid_from, valid_until, reason } = &record.draft;
        let body = json!({
            "client_key": client_key,
            "rule_id": rule_id,
            "amount": amount,
            "valid_from": valid_from.map(|from| from.to_string()),
            "valid_until": valid_until.map(|until| until.to_string()),
            "reason": reason,
        });
        body.as_object().cloned().unwrap_or_default()
    }

    fn edit(namespace: &str, id: &str, to: Option<GrantDraft>, expect: Precondition) -> Edit {
        Edit::Grant { namespace: namespace.to_owned(), grant_id: id.to_owned(), to, expect }
    }
}

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "grants": [], "next_cursor": null })));
    }
    let filter = GrantFilter {
        namespaces: call.namespaces(),
        client_key: call.query().owned("client_key"),
        rule_id: call.query().owned("rule_id"),
        holds_at: call.query().flag("active").map(|_| call.state.now()),
    };
    let listing = call.control()?.grants(&filter, &call.page()?).await?;
    let grants: Value = listing.entries.iter().map(GrantResource::json).collect();
    let body = json!({ "grants": grants, "next_cursor": call.cursor(listing.next.as_deref()) });
    Ok(AdminResponse::json(&call.mask().value(body)))
}
