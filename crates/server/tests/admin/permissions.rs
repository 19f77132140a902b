//! Permissions: every endpoint, called by every kind of caller.

use serde_json::json;
use tollgate_admin::{AdminEndpoint, EndpointHeader, HttpMethod, NamespaceScope, RequestBody, endpoints};
use tollgate_control::Instant;
use tollgate_control::record::Role;
use tollgate_core::Span;

use crate::rig::{Answer, Rig};

/// What each row needs, independently of the table: `None` for open endpoints.
fn needed(endpoint: &AdminEndpoint) -> Option<Role> {
    match (endpoint.method, endpoint.path) {
        (_, "/openapi.json" | "/docs" | "/docs/style.css" | "/docs/script.js") => None,
        (_, path) if path.starts_with("/v1/tokens") || path.starts_with("/v1/webhooks") => Some(Role::Admin),
        (HttpMethod::Put, "/v1/mode") => Some(Role::OnCall),
        (HttpMethod::Put | HttpMethod::Delete, "/v1/rules/{rule_id}/mode") => Some(Role::OnCall),
        (_, "/v1/audit/verify") => Some(Role::Admin),
        (HttpMethod::Get, "/v1/rules/export") => Some(Role::Operator),
        (HttpMethod::Post, "/v1/explain" | "/v1/preview") => Some(Role::Viewer),
        (HttpMethod::Get, _) => Some(Role::Viewer),
        _ => Some(Role::Operator),
    }
}

/// The order of roles, independently of the code: a check token permits nothing here.
fn may(own: Role, needed: Role) -> bool {
    let roles: &[Role] = match needed {
        Role::Check => &[],
        Role::Viewer => &[Role::Viewer, Role::OnCall, Role::Operator, Role::Admin],
        Role::OnCall => &[Role::OnCall, Role::Operator, Role::Admin],
        Role::Operator => &[Role::Operator, Role::Admin],
        Role::Admin => &[Role::Admin],
    };
    roles.contains(&own)
}

/// The caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Anonymous,
    Guessing,
    Expired,
    In(Role),
    /// With a token of that role for another namespace.
    Elsewhere(Role),
}

const CALLERS: [Caller; 12] = [
    Caller::Anonymous,
    Caller::Guessing,
    Caller::Expired,
    Caller::In(Role::Check),
    Caller::In(Role::Viewer),
    Caller::In(Role::OnCall),
    Caller::In(Role::Operator),
    Caller::In(Role::Admin),
    Caller::Elsewhere(Role::Viewer),
    Caller::Elsewhere(Role::OnCall),
    Caller::Elsewhere(Role::Operator),
    Caller::Elsewhere(Role::Admin),
];

/// The expected outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Status(u16),
    /// 200 with an empty list.
    Empty,
    /// Any status that is not a refusal of the caller.
    Let,
}

fn expected(endpoint: &AdminEndpoint, caller: Caller) -> Outcome {
    let Some(role) = needed(endpoint) else { return Outcome::Status(200) };
    let is_list = endpoint.path_parameters().next().is_none();
    match caller {
        Caller::Anonymous | Caller::Guessing | Caller::Expired => Outcome::Status(401),
        Caller::In(own) | Caller::Elsewhere(own) if !may(own, role) => Outcome::Status(403),
        Caller::In(_) => Outcome::Let,
        Caller::Elsewhere(_) => match (endpoint.scope, endpoint.writes()) {
            // The namespace is in the body.
            _ if matches!(endpoint.path, "/v1/explain" | "/v1/preview" | "/v1/counters/reset") => Outcome::Status(403),
            // A stream of nothing.
            _ if endpoint.id == "streamEvents" => Outcome::Let,
            (NamespaceScope::Nothing, _) => Outcome::Let,
            (NamespaceScope::Everything, _) => Outcome::Status(403),
            (_, true) => Outcome::Status(403),
            (_, false) if endpoint.path == "/v1/rules/export" => Outcome::Status(404),
            (_, false) if is_list => Outcome::Empty,
            (_, false) => Outcome::Status(404),
        },
    }
}

/// A call that would be done, were it not for who asks. What can be tried without being done is only tried.
fn path(endpoint: &AdminEndpoint) -> String {
    let fill = |part: &'static str| match part {
        "{rule_id}" => "fixture",
        "{override_id}" => "fixture",
        "{plan_id}" => "fixture",
        "{grant_id}" => "fixture",
        "{client_key}" => "key:fixture",
        "{generation}" => "1",
        "{penalty_id}" | "{token_id}" | "{key_id}" | "{webhook_id}" => "nobody",
        "{decision_id}" => "0123456789abcdef",
        part => part,
    };
    let path = endpoint.path.split('/').map(fill).collect::<Vec<&str>>().join("/");
    let mut query = Vec::new();
    for parameter in endpoint.parameters() {
        match parameter.name {
            "namespace" => query.push("namespace=default"),
            "dry_run" => query.push("dry_run=true"),
            "from" if parameter.is_required => query.push("from=1"),
            "to" if parameter.is_required => query.push("to=2"),
            _ => {}
        }
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

fn body(endpoint: &AdminEndpoint, until: &str) -> (&'static str, String) {
    let names = match endpoint.body {
        RequestBody::None => return ("", String::new()),
        RequestBody::Yaml => {
            let text = "rules: [{ name: fixture, limit: { requests: 1, window: 1s } }]";
            return ("Content-Type: application/yaml\r\n", text.to_owned());
        }
        RequestBody::Json(names) | RequestBody::Patch(names) => names,
    };
    let value = match names[0] {
        "RuleInput" | "ShortRuleInput" => json!({ "limit": 2, "window_seconds": 1 }),
        "RulePatch" | "ShortRulePatch" => json!({ "limit": 3 }),
        "ShortRuleUpsert" => json!({ "rule_id": "fixture", "limit": 4, "window_seconds": 1 }),
        "OverrideInput" => {
            json!({ "client_key": "key:other", "rule_id": "fixture", "max_requests": 1, "valid_until": until })
        }
        "GrantInput" => json!({ "client_key": "key:other", "rule_id": "fixture-quota", "amount": 1 }),
        "OverridePatch" => json!({ "max_requests": 9 }),
        "ClientInput" => json!({ "client_key": "key:new", "tier": "free" }),
        "ClientBody" | "ClientPatch" => json!({ "tier": "pro" }),
        "PlanInput" => json!({ "plan_id": "new" }),
        "PlanBody" | "PlanPatch" => json!({ "description": "other" }),
        "TokenInput" => json!({ "name": "made", "role": "viewer", "namespaces": ["other"] }),
        "KeyInput" => json!({ "client_key": "key:new" }),
        "WebhookInput" => json!({ "url": "https://hooks.example.com/x" }),
        "KeyRotation" => json!({ "overlap": "1h" }),
        "ModeInput" | "RuleModeInput" => json!({ "mode": "enforce" }),
        "ExplainInput" => json!({ "client_key": "user:1" }),
        "PreviewInput" => json!({ "namespace": "default", "rule": "fixture", "limit": { "requests": 2 } }),
        "ResetInput" => json!({ "client": "user:1", "namespace": "default" }),
        other => panic!("no example of {other}"),
    };
    ("Content-Type: application/json\r\n", value.to_string())
}

async fn fixtures(rig: &Rig) {
    let until = rig.in_seconds(3600);
    rig.send("POST", "/v1/rules", json!({ "rule_id": "fixture", "limit": 1, "window_seconds": 1 })).await.expect(201);
    rig.send("POST", "/v1/clients", json!({ "client_key": "key:fixture", "tier": "free" })).await.expect(201);
    let change = json!({ "override_id": "fixture", "client_key": "key:fixture", "rule_id": "fixture", "max_requests": 5, "valid_until": until });
    rig.send("POST", "/v1/overrides", change).await.expect(201);
    rig.send("POST", "/v1/plans", json!({ "plan_id": "fixture" })).await.expect(201);
    let quota = json!({ "rule_id": "fixture-quota", "quota": { "amount": 1, "every": "day" } });
    rig.send("POST", "/v1/rules", quota).await.expect(201);
    let grant = json!({ "grant_id": "fixture", "client_key": "key:fixture", "rule_id": "fixture-quota", "amount": 5 });
    rig.send("POST", "/v1/grants", grant).await.expect(201);
}

/// True if a response shows no record.
fn is_empty(answer: &Answer) -> bool {
    let json = answer.json();
    let mut lists = json.as_object().unwrap().values().filter_map(|value| value.as_array());
    answer.status == 200 && lists.all(Vec::is_empty) && !answer.text().contains("fixture")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_endpoint_admits_exactly_the_permitted_callers() {
    let rig = Rig::start().await;
    fixtures(&rig).await;
    let expired = rig.token_until(Role::Admin, None, Some(Instant(rig.now().0 + 1_000_000))).await;
    rig.clock.advance(Span::from_secs(1));
    let mut elsewhere = Vec::new();
    for role in Role::ALL {
        elsewhere.push((role, rig.token(role, Some(&["other"])).await));
    }
    let (check, on_call) = (rig.token(Role::Check, None).await, rig.token(Role::OnCall, None).await);
    let token = |caller: Caller| match caller {
        Caller::Anonymous => None,
        Caller::Guessing => Some("tg_nobody_knowsthis"),
        Caller::Expired => Some(expired.as_str()),
        Caller::In(Role::Check) => Some(check.as_str()),
        Caller::In(Role::OnCall) => Some(on_call.as_str()),
        Caller::In(Role::Viewer) => Some(rig.viewer.as_str()),
        Caller::In(Role::Operator) => Some(rig.operator.as_str()),
        Caller::In(Role::Admin) => Some(rig.admin.as_str()),
        Caller::Elsewhere(own) => elsewhere.iter().find(|(role, _)| *role == own).map(|(_, token)| token.as_str()),
    };
    let until = rig.in_seconds(7200);
    let mut wrong = Vec::new();
    for endpoint in endpoints() {
        for caller in CALLERS {
            let (media, body) = body(endpoint, &until);
            let mut fields =
                token(caller).map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
            fields += media;
            if endpoint.headers.contains(&EndpointHeader::IfMatch) {
                fields += "If-Match: *\r\n";
            }
            let before = rig.control.as_ref().unwrap().state().await.unwrap().generation;
            let answer = match endpoint.id {
                "streamEvents" => rig.head_of(&path(endpoint), &fields).await,
                _ => rig.raw(endpoint.method.name(), &path(endpoint), &fields, body.as_bytes()).await,
            };
            let after = rig.control.as_ref().unwrap().state().await.unwrap().generation;
            let expected = expected(endpoint, caller);
            let fits = match expected {
                Outcome::Status(status) => answer.status == status && before == after,
                Outcome::Empty => is_empty(&answer),
                Outcome::Let => matches!(answer.status, 200..=299 | 404),
            };
            if !fits {
                wrong.push(format!(
                    "{endpoint:?} by {caller:?}: {} instead of {expected:?}: {}",
                    answer.status,
                    answer.text()
                ));
            }
            rig.clock.advance(Span::from_secs(6)); // so that guessing is only refused for what it is
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_several_namespaces_says_which_it_means() {
    let rig = Rig::start().await;
    let token = rig.token(Role::Operator, Some(&["a", "b"])).await;
    let body = json!({ "rule_id": "r", "limit": 1, "window_seconds": 1 }).to_string();
    let vague = rig.call_as(&token, "POST", "/v1/rules", crate::rig::JSON, &body).await;
    assert_eq!(vague.expect(400).code(), "namespace_needed");
    assert_eq!(rig.call_as(&token, "GET", "/v1/rules", "", "").await.expect(200).json()["rules"], json!([]));
    assert_eq!(rig.call_as(&token, "GET", "/v1/clients", "", "").await.expect(400).code(), "namespace_needed");
    let made = rig.call_as(&token, "POST", "/v1/rules?namespace=b", crate::rig::JSON, &body).await.expect(201);
    assert_eq!(made.json()["namespace"], "b");
    let other = rig.call_as(&token, "POST", "/v1/rules?namespace=c", crate::rig::JSON, &body).await;
    assert_eq!(other.expect(403).code(), "other_namespace");
    let both = rig.token(Role::Viewer, Some(&["default", "b"])).await;
    rig.call_as(&both, "GET", "/v1/rules/r", "", "").await.expect(404);
    rig.call_as(&both, "GET", "/v1/rules/r?namespace=b", "", "").await.expect(200);
    let forced = json!({ "rule_id": "s", "namespace": "c", "limit": 1, "window_seconds": 1 }).to_string();
    let forced = rig.call_as(&token, "POST", "/v1/rules?namespace=b", crate::rig::JSON, &forced).await.expect(422);
    assert_eq!(forced.faults(), [("namespace".to_owned(), "other-thing".to_owned())]);
}
