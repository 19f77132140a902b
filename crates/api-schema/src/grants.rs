//! Schemas of grants.

use serde_json::{Value, json};
use tollgate_rules::check;

use super::builders::{answer, client_key, input, label, list, maybe_time, stamps, together};

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let own = json!({
        "client_key": client_key(),
        "rule_id": label("The quota it adds to."),
        "amount": json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": check::REQUESTS_MAX, "description": "Its units." }),
        "valid_from": maybe_time("It counts in the period that contains this instant; now if it is left out."),
        "valid_until": maybe_time("First instant it counts no more; null for the end of its period."),
        "reason": json!({ "type": "string", "maxLength": 1024, "description": "For people." }),
    });
    let id = json!({ "grant_id": label("Its id. Made up if it is left out.") });
    vec![
        ("Grant", answer(together(&[&own, &id, &stamps()]))),
        ("GrantInput", input(&together(&[&own, &id]), &["client_key", "rule_id", "amount"])),
        ("GrantList", list("grants", "Grant")),
    ]
}
