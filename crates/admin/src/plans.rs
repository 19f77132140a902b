//! Plans: named sets of rules that clients and organisations have.

use serde_json::{Map, Value, json};
use tollgate_control::record::{PlanDraft, PlanRecord};
use tollgate_control::{Control, Edit, Precondition, RecordKind};
use tollgate_service::plans::PlanDocument;

use super::access::NamespaceScope;
use super::body_fields::BodyFields;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, EndpointHeader, HttpMethod, RequestBody, ResponseContent, Tag};
use super::parameter::DRY_RUN;
use super::problem::AdminProblem;
use super::resource::{self, Resource};
use super::response::AdminResponse;
use super::warnings;

const ONE: &str = "/v1/plans/{plan_id}";

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        detail: "Of all namespaces that the token is for, unless one is named. Plans of files come first. `rules` are those \
                 that a plan has in the end, inherited ones included.",
        scope: NamespaceScope::Namespaces,
        responses: &[(200, ResponseContent::Json("PlanList"))],
        ..AdminEndpoint::get("/v1/plans", "listPlans", Tag::Plans, "List plans", |call| Box::pin(list(call)))
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IdempotencyKey],
        body: RequestBody::Json(&["PlanInput"]),
        responses: &[(201, ResponseContent::Created("Plan")), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(HttpMethod::Post, "/v1/plans", "createPlan", Tag::Plans, "Make a plan", |call| {
            Box::pin(resource::create::<PlanResource>(call))
        })
    },
    AdminEndpoint {
        headers: &[EndpointHeader::IfNoneMatch],
        responses: &[(200, ResponseContent::Versioned("Plan"))],
        ..AdminEndpoint::get(ONE, "getPlan", Tag::Plans, "Read a plan and its rules", |call| Box::pin(get(call)))
    },
    AdminEndpoint {
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatch, EndpointHeader::IfNoneMatch],
        body: RequestBody::Json(&["PlanBody"]),
        responses: &[(200, ResponseContent::Versioned("Plan")), (201, ResponseContent::Created("Plan"))],
        ..AdminEndpoint::change(HttpMethod::Put, ONE, "replacePlan", Tag::Plans, "Replace a plan", |call| {
            Box::pin(resource::replace::<PlanResource>(call))
        })
    },
    AdminEndpoint {
        detail: "`limits` is replaced as a whole. Usage of rules that keep their name, algorithm, window and meter is kept; \
                 overrides, grants and modes of rules that are left out go with them.",
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatch],
        body: RequestBody::Patch(&["PlanPatch"]),
        responses: &[(200, ResponseContent::Versioned("Plan"))],
        ..AdminEndpoint::change(HttpMethod::Patch, ONE, "updatePlan", Tag::Plans, "Change parts of a plan", |call| {
            Box::pin(resource::patch::<PlanResource>(call))
        })
    },
    AdminEndpoint {
        detail: "A plan that clients have, or that another plan extends, is not removed: 409. Overrides, grants and modes \
                 of its rules go with it.",
        query: &[DRY_RUN],
        headers: &[EndpointHeader::IfMatchOptional],
        responses: &[(204, ResponseContent::Nothing), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(HttpMethod::Delete, ONE, "deletePlan", Tag::Plans, "Remove a plan", |call| {
            Box::pin(resource::delete::<PlanResource>(call))
        })
    },
];

/// Plans, as a resource.
pub(super) struct PlanResource;

const FIELDS: &[&str] = &[
    "plan_id",
    "namespace",
    "extends",
    "default",
    "limits",
    "description",
    "rules",
    "source",
    "location",
    "warnings",
    "created_at",
    "updated_at",
    "version",
];

impl Resource for PlanResource {
    const KIND: RecordKind = RecordKind::Plan;
    const PATH: &'static str = "/v1/plans";
    const PREFIX: &'static str = "plan";
    type Record = PlanRecord;
    type Draft = PlanDraft;

    fn read(
        call: &AdminCall<'_>,
        id: Option<&str>,
        body: Map<String, Value>,
    ) -> Result<(Option<String>, PlanDraft), AdminProblem> {
        let mut fields = BodyFields::of(body, FIELDS);
        fields.same("namespace", call.namespace());
        let named = match id {
            Some(id) => {
                fields.same("plan_id", id);
                None
            }
            None => Some(fields.required_text("plan_id", "its name, such as \"pro\"")),
        };
        let limits = match fields.take("limits") {
            None => Vec::new(),
            Some(Value::Array(limits)) => limits,
            Some(_) => {
                fields.refuse("limits", "wrong-type", "limits should be a list of rules", "write [{…}, {…}]");
                Vec::new()
            }
        };
        let draft = PlanDraft {
            extends: fields.text("extends"),
            is_default: fields.flag("default").unwrap_or(false),
            limits,
            description: fields.text("description").unwrap_or_default(),
        };
        fields.rest().map(|_| (named, draft))
    }

    fn guard(call: &AdminCall<'_>, id: &str) -> Result<(), AdminProblem> {
        let plans = (call.state.node.file_plans)();
        match plans.iter().find(|plan| plan.plan_id == id && plan.namespace == call.namespace()) {
            None => Ok(()),
            Some(plan) => {
                let location = plan.location.as_deref().unwrap_or("a file");
                let detail = format!("The plan `{id}` comes from {location}: change it there.");
                Err(AdminProblem::new(409, "plan_in_file", detail))
            }
        }
    }

    async fn find(control: &Control, namespace: &str, id: &str) -> tollgate_control::Result<PlanRecord> {
        control.plan(namespace, id).await
    }

    fn json(record: &PlanRecord) -> Value {
        record.json()
    }

    fn shown(mut json: Value) -> Value {
        warnings::of_plan(&mut json);
        json
    }

    fn version(record: &PlanRecord) -> i64 {
        record.version
    }

    fn writable(record: &PlanRecord) -> Map<String, Value> {
        let PlanDraft { extends, is_default, limits, description } = &record.draft;
        let body = json!({ "extends": extends, "default": is_default, "limits": limits, "description": description });
        body.as_object().cloned().unwrap_or_default()
    }

    fn edit(namespace: &str, id: &str, to: Option<PlanDraft>, expect: Precondition) -> Edit {
        Edit::Plan { namespace: namespace.to_owned(), plan_id: id.to_owned(), to, expect }
    }
}

/// A plan of the database as a document.
fn document(record: &PlanRecord) -> PlanDocument {
    let PlanDraft { extends, is_default, limits, description } = record.draft.clone();
    let objects = limits.into_iter().filter_map(|limit| limit.as_object().cloned());
    PlanDocument {
        namespace: record.namespace.clone(),
        plan_id: record.plan_id.clone(),
        extends,
        is_default,
        description,
        limits: objects.collect(),
        source: "database",
        location: None,
    }
}

/// The stored fields of a plan, and the rules that it has among the plans of the database.
fn shown(record: &PlanRecord, plans: &[PlanDocument]) -> Value {
    let mut json = PlanResource::shown(record.json());
    let rest = document(record).json(plans);
    if let (Value::Object(members), Value::Object(rest)) = (&mut json, rest) {
        members.extend(rest.into_iter().filter(|(name, _)| ["rules", "source", "location"].contains(&name.as_str())));
    }
    json
}

/// A plan of a file: it has no times and no version.
fn of_file(plan: &PlanDocument, plans: &[PlanDocument]) -> Value {
    let mut json = plan.json(plans);
    if let Value::Object(members) = &mut json {
        members.extend(["created_at", "updated_at", "version"].map(|name| (name.to_owned(), Value::Null)));
    }
    json
}

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "plans": [] })));
    }
    let namespaces = call.namespaces();
    let of_files = (call.state.node.file_plans)();
    let is_wanted = |plan: &&PlanDocument| namespaces.as_ref().is_none_or(|names| names.contains(&plan.namespace));
    let mut plans: Vec<Value> = of_files.iter().filter(is_wanted).map(|plan| of_file(plan, &of_files)).collect();
    if let Some(control) = &call.state.control {
        let records = control.plans(namespaces.as_deref()).await?;
        let documents: Vec<PlanDocument> = records.iter().map(document).collect();
        plans.extend(records.iter().map(|record| shown(record, &documents)));
    }
    Ok(AdminResponse::json(&call.mask().value(json!({ "plans": plans }))))
}

async fn get(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let of_files = (call.state.node.file_plans)();
    let own = of_files.iter().find(|plan| plan.plan_id == call.id() && plan.namespace == call.namespace());
    if let Some(plan) = own {
        return Ok(AdminResponse::json(&call.mask().value(of_file(plan, &of_files))));
    }
    let control = call.control()?;
    let record = control.plan(call.namespace(), call.id()).await?;
    let others = control.plans(Some(&[call.namespace().to_owned()])).await?;
    let documents: Vec<PlanDocument> = others.iter().map(document).collect();
    Ok(AdminResponse::json(&call.mask().value(shown(&record, &documents))).version(record.version))
}
