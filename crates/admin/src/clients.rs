//! The client directory: plan, tier, organisation, attributes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tollgate_control::record::{ClientDraft, ClientRecord};
use tollgate_control::{ClientFilter, Control, Edit, Precondition, RecordKind};

use super::body_fields::BodyFields;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, EndpointHeader, HttpMethod, RequestBody, ResponseContent, Tag};
use super::file_entries::{self, MixedPage};
use super::parameter::{CURSOR, DRY_RUN, LIMIT, text};
use super::problem::AdminProblem;
use super::resource::{self, Resource};
use super::response::AdminResponse;

const ONE: &str = "/v1/clients/{client_key}";

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        detail: "Those of the rules file first, with `source` `file`: they are changed in the file.",
        query: &[
            text("tier", "Of this tier."),
            text("organisation", "Of this organisation."),
            text("prefix", "Whose key begins so; for operators, who may see keys."),
            LIMIT,
            CURSOR,
        ],
        responses: &[(200, ResponseContent::Json("ClientList"))],
        ..AdminEndpoint::get("/v1/clients", "listClients", Tag::Clients, "List clients", |call| Box::pin(list(call)))
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IdempotencyKey],
        body: RequestBody::Json(&["ClientInput"]),
        responses: &[(201, ResponseContent::Created("Client")), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/clients",
            "createClient",
            Tag::Clients,
            "Make a client known",
            |call| Box::pin(resource::create::<ClientResource>(call)),
        )
    },
    AdminEndpoint {
        headers: &[EndpointHeader::IfNoneMatch],
        responses: &[(200, ResponseContent::Versioned("Client"))],
        ..AdminEndpoint::get(ONE, "getClient", Tag::Clients, "Read what is known of a client", |call| {
            Box::pin(get(call))
        })
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatch, EndpointHeader::IfNoneMatch],
        body: RequestBody::Json(&["ClientBody"]),
        responses: &[(200, ResponseContent::Versioned("Client")), (201, ResponseContent::Created("Client"))],
        ..AdminEndpoint::change(
            HttpMethod::Put,
            ONE,
            "replaceClient",
            Tag::Clients,
            "Replace what is known of a client",
            |call| Box::pin(resource::replace::<ClientResource>(call)),
        )
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatch],
        body: RequestBody::Patch(&["ClientPatch"]),
        responses: &[(200, ResponseContent::Versioned("Client"))],
        ..AdminEndpoint::change(HttpMethod::Patch, ONE, "updateClient", Tag::Clients, "Change parts of it", |call| {
            Box::pin(resource::patch::<ClientResource>(call))
        })
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatchOptional],
        responses: &[(204, ResponseContent::Nothing), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(HttpMethod::Delete, ONE, "deleteClient", Tag::Clients, "Forget a client", |call| {
            Box::pin(resource::delete::<ClientResource>(call))
        })
    },
];

/// Clients, as a resource.
pub(super) struct ClientResource;

const FIELDS: &[&str] = &[
    "client_key",
    "namespace",
    "plan",
    "tier",
    "organisation",
    "attributes",
    "created_at",
    "updated_at",
    "version",
    "source",
    "location",
];

impl Resource for ClientResource {
    const KIND: RecordKind = RecordKind::Client;
    const PATH: &'static str = "/v1/clients";
    const PREFIX: &'static str = "client";
    type Record = ClientRecord;
    type Draft = ClientDraft;

    fn read(
        call: &AdminCall<'_>,
        id: Option<&str>,
        body: Map<String, Value>,
    ) -> Result<(Option<String>, ClientDraft), AdminProblem> {
        let mut fields = BodyFields::of(body, FIELDS);
        fields.same("namespace", call.namespace());
        let named = match id {
            Some(id) => {
                fields.same("client_key", id);
                None
            }
            None => Some(fields.required_text("client_key", "who it is, such as \"user:42\"")),
        };
        let draft = ClientDraft {
            tier: fields.text("tier"),
            organisation: fields.text("organisation"),
            plan: fields.take("plan"),
            attributes: attributes(&mut fields),
        };
        fields.rest().map(|_| (named, draft))
    }

    fn guard(call: &AdminCall<'_>, id: &str) -> Result<(), AdminProblem> {
        let of_file = file_entries::client(call, id);
        of_file.map_or(Ok(()), |client| Err(file_entries::refuse("This client", "client_in_file", &client)))
    }

    async fn find(control: &Control, namespace: &str, id: &str) -> tollgate_control::Result<ClientRecord> {
        control.client(namespace, id).await
    }

    fn json(record: &ClientRecord) -> Value {
        record.json()
    }

    fn version(record: &ClientRecord) -> i64 {
        record.version
    }

    fn writable(record: &ClientRecord) -> Map<String, Value> {
        let ClientDraft { tier, organisation, plan, attributes } = &record.draft;
        let body = json!({ "tier": tier, "organisation": organisation, "plan": plan, "attributes": attributes });
        body.as_object().cloned().unwrap_or_default()
    }

    fn edit(namespace: &str, id: &str, to: Option<ClientDraft>, expect: Precondition) -> Edit {
        Edit::Client { namespace: namespace.to_owned(), client_key: id.to_owned(), to, expect }
    }
}

fn attributes(fields: &mut BodyFields) -> BTreeMap<String, String> {
    let mut attributes = BTreeMap::new();
    match fields.take("attributes") {
        None => {}
        Some(Value::Object(members)) => {
            for (name, value) in members {
                match value {
                    Value::String(text) => drop(attributes.insert(name, text)),
                    _ => {
                        let path = format!("attributes.{name}");
                        fields.refuse(&path, "wrong-type", format!("{path} should be text"), "write it in quotes");
                    }
                }
            }
        }
        Some(_) => {
            fields.refuse("attributes", "wrong-type", "attributes should be an object", "such as {\"region\":\"eu\"}")
        }
    }
    attributes
}

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    if call.mask().hides() && call.query().text("prefix").is_some() {
        let detail = "Who may not see client keys may not search for their beginnings either.";
        return Err(AdminProblem::new(403, "role_too_weak", detail));
    }
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "clients": [], "next_cursor": null })));
    }
    let filter = ClientFilter {
        namespaces: call.namespaces(),
        tier: call.query().owned("tier"),
        organisation: call.query().owned("organisation"),
        prefix: call.query().owned("prefix"),
    };
    let mut page = MixedPage::of(&call.page()?);
    if let Some(file) = (call.state.node.rules_file)() {
        page.add_clients(&file, &filter);
    }
    let rest = match page.rest() {
        Some(rest) => {
            let listing = call.control()?.clients(&filter, &rest).await?;
            Some((listing.entries.iter().map(ClientResource::json).collect(), listing.next))
        }
        None => None,
    };
    let (clients, next) = page.end(rest);
    let body = json!({ "clients": clients, "next_cursor": call.cursor(next.as_deref()) });
    Ok(AdminResponse::json(&call.mask().value(body)))
}

async fn get(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    match file_entries::client(call, call.id()) {
        Some(client) => Ok(AdminResponse::json(&call.mask().value(client))),
        None => resource::get::<ClientResource>(call).await,
    }
}
