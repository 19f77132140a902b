//! What changed, or would.

use serde_json::{Value, json};
use tollgate_control::{AppliedChanges, Change, RecordKind};

use super::call::AdminCall;
use super::response::AdminResponse;
use tollgate_service::mask::Mask;

/// What an order did, or would have done.
pub(super) fn response(call: &AdminCall<'_>, applied: &AppliedChanges) -> AdminResponse {
    let mut body = json!({ "generation": applied.generation, "changes": shown(&call.mask(), &applied.changes) });
    if let (true, Value::Object(members)) = (call.dry_run(), &mut body) {
        members.insert("dry_run".to_owned(), true.into());
    }
    AdminResponse::json(&body)
}

/// Changes as they are answered.
pub(super) fn shown(mask: &Mask<'_>, changes: &[Change]) -> Value {
    changes.iter().map(|change| masked(mask, change.kind, change.json())).collect()
}

/// Something about a thing, with its keys hidden: the id of a client is its key.
pub(super) fn masked(mask: &Mask<'_>, kind: RecordKind, json: Value) -> Value {
    let mut json = mask.value(json);
    if let (RecordKind::Client, Some(Value::String(id))) = (kind, json.get_mut("id")) {
        *id = mask.key(id);
    }
    json
}
