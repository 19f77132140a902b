//! Create, read, replace, merge and delete, the same for all resources: rules, overrides, grants and clients.

use std::collections::BTreeSet;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Map, Value};
use tollgate_control::{AppliedChanges, ChangeSet, Control, Dependents, Edit, Error, Precondition, RecordKind};
use tollgate_rules::{RuleSpec, nearest};

use super::call::{AdminCall, IfMatch};
use super::changes;
use super::json;
use super::merge::merge;
use super::percent;
use super::problem::{AdminProblem, MapProblem};
use super::response::AdminResponse;

/// A kind of record. Implementors promise that `writable` of a record, passed to `read`, yields that record.
pub(super) trait Resource: Sized + Send + Sync + 'static {
    /// Its kind in the audit.
    const KIND: RecordKind;
    /// The path of its list.
    const PATH: &'static str;
    /// The prefix of generated ids.
    const PREFIX: &'static str;
    /// A stored record.
    type Record: Send + Sync;
    /// The writable part of a record.
    type Draft: Send;

    /// Reads a body: the draft, and the id if the body has one.
    fn read(
        call: &AdminCall<'_>,
        id: Option<&str>,
        body: Map<String, Value>,
    ) -> Result<(Option<String>, Self::Draft), AdminProblem>;
    /// Refuses changes of read-only records.
    fn guard(_: &AdminCall<'_>, _: &str) -> Result<(), AdminProblem> {
        Ok(())
    }
    /// Looks one up.
    fn find(
        control: &Control,
        namespace: &str,
        id: &str,
    ) -> impl Future<Output = tollgate_control::Result<Self::Record>> + Send;
    /// A patch in the spelling of records.
    fn respelled(patch: Map<String, Value>) -> Map<String, Value> {
        patch
    }
    /// The JSON of a record.
    fn json(record: &Self::Record) -> Value;
    /// Adds what only responses have.
    fn shown(json: Value) -> Value {
        json
    }
    /// The version of a record.
    fn version(record: &Self::Record) -> i64;
    /// The body that would create it.
    fn writable(record: &Self::Record) -> Map<String, Value>;
    /// Adds the defaults of a complete body.
    fn complete(_: &mut Map<String, Value>) {}
    /// A body in the full form, and the mapping of its problems to the form that was sent.
    fn to_full_form(body: Map<String, Value>) -> Result<(Map<String, Value>, MapProblem), AdminProblem> {
        Ok((body, |problem| problem))
    }
    /// The edit that writes it.
    fn edit(namespace: &str, id: &str, to: Option<Self::Draft>, expect: Precondition) -> Edit;
}

/// Attempts of a merge when concurrent changes interfere and the caller named no version.
const MERGES: usize = 5;

/// `GET …/{id}`
pub(super) async fn get<T: Resource>(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    get_by::<T>(call, call.id()).await
}

/// `POST …`
pub(super) async fn create<T: Resource>(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (body, tell) = T::to_full_form(whole::<T>(call)?)?;
    let (id, draft) = T::read(call, None, body).map_err(tell)?;
    let id = match id {
        Some(id) => id,
        None => fresh_id::<T>(call).await?,
    };
    let made = write::<T>(call, &id, Some(draft), Precondition::Absent, "create").await.map_err(tell)?;
    let location = format!("{}/{}", T::PATH, percent::encode(&id));
    answer::<T>(call, made, &id)
        .await
        .map(|response| if call.dry_run() { response } else { response.created(location) })
}

/// `PUT …/{id}`
pub(super) async fn replace<T: Resource>(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let expect = call.replaces()?;
    let (body, tell) = T::to_full_form(whole::<T>(call)?)?;
    let (_, draft) = T::read(call, Some(call.id()), body).map_err(tell)?;
    let written = write::<T>(call, call.id(), Some(draft), expect, "replace").await.map_err(tell)?;
    let response = answer::<T>(call, written, call.id()).await?;
    let is_new = expect == Precondition::Absent && !call.dry_run();
    Ok(if is_new { response.created(format!("{}/{}", T::PATH, percent::encode(call.id()))) } else { response })
}

/// A complete body: `null` counts as absent.
fn whole<T: Resource>(call: &AdminCall<'_>) -> Result<Map<String, Value>, AdminProblem> {
    let mut body = json::object(call.body)?;
    body.retain(|_, value| !value.is_null());
    T::complete(&mut body);
    Ok(body)
}

/// `PATCH …/{id}`
pub(super) async fn patch<T: Resource>(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let wanted = call.merges()?;
    let (body, tell) = T::to_full_form(json::object(call.body)?)?;
    let applied = merge_into::<T>(call, call.id(), body, wanted, "update").await.map_err(tell)?;
    answer::<T>(call, applied, call.id()).await
}

/// Merges into the stored record. Without a version in the request, concurrent changes are retried.
pub(super) async fn merge_into<T: Resource>(
    call: &AdminCall<'_>,
    id: &str,
    patch: Map<String, Value>,
    wanted: IfMatch,
    action: &str,
) -> Result<AppliedChanges, AdminProblem> {
    T::guard(call, id)?;
    let patch = T::respelled(patch);
    for _ in 0..MERGES {
        let record = T::find(call.control()?, call.namespace(), id).await?;
        let mut body = T::writable(&record);
        merge(&mut body, patch.clone());
        let (_, draft) = T::read(call, Some(id), body)?;
        let version = if let IfMatch::Version(version) = wanted { version } else { T::version(&record) };
        match write::<T>(call, id, Some(draft), Precondition::Version(version), action).await {
            Err(problem) if problem.status == 412 && wanted == IfMatch::Anything => {}
            other => return other,
        }
    }
    Err(AdminProblem::new(409, "busy", "Concurrent changes keep interfering; try again."))
}

/// `DELETE …/{id}`
pub(super) async fn delete<T: Resource>(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let applied = remove::<T>(call).await?;
    match call.dry_run() {
        true => Ok(changes::response(call, &applied)),
        false => Ok(AdminResponse::nothing(204)),
    }
}

/// Deletes a record. An absent record is 404 even if a version was named.
pub(super) async fn remove<T: Resource>(call: &AdminCall<'_>) -> Result<AppliedChanges, AdminProblem> {
    match write::<T>(call, call.id(), None, call.removes(), "delete").await {
        Err(problem) if problem.status == 412 => {
            T::find(call.control()?, call.namespace(), call.id()).await?;
            Err(problem)
        }
        other => other,
    }
}

/// Writes one record.
pub(super) async fn write<T: Resource>(
    call: &AdminCall<'_>,
    id: &str,
    to: Option<T::Draft>,
    expect: Precondition,
    action: &str,
) -> Result<AppliedChanges, AdminProblem> {
    T::guard(call, id)?;
    apply(call, vec![T::edit(call.namespace(), id, to, expect)], action).await
}

/// Applies edits as one generation and notifies the node. What depends on a deleted rule is deleted with it.
pub(super) async fn apply(
    call: &AdminCall<'_>,
    edits: Vec<Edit>,
    action: &str,
) -> Result<AppliedChanges, AdminProblem> {
    apply_with(call, edits, action, Dependents::Delete).await
}

/// The same, with a choice about overrides and switches of deleted rules.
pub(super) async fn apply_with(
    call: &AdminCall<'_>,
    edits: Vec<Edit>,
    action: &str,
    dependents: Dependents,
) -> Result<AppliedChanges, AdminProblem> {
    let order = ChangeSet {
        dependents,
        file_rules: file_rules(call, &edits).await,
        file_plans: file_plans(call),
        edits,
        author: call.author(),
        action: action.to_owned(),
        dry_run: call.dry_run(),
        idempotency_key: call.request.idempotency_key.clone(),
    };
    let applied = call.control()?.apply(&order).await?;
    if !order.dry_run && !applied.replayed && !applied.changes.is_empty() {
        (call.state.node.notify_nodes)();
    }
    Ok(applied)
}

/// The rules of files that the edits refer to: the control plane knows only those of the database.
async fn file_rules(call: &AdminCall<'_>, edits: &[Edit]) -> Vec<(String, RuleSpec)> {
    let named = edits.iter().filter_map(|edit| match edit {
        Edit::Override { namespace, to: Some(draft), .. } => Some((namespace, &draft.rule_id)),
        Edit::Grant { namespace, to: Some(draft), .. } => Some((namespace, &draft.rule_id)),
        Edit::RuleMode { namespace, rule_id, to: Some(_), .. } => Some((namespace, rule_id)),
        _ => None,
    });
    let of_plans = names_in_plans(call, edits).await;
    let of_plans = of_plans.iter().map(|(namespace, name)| (namespace, name));
    let named: BTreeSet<(&String, &String)> = named.chain(of_plans).collect();
    let find = |(namespace, rule_id): (&String, &String)| {
        let rules = (call.state.node.file_rule)(namespace, rule_id);
        rules.into_iter().map(|rule| (namespace.clone(), rule)).collect::<Vec<_>>()
    };
    let mut found: Vec<(String, RuleSpec)> = named.iter().copied().flat_map(find).collect();
    let single = edits.iter().filter_map(|edit| match edit {
        Edit::Grant { namespace, to: Some(draft), .. } => Some((namespace, &draft.rule_id)),
        Edit::RuleMode { namespace, rule_id, to: Some(_), .. } => Some((namespace, rule_id)),
        _ => None,
    });
    // The nearest rule of a file, so that a misspelt one is answered with what may be meant.
    let unknown = single.filter(|named| find(*named).is_empty());
    let meant: Vec<(String, RuleSpec)> = unknown.flat_map(|named| nearest_of_files(call, named)).collect();
    found.extend(meant);
    found
}

/// Names of the rules in the plans that the edits change or delete: overrides by such a name stay if a file has it.
async fn names_in_plans(call: &AdminCall<'_>, edits: &[Edit]) -> Vec<(String, String)> {
    let (Some(control), mut names) = (&call.state.control, Vec::new()) else { return Vec::new() };
    for edit in edits {
        let Edit::Plan { namespace, plan_id, .. } = edit else { continue };
        let Ok(plan) = control.plan(namespace, plan_id).await else { continue };
        let of_plan = plan.draft.limits.iter().filter_map(|limit| limit.get("name").and_then(Value::as_str));
        names.extend(of_plan.map(|name| (namespace.clone(), name.to_owned())));
    }
    names
}

fn nearest_of_files(call: &AdminCall<'_>, (namespace, rule_id): (&String, &String)) -> Option<(String, RuleSpec)> {
    let rules = (call.state.node.file_rules)();
    let names = rules.iter().filter(|rule| rule.namespace == *namespace).map(|rule| rule.rule_id.as_str());
    let meant = nearest(rule_id, names)?;
    let rule = (call.state.node.file_rule)(namespace, meant).into_iter().next()?;
    Some((namespace.clone(), rule))
}

/// The plans of files, by namespace and name: clients may have them.
fn file_plans(call: &AdminCall<'_>) -> Vec<(String, String)> {
    let plans = (call.state.node.file_plans)();
    plans.iter().map(|plan| (plan.namespace.clone(), plan.plan_id.clone())).collect()
}

/// The response to a change: the new record, or the changes of a dry run.
pub(super) async fn answer<T: Resource>(
    call: &AdminCall<'_>,
    applied: AppliedChanges,
    id: &str,
) -> Result<AdminResponse, AdminProblem> {
    if call.dry_run() {
        return Ok(changes::response(call, &applied));
    }
    let change = applied.changes.into_iter().find(|change| change.kind == T::KIND && change.id == id);
    match change.and_then(|change| change.after) {
        Some(record) => Ok(shown::<T>(call, record)),
        None => get_by::<T>(call, id).await, // nothing changed
    }
}

async fn get_by<T: Resource>(call: &AdminCall<'_>, id: &str) -> Result<AdminResponse, AdminProblem> {
    Ok(shown::<T>(call, T::json(&T::find(call.control()?, call.namespace(), id).await?)))
}

fn shown<T: Resource>(call: &AdminCall<'_>, record: Value) -> AdminResponse {
    let version = record.get("version").and_then(Value::as_i64).unwrap_or_default();
    AdminResponse::json(&call.mask().value(T::shown(record))).version(version)
}

/// An unused id, short enough to read. The same idempotency key yields the same id, so that a repeated call is identical.
async fn fresh_id<T: Resource>(call: &AdminCall<'_>) -> Result<String, AdminProblem> {
    if let Some(key) = &call.request.idempotency_key {
        return Ok(format!("{}-{}", T::PREFIX, hash(&[T::PATH, call.namespace(), &call.author().id, key])));
    }
    for digits in [4, 4, 6, 8] {
        let id = format!("{}-{:0digits$x}", T::PREFIX, tollgate_service::random::fast() >> (64 - 4 * digits));
        match T::find(call.control()?, call.namespace(), &id).await {
            Err(Error::NotFound(_)) => return Ok(id),
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
    }
    Err(AdminProblem::new(409, "no_free_id", "No free id was found; name one yourself."))
}

/// The first twelve hexadecimal digits of the SHA-256 of these texts.
pub(super) fn hash(texts: &[&str]) -> String {
    let digest = digest(&SHA256, texts.join("\0").as_bytes());
    digest.as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
