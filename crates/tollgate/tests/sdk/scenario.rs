//! A table as it is written. An unknown member would be a check that is never made, so it is refused.

use std::fs;

use serde_json::Value;

use crate::languages::root;
use crate::limiter::LimiterSettings;
use crate::program::ProgramSettings;

/// A scenario: what runs, and what happens to it.
pub struct Scenario {
    pub name: String,
    pub limiter: LimiterSettings,
    /// Settings of the application or the client.
    pub program: ProgramSettings,
    /// An application takes part, not a client.
    pub is_app: bool,
    /// Frameworks that cannot do what it is about.
    except: Vec<String>,
    pub steps: Vec<Value>,
}

const SCENARIO: &[&str] = &["name", "note", "app", "program", "server", "except", "steps", "send", "expect"];
pub const STEP: &[&str] = &[
    "send",
    "expect",
    "by_framework",
    "ask",
    "times",
    "eventually",
    "within_ms",
    "wait_for",
    "save",
    "server",
    "asked_at_most",
];
const PROGRAM: &[&str] = &["on_error", "fallback", "timeout_ms", "trusted_proxies", "shadow", "token"];
pub const REQUEST: &[&str] = &["method", "target", "headers", "from"];
pub const RESPONSE: &[&str] = &["status", "headers", "absent", "body", "body_has", "body_lacks"];

/// The scenarios of a table.
pub fn read(table: &str) -> Vec<Scenario> {
    let path = root().join(format!("sdk/conformance/{table}.json"));
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let json: Value = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    only(&json, &["scenarios"]);
    json["scenarios"].as_array().expect("a list of scenarios").iter().map(scenario).collect()
}

fn scenario(json: &Value) -> Scenario {
    only(json, SCENARIO);
    let server = &json["server"];
    only(server, &["token", "store"]);
    let limiter = LimiterSettings { wants_token: server["token"] == true, store_is_away: server["store"] == "away" };
    // A scenario of one step may be written without a list.
    let steps = json["steps"].as_array().cloned();
    let steps = steps.unwrap_or_else(|| vec![serde_json::json!({ "send": json["send"], "expect": json["expect"] })]);
    steps.iter().for_each(|step| only(step, STEP));
    let is_app = !json["app"].is_null();
    let program = program(if is_app { &json["app"] } else { &json["program"] });
    let except =
        json["except"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()).collect();
    Scenario { name: json["name"].as_str().expect("a name").to_owned(), limiter, program, is_app, except, steps }
}

impl Scenario {
    /// Whether it is for a framework; for clients all are.
    pub fn is_for(&self, framework: Option<&str>) -> bool {
        framework.is_none_or(|framework| self.except.iter().all(|except| except != framework))
    }
}

fn program(json: &Value) -> ProgramSettings {
    only(json, PROGRAM);
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "1".to_owned(),
        value => value.to_string(),
    };
    let variables = [
        ("CONFORMANCE_ON_ERROR", "on_error"),
        ("CONFORMANCE_FALLBACK", "fallback"),
        ("CONFORMANCE_TIMEOUT_MS", "timeout_ms"),
        ("CONFORMANCE_TRUSTED_PROXIES", "trusted_proxies"),
        ("CONFORMANCE_SHADOW", "shadow"),
    ];
    let set = variables.iter().filter(|(_, member)| !json[member].is_null());
    ProgramSettings {
        variables: set.map(|(variable, member)| (*variable, text(&json[member]))).collect(),
        token: json["token"].as_str().map(str::to_owned),
    }
}

/// Panics with a member that is none of these.
pub fn only(json: &Value, members: &[&str]) {
    let unknown = json.as_object().and_then(|object| object.keys().find(|member| !members.contains(&member.as_str())));
    assert!(unknown.is_none(), "{unknown:?} is none of {members:?} in {json}");
}
