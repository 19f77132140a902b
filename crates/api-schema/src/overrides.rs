//! Schemas of overrides, clients and tokens.

use serde_json::{Value, json};
use tollgate_rules::{PlanSchedule, check};

use super::builders::{
    self, answer, client_key, count, described, flag, input, label, list, maybe_time, object, patch, patch_entries,
    stamps, text, time, together, word,
};

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    [overrides(), clients(), plans(), tokens()].concat()
}

fn overrides() -> Vec<(&'static str, Value)> {
    let maximum = |mut schema: Value| {
        if let Some(members) = schema.as_object_mut() {
            members.insert("type".to_owned(), json!(["integer", "null"]));
        }
        schema
    };
    let own = json!({
        "client_key": client_key(),
        "rule_id": label("The rule whose numbers it changes; `*` with `unlimited` exempts the client from all rules of the namespace."),
        "max_requests": maximum(count("Units per window instead of the rule's.", check::REQUESTS_MAX)),
        "burst_size": count("Capacity instead of the rule's; 0 for the rule's.", check::BURST_MAX),
        "unlimited": flag("Exempts the client."),
        "valid_from": maybe_time("First instant it holds; null for always."),
        "valid_until": time("First instant it holds no more."),
        "reason": json!({ "type": "string", "maxLength": 1024, "description": "For people." }),
    });
    let id = json!({ "override_id": label("Its id. Made up if it is left out.") });
    let end = json!({ "valid_until": maybe_time("First instant it holds no more; null for an override of a file without an end.") });
    let mut overriding = answer(together(&[&own, &id, &end, &stamps()]));
    in_file(&mut overriding);
    vec![
        ("Override", overriding),
        ("OverrideInput", input(&together(&[&own, &id]), &["client_key", "rule_id", "valid_until"])),
        ("OverridePatch", patch(&own)),
        ("OverrideList", list("overrides", "Override")),
    ]
}

fn clients() -> Vec<(&'static str, Value)> {
    let known =
        |text: &str| json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 1024, "description": text });
    let fixed = ["tier", "org", "client_key", "endpoint", "method", "path", "namespace"];
    let attributes = json!({
        "type": "object",
        "description": "Whatever else rules match on.",
        "propertyNames": { "pattern": "^[a-z][a-z0-9_.-]{0,63}$", "not": { "enum": fixed } },
        "additionalProperties": { "type": "string", "minLength": 1, "maxLength": 1024 },
        "maxProperties": 64,
    });
    let body = json!({
        "tier": known("Its tier."),
        "organisation": known("Its organisation; rules call it `org`."),
        "attributes": attributes,
    });
    let key = json!({ "client_key": client_key() });
    let mut client = answer(together(&[&body, &key, &stamps()]));
    let plan = json!({ "plan": plan_of_client() });
    if let (Some(Value::Object(members)), Value::Object(plan)) = (client.get_mut("properties"), plan.clone()) {
        members.extend(plan);
    }
    in_file(&mut client);
    let body = together(&[&body, &plan]);
    let merged = together(&[&body, &json!({ "attributes": patch_entries(attributes) })]);
    vec![
        ("Client", client),
        ("ClientInput", input(&together(&[&body, &key]), &["client_key"])),
        ("ClientBody", input(&body, &[])),
        ("ClientPatch", patch(&merged)),
        ("ClientList", list("clients", "Client")),
    ]
}

/// Members of records of the rules file only.
fn in_file(record: &mut Value) {
    if let Some(members) = record.get_mut("properties").and_then(Value::as_object_mut) {
        members.insert("source".to_owned(), word(&["file"], "Of a record of the rules file, which is changed there."));
        members.insert("location".to_owned(), text("Of a record of the rules file: the file and the line."));
    }
}

/// The plan of a client: a name, or steps.
fn plan_of_client() -> Value {
    let name = plan_name("The name of a plan.");
    let from = text("From when on: 2026-12-01, or 2026-12-01T00:00:00+01:00.");
    let step = object(json!({ "plan": name, "from": from }), &["plan"]);
    let either = json!({ "anyOf": [name, step] });
    json!({
        "anyOf": [
            name,
            step,
            { "type": "array", "items": either, "minItems": 1, "maxItems": PlanSchedule::STEPS_MAX },
            { "type": "null" },
        ],
        "description": "Its plan, or its plans over time: `[\"free\", {\"plan\": \"pro\", \"from\": \"2026-12-01\"}]`.",
    })
}

fn plan_name(text: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 32, "pattern": "^[A-Za-z0-9_-]+$", "description": text })
}

fn plans() -> Vec<(&'static str, Value)> {
    let rules = |about: &str| json!({ "type": "array", "items": { "type": "object" }, "description": about });
    let limits = rules("Its own rules, with the fields of rules in files; each has a `name`.");
    let body = json!({
        "extends": { "type": ["string", "null"], "description": "A plan whose rules it has too." },
        "default": flag("The plan of clients without one."),
        "limits": limits,
        "description": text("For people."),
    });
    let id = json!({ "plan_id": plan_name("Its name.") });
    let mut plan = answer(together(&[&body, &id, &stamps()]));
    if let Some(members) = plan.get_mut("properties").and_then(Value::as_object_mut) {
        let rules = rules("The rules that it has, inherited ones included: `plan` brings the rule `rule_id`.");
        members.insert("rules".to_owned(), rules);
        members.insert("source".to_owned(), word(&["database", "file"], "Where it comes from."));
        members.insert("location".to_owned(), json!({ "type": ["string", "null"], "description": "File and line." }));
        members.insert("warnings".to_owned(), builders::warnings());
    }
    vec![
        ("Plan", plan),
        ("PlanInput", input(&together(&[&body, &id]), &["plan_id"])),
        ("PlanBody", input(&body, &[])),
        ("PlanPatch", patch(&body)),
        ("PlanList", answer(json!({ "plans": { "type": "array", "items": builders::reference("Plan") } }))),
    ]
}

fn tokens() -> Vec<(&'static str, Value)> {
    let role = word(&["check", "viewer", "on-call", "operator", "admin"], "What it may do.");
    let namespaces = json!({ "type": ["array", "null"], "items": { "type": "string" }, "description": "In which namespaces; null for all." });
    let token = json!({
        "token_id": text("Its public half."),
        "name": text("For people."),
        "role": role,
        "namespaces": namespaces,
        "created_at": time("When it was made."),
        "created_by": text("Who made it."),
        "expires_at": maybe_time("First instant it opens nothing any more; null for never."),
        "last_used_at": maybe_time("When it was last used, to the minute."),
    });
    let whole = json!({ "token": text("The whole token. It is never told again.") });
    let input = json!({
        "name": json!({ "type": "string", "minLength": 1, "maxLength": 200, "description": "What it is for, for people." }),
        "role": role,
        "namespaces": json!({ "type": "array", "items": label("A namespace."), "minItems": 1, "maxItems": 64, "description": "In which namespaces; all if it is left out." }),
        "expires_at": time("First instant it opens nothing any more. Leave out `expires_in` then."),
        "expires_in": json!({ "type": "string", "pattern": "^[1-9][0-9]{0,3}(s|m|h|d)$", "description": "The same from now on: `90d`." }),
    });
    let mut input = builders::input(&input, &["name", "role"]);
    if let Some(members) = input.as_object_mut() {
        members.insert(
            "not".to_owned(),
            json!({
                "required": ["expires_at", "expires_in"],
                "properties": { "expires_at": { "type": "string" }, "expires_in": { "type": "string" } },
            }),
        );
    }
    vec![
        ("Token", answer(token.clone())),
        // Not `NewToken`: generated Go has a function of that name, the constructor of `Token`.
        ("CreatedToken", described(answer(together(&[&token, &whole])), "A token that was just made.")),
        ("TokenInput", input),
        ("TokenList", answer(json!({ "tokens": { "type": "array", "items": builders::reference("Token") } }))),
    ]
}
