//! Changes in responses.

use serde_json::{Value, json};
use tollgate_control::{AppliedChanges, Change, RecordKind};

use super::call::AdminCall;
use super::response::AdminResponse;
use super::warnings;
use tollgate_service::mask::Mask;

/// The response to a change set: what changed, or would change in a dry run.
pub(super) fn response(call: &AdminCall<'_>, applied: &AppliedChanges) -> AdminResponse {
    response_with(call, applied, warnings::of_changes(applied))
}

/// The same, with these warnings.
pub(super) fn response_with(call: &AdminCall<'_>, applied: &AppliedChanges, warnings: Vec<Value>) -> AdminResponse {
    let mut body = json!({ "generation": applied.generation, "changes": shown(&call.mask(), &applied.changes) });
    warnings::add(&mut body, warnings);
    if let (true, Value::Object(members)) = (call.dry_run(), &mut body) {
        members.insert("dry_run".to_owned(), true.into());
    }
    AdminResponse::json(&body)
}

/// Changes as responses show them.
pub(super) fn shown(mask: &Mask<'_>, changes: &[Change]) -> Value {
    changes.iter().map(|change| masked(mask, change.kind, change.json())).collect()
}

/// Masks client keys in the JSON of a record: the id of a client is its key.
pub(super) fn masked(mask: &Mask<'_>, kind: RecordKind, json: Value) -> Value {
    let mut json = mask.value(json);
    if let (RecordKind::Client, Some(Value::String(id))) = (kind, json.get_mut("id")) {
        *id = mask.key(id);
    }
    json
}
