//! Schemas of API keys.

use serde_json::{Value, json};

use super::builders::{self, answer, client_key, described, label, list, maybe_time, stamps, text, time, together};

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let key = json!({
        "key_id": label("Its public half: the value of the attribute `api_key`."),
        "client_key": client_key(),
        "name": text("For people."),
        "fingerprint": json!({ "type": "string", "pattern": "^[0-9a-f]{8}$", "description": "The beginning of its digest: another one after a rotation." }),
        "previous_until": maybe_time("First instant the secret before the last rotation is good no more."),
        "rotated_at": maybe_time("When it was rotated last."),
        "expires_at": maybe_time("First instant it is good no more; null for never."),
        "revoked_at": maybe_time("Since when it is revoked."),
        "created_by": text("Who made it."),
    });
    let key = together(&[&key, &stamps()]);
    let whole = json!({ "key": text("The whole key. It is never told again.") });
    let input = json!({
        "client_key": client_key(),
        "namespace": label("That of the call."),
        "name": json!({ "type": "string", "maxLength": 200, "description": "For people." }),
        "expires_at": time("First instant it is good no more. Leave out `expires_in` then."),
        "expires_in": json!({ "type": "string", "pattern": "^[1-9][0-9]{0,3}(s|m|h|d)$", "description": "The same from now on: `90d`." }),
    });
    let mut input = builders::input(&input, &["client_key"]);
    if let Some(members) = input.as_object_mut() {
        members.insert(
            "not".to_owned(),
            json!({
                "required": ["expires_at", "expires_in"],
                "properties": { "expires_at": { "type": "string" }, "expires_in": { "type": "string" } },
            }),
        );
    }
    let overlap = json!({
        "overlap": json!({ "type": "string", "pattern": "^[1-9][0-9]{0,3}(s|m|h|d)$", "description": "How long the old secret stays good: `24h`, at most `90d`; not at all if it is left out." }),
    });
    vec![
        ("Key", answer(key.clone())),
        // Not `NewKey`: generated Go has a function of that name, the constructor of `Key`.
        ("CreatedKey", described(answer(together(&[&key, &whole])), "A key that was just made or rotated.")),
        ("KeyInput", input),
        ("KeyRotation", builders::input(&overlap, &[])),
        ("KeyList", list("keys", "Key")),
    ]
}
