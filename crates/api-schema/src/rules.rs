//! Schemas of rules, in the full and in the short form.

use serde_json::{Value, json};
use tollgate_rules::check;
use tollgate_rules::spec::PenaltySpec;

use super::builders::{
    self, answer, count, described, flag, label, list, object, patch, rule_name, stamps, text, time, together, word,
};

const ALGORITHMS: &[&str] = &[
    "token_bucket",
    "gcra",
    "leaky_bucket",
    "fixed_window",
    "sliding_window_log",
    "sliding_window_counter",
    "sliding_window",
    "concurrency",
];

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let own = json!({
        "rule_id": rule_name("Its id: its name in decisions, in metrics and in rules files. Made up if it is left out."),
        "name": json!({ "type": "string", "maxLength": 64, "pattern": "^[A-Za-z0-9._-]*$", "description": "What people call it, if not by its id." }),
        "enabled": flag("False keeps it and leaves it out of decisions."),
    });
    // Rules of Envoy's files, and rows older than the pattern, have other names.
    let shown = together(&[
        &own,
        &json!({ "rule_id": label("Its id: its name in decisions, in metrics and in rules files."), "name": text("What people call it, if not by its id.") }),
    ]);
    let source = json!({
        "source": word(&["database", "file", "envoy"], "Where it comes from. Rules of files are changed in the file."),
    });
    let location = json!({
        "location": text("Of a rule of a file: the file and the line. Of a rule of a plan in the database: the plan."),
        "plan": text("Of a rule of a plan: the plan that contains it."),
        "mode_override": described(
            answer(json!({ "mode": mode(), "reason": text("What for."), "since": time("Since when.") })),
            "The switch of the rule, if there is one: this mode holds instead of the rule's own.",
        ),
        "warnings": builders::warnings(),
    });
    let document = document();
    let input = together(&[&document, &own]);
    let short = short();
    let short_input = together(&[&short, &own]);
    let mut rule = answer(together(&[&shown, &source, &stamps()]));
    if let Some(members) = rule.get_mut("properties").and_then(Value::as_object_mut) {
        members.extend(together(&[&document, &location]).as_object().cloned().unwrap_or_default());
    }
    vec![
        ("Rule", described(rule, "A rule in its full form: the fields of a rules file, and what it is stored with.")),
        // That one of the two is required is only described: client generators read `anyOf` as a choice of types.
        ("RuleInput", described(builders::input(&input, &[]), "A rule: with a `limit`, or `unlimited`.")),
        ("RulePatch", patch(&together(&[&without(&input, "rule_id"), &patched_parts()]))),
        ("RuleList", list("rules", "Rule")),
        (
            "RuleMode",
            answer(together(&[
                &json!({ "rule_id": text("Of which rule."), "mode": mode(), "reason": text("What for.") }),
                &stamps(),
            ])),
        ),
        (
            "RuleModeInput",
            builders::input(&json!({ "mode": mode(), "reason": text("What for, for people.") }), &["mode"]),
        ),
        ("Limit", object(limit(), &[])),
        ("Match", conditions()),
        ("ShortRule", short_rule()),
        ("ShortRuleInput", builders::input(&short_input, &["limit", "window_seconds"])),
        ("ShortRulePatch", patch(&without(&short_input, "rule_id"))),
        ("ShortRuleUpsert", builders::input(&short_input, &["rule_id"])),
        (
            "ShortRuleList",
            json!({
                "type": "object",
                "properties": {
                    "rules": { "type": "array", "items": builders::reference("ShortRule") },
                    "next_cursor": text("Where the next piece begins, if there is more."),
                },
                "required": ["rules"],
            }),
        ),
        ("Deleted", answer(json!({ "deleted": { "const": true } }))),
    ]
}

fn mode() -> Value {
    word(&["enforce", "shadow", "off"], "The mode that holds.")
}

fn without(members: &Value, name: &str) -> Value {
    let mut members = members.clone();
    if let Some(members) = members.as_object_mut() {
        members.remove(name);
    }
    members
}

/// Partial limits and conditions.
fn patched_parts() -> Value {
    json!({ "limit": patch(&limit()), "match": builders::patch_entries(conditions()) })
}

fn penalty() -> Value {
    let span =
        |text: &str| json!({ "type": "string", "pattern": "^[1-9][0-9]*(ns|us|ms|s|m|h|d)$", "description": text });
    let whole = |text: &str, most: u64| json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": most, "description": text });
    let members = json!({
        "after": whole("Denials that bring the penalty.", PenaltySpec::AFTER_MAX),
        "within": span("Within this time."),
        "block": span("How long the first one lasts."),
        "growth": whole("How many times longer each further one is; default 1.", 100),
        "max": span("The longest; default 1d."),
    });
    builders::described(
        builders::object(members, &["after", "within", "block"]),
        "A client that is refused so often is refused altogether for a while.",
    )
}

/// The fields of a rule in a rules file, without its name.
pub(super) fn document() -> Value {
    json!({
        "description": json!({ "type": "string", "minLength": 1, "description": "For people." }),
        "resource": label("What callers are told instead of the name."),
        "match": builders::reference("Match"),
        "case": word(&["sensitive", "insensitive"], "Whether paths differ by case."),
        "key_by": key_by(),
        "missing": word(&["skip", "share"], "What happens to requests that lack a key part."),
        "meter": meter(),
        "unmetered": word(&["skip", "reject"], "What happens to requests that carry none of its meters."),
        "limit": builders::reference("Limit"),
        "quota": quota(),
        "unlimited": flag("Exempts what it matches."),
        "replaces": json!({
            "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "array", "items": { "type": "string", "minLength": 1 } }],
            "description": "Rules that do not apply where this one does.",
        }),
        "cost": cost(),
        "mode": word(&["enforce", "shadow", "off"], "Whether it is enforced."),
        "consistency": word(&["exact", "leased", "async", "local"], "How nodes share its buckets."),
        "lease": lease(),
        "on_fail": word(&["allow", "deny", "local"], "What happens when the store does not answer."),
        "count_denied": flag("Charges refused requests too."),
        "accept_limits": flag("A limit that a request brings along replaces requests and window of this one."),
        "penalty": penalty(),
        "max_debt": count("How far forced usage may go beyond the limit.", check::REQUESTS_MAX),
        "soft": json!({ "type": "string", "pattern": "^([1-9][0-9]{0,2}|1000)%$", "description": "Admits above the limit with falling probability, up to this excess." }),
        "shards": json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": check::SHARDS_MAX, "description": "Over how many buckets one hot key is spread." }),
        "max_memory": json!({ "type": "string", "pattern": "^([1-9][0-9]?|100)%$", "description": "Share of the store's memory its buckets may take." }),
        "doc_url": json!({ "type": "string", "pattern": "^https?://[!-~]+$", "description": "A page about this limit, for refused callers." }),
        "error_code": label("A stable code for refused callers, instead of `rate_limited`."),
    })
}

/// The fields of a limit.
pub(super) fn limit() -> Value {
    let duration = |text: &str| json!({ "type": "string", "pattern": "^([0-9]+(ms|us|ns|s|m|h|d))+$", "description": text, "examples": ["1s", "250ms", "1h"] });
    json!({
        "requests": count("Units per window; 0 refuses everything.", check::REQUESTS_MAX),
        "amount": count("Another spelling of `requests`, for meters that do not count requests.", check::REQUESTS_MAX),
        "window": duration("Length of the window."),
        "algorithm": word(ALGORITHMS, "How it is measured."),
        "burst": count("Capacity of a bucket, when it differs from `requests`.", check::BURST_MAX),
        "slots": count("Requests in flight, of `concurrency`.", check::SLOTS_MAX),
        "slot_ttl": duration("When a slot whose holder died comes back."),
        "reserved": json!({ "type": "string", "pattern": "^([1-9][0-9]?|100)%$", "description": "Share of the slots that only requests of one class may use; what the limit refuses is shed (503)." }),
        "reserved_for": json!({ "type": "string", "minLength": 1, "maxLength": 64, "description": "The class: the value of the attribute `priority` of those requests; `critical` by default." }),
        "max_delay": duration("How long a request may be asked to wait; makes a leaky bucket a queue."),
        "align": word(&["clock", "key"], "Where windows start."),
    })
}

fn conditions() -> Value {
    let pattern = json!({ "type": ["string", "integer", "boolean"], "minLength": 1 });
    json!({
        "type": "object",
        "description": "Conditions by attribute: a pattern or a list of them; `*` stands for anything, `!` for not.",
        "propertyNames": { "pattern": "^[a-z][a-z0-9_.-]{0,63}$" },
        "additionalProperties": { "anyOf": [pattern, { "type": "array", "items": pattern, "minItems": 1 }] },
        "examples": [{ "tier": "free", "endpoint": "POST /api/*" }],
    })
}

fn key_by() -> Value {
    let attribute = json!({ "type": "string", "pattern": r"^[a-z][a-z0-9_.|:-]*$" });
    json!({
        "anyOf": [attribute, { "type": "array", "items": attribute, "minItems": 1, "maxItems": 8 }],
        "description": "What requests are counted by: `api_key`, `user_id:endpoint`, `api_key|ip`, `global`.",
    })
}

fn quota() -> Value {
    let percent = |text: &str| json!({ "type": "string", "pattern": "^([1-9][0-9]?|100)%$", "description": text });
    json!({
        "type": "object",
        "description": "Instead of a limit: an amount per calendar period.",
        "required": ["amount", "every"],
        "additionalProperties": false,
        "properties": {
            "amount": count("Units per period; 0 refuses everything.", check::REQUESTS_MAX),
            "every": word(&["day", "week", "month", "year", "never"], "The period; never is one amount for ever."),
            "time_zone": json!({ "type": "string", "minLength": 1, "description": "A zone of the IANA database; UTC by default." }),
            "anchor": json!({ "type": ["string", "integer"], "description": "Where a period starts: a time, a weekday, a day of the month, or MM-DD." }),
            "rollover": percent("Most that is carried into the next period."),
            "overdraft": percent("Admitted above the amount."),
            "marks": json!({
                "type": "array",
                "maxItems": 16,
                "items": { "type": "string", "pattern": "^([1-9][0-9]?|1[0-9][0-9]|200)%$" },
                "description": "Percentages that are reported when usage reaches them.",
            }),
        },
    })
}

fn meter() -> Value {
    let name = json!({ "type": "string", "pattern": "^[a-z][a-z0-9_.-]{0,63}$" });
    let weight = json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": check::WEIGHT_MAX });
    let weights = json!({
        "type": "object",
        "propertyNames": { "pattern": "^[a-z][a-z0-9_.-]{0,63}$" },
        "additionalProperties": weight,
        "minProperties": 1,
        "maxProperties": check::METERS_MAX,
    });
    json!({
        "anyOf": [name, weights],
        "description": "What it counts: a meter of requests such as `output_tokens`, or several with weights; `requests` if it is left out.",
        "examples": ["output_tokens", { "input_tokens": 1, "output_tokens": 4 }],
    })
}

fn cost() -> Value {
    let number = count("What a request costs.", check::COST_MAX);
    let case = object(json!({ "match": builders::reference("Match"), "cost": number }), &["cost"]);
    json!({ "anyOf": [number, { "type": "array", "items": case, "minItems": 1 }] })
}

fn lease() -> Value {
    let one = |name: &str| json!({ "type": "object", "properties": { name: { "type": "integer", "format": "int64", "minimum": 1 } }, "required": [name], "additionalProperties": false });
    json!({ "oneOf": [one("tokens"), one("seconds")], "description": "Size of one lease." })
}

fn short() -> Value {
    json!({
        "endpoint_pattern": json!({ "type": "string", "minLength": 1, "description": "Which requests: `/api/orders`, `POST /api/*`, `*`.", "examples": ["/api/orders"] }),
        "key_type": json!({ "type": "string", "pattern": r"^[a-z][a-z0-9_.|:-]*$", "description": "What is counted by: user, api_key, ip, org, endpoint, global, any attribute, or several joined by `:`.", "examples": ["user"] }),
        "limit": count("How many requests per window.", check::REQUESTS_MAX),
        "window_seconds": json!({ "type": "number", "minimum": 0.001, "maximum": 31_622_400, "description": "Length of the window, to the millisecond." }),
        "tier": json!({ "type": "string", "minLength": 1, "description": "Only clients of this tier." }),
        "algorithm": word(ALGORITHMS, "How it is measured."),
        "burst": count("Capacity, when it differs from `limit`.", check::BURST_MAX),
    })
}

fn short_rule() -> Value {
    let pattern = json!({ "type": ["string", "integer", "boolean"] });
    let patterns = json!({ "type": "array", "items": pattern });
    let mut rule = answer(json!({
        "rule_id": text("Its id."),
        "endpoint_pattern": { "anyOf": [pattern, patterns], "description": "Which requests; a list if there are several." },
        "key_type": text("What is counted by."),
        "limit": { "type": ["integer", "null"], "format": "int64", "description": "How many requests per window, or slots; null if unlimited." },
        "window_seconds": { "type": ["number", "null"], "description": "Length of the window." },
        "algorithm": { "type": ["string", "null"], "description": "How it is counted; null if unlimited." },
        "tier": { "anyOf": [pattern, patterns, { "type": "null" }], "description": "Which tiers; null for all." },
        "created_at": builders::maybe_time("When it was made."),
        "updated_at": builders::maybe_time("When it was changed."),
    }));
    if let Some(members) = rule.get_mut("properties").and_then(Value::as_object_mut) {
        members.insert("warnings".to_owned(), builders::warnings());
    }
    rule
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(members: &Value) -> Vec<&str> {
        members.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn schemas_have_the_fields_of_the_reader() {
        let sorted = |known: &[&'static str], leave: &str| {
            let mut known: Vec<&str> = known.iter().copied().filter(|name| *name != leave).collect();
            known.sort_unstable();
            known
        };
        assert_eq!(names(&document()), sorted(tollgate_rules::read::RULE_FIELDS, "name"));
        assert_eq!(names(&limit()), sorted(tollgate_rules::read::LIMIT_FIELDS, ""));
    }
}
