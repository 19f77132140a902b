//! What changed, or would.

use serde_json::{Value, json};
use tollgate_control::{Applied, Change, Kind};

use super::call::Call;
use super::mask::Mask;
use super::said::Said;

/// What an order did, or would have done.
pub(super) fn said(call: &Call<'_>, applied: &Applied) -> Said {
    let mut body = json!({ "generation": applied.generation, "changes": shown(&call.mask(), &applied.changes) });
    if let (true, Value::Object(members)) = (call.dry_run(), &mut body) {
        members.insert("dry_run".to_owned(), true.into());
    }
    Said::json(&body)
}

/// Changes as they are answered.
pub(super) fn shown(mask: &Mask<'_>, changes: &[Change]) -> Value {
    let one = |change: &Change| {
        let Change { kind, namespace, id, before, after } = change;
        let record = |record: &Option<Value>| record.clone().map(|record| mask.value(record));
        json!({
            "kind": kind.name(),
            "namespace": namespace,
            "id": id_of(mask, *kind, id),
            "before": record(before),
            "after": record(after),
        })
    };
    changes.iter().map(one).collect()
}

/// An id, which of a client is its key.
pub(super) fn id_of(mask: &Mask<'_>, kind: Kind, id: &str) -> String {
    if kind == Kind::Client { mask.key(id) } else { id.to_owned() }
}
