//! How refusals look: bodies of a route's own, pages for browsers, and where to read on.

use serde_json::Value;

use crate::app::App;
use crate::rig::Rig;
use crate::upstreams::closed_port;

const NONE: &str = "rules:
  - { name: some_rule, key_by: ip, match: { endpoint: '/none/*' }, limit: { requests: 0, window: 1h } }
  - { name: own, key_by: ip, match: { endpoint: '/own/*' }, limit: { requests: 0, window: 1h },
      error_code: plan_limit, doc_url: 'https://example.com/own' }
";

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";

fn routes(app: &App, dead: &str, refusals: &str, more: &str) -> String {
    format!(
        "upstreams: {{ api: {{ servers: {}, max_in_flight: 1 }}, dead: {{ servers: {dead} }} }}
routes:
  - {{ path: /dead/*, upstream: dead, refusals: {refusals} }}
  - {{ path: /*, upstream: api, refusals: {refusals}{more} }}
",
        app.url()
    )
}

async fn rig(refusals: &str, more: &str) -> (App, Rig, tokio::net::TcpSocket) {
    let app = App::start().await;
    let (socket, dead) = closed_port();
    let rig = Rig::routed(NONE, &routes(&app, &dead, refusals, more));
    (app, rig, socket)
}

fn json(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

#[tokio::test]
async fn a_page_about_the_refusal_is_named_in_every_problem_document() {
    let (_app, rig, _socket) = rig("{ doc_url: 'https://docs.example.com/{status}/{code}?rule={rule}' }", "").await;
    let denied = json(&rig.get("/none/x").await.body);
    assert_eq!(denied["doc_url"], "https://docs.example.com/429/cost_too_high?rule=some_rule");
    assert_eq!(json(&rig.get("/own/x").await.body)["doc_url"], "https://example.com/own", "the rule's own page");
    let broken = json(&rig.get("/dead/x").await.body);
    assert_eq!(broken["doc_url"], "https://docs.example.com/502/upstream_unreachable?rule=");
    assert_eq!((&broken["error"], &broken["code"]), (&"upstream_unreachable".into(), &"upstream_unreachable".into()));
    assert!(broken["message"].as_str().is_some_and(|message| !message.is_empty()), "{broken}");
}

#[tokio::test]
async fn a_route_has_bodies_of_its_own_by_status() {
    let refusals = r#"{ bodies: [
      { status: [429, 403], content_type: application/json, body: '{"e":"{code}","m":"{message}","r":"{rule}","w":{retry_after},"s":{status}}' },
      { status: 502, content_type: text/plain, body: "Sorry: {title}. {decision_id}" } ] }"#;
    for (more, status) in [("", 429), (", denied_status: 403", 403), (", denied_status: 503", 503)] {
        let (_app, rig, _socket) = rig(refusals, more).await;
        let denied = rig.get("/none/x").await;
        assert_eq!(denied.status, status);
        let body = json(&denied.body);
        if status == 503 {
            assert_eq!(body["status"], 503, "no body is for it: the problem document of a limit");
            continue;
        }
        assert_eq!(denied.field("Content-Type"), Some("application/json"));
        assert_eq!(denied.field("X-Content-Type-Options"), Some("nosniff"));
        assert_eq!((&body["e"], &body["r"]), (&"cost_too_high".into(), &"some_rule".into()));
        assert_eq!((&body["s"], &body["w"]), (&status.into(), &Value::Null), "a limit of zero never passes");
        // A code of the rule's own says that its limit is reached, which a limit of zero never is.
        assert_eq!(json(&rig.get("/own/x").await.body)["e"], "cost_too_high");
        let broken = rig.get("/dead/x").await;
        let id = broken.field("X-Decision-Id").unwrap().to_owned();
        assert_eq!(
            (broken.field("Content-Type"), broken.body.clone()),
            (Some("text/plain"), format!("Sorry: Bad Gateway. {id}"))
        );
    }
}

#[tokio::test]
async fn browsers_get_a_page_and_programs_a_document() {
    let (app, rig, _socket) = rig("{ html: true, doc_url: 'https://docs.example.com/{code}' }", "").await;
    let page = rig.get_with("/none/x", BROWSER).await;
    assert_eq!((page.status, page.field("Content-Type")), (429, Some("text/html; charset=utf-8")));
    assert!(page.field("Content-Security-Policy").is_some_and(|policy| policy.contains("default-src 'none'")));
    assert!(page.body.contains("<h1>Too Many Requests</h1>"), "{}", page.body);
    assert!(page.body.contains("href=\"https://docs.example.com/cost_too_high\""), "{}", page.body);
    for internal in ["generation", "store", "127.0.0.1"] {
        assert!(!page.body.contains(internal), "{internal}: {}", page.body);
    }
    let document = rig.get("/none/x").await;
    assert_eq!(document.field("Content-Type"), Some("application/problem+json"));
    assert_eq!(document.field("Vary"), Some("accept"), "caches keep the two apart");
    // An upstream that is full: 503, in the same form.
    let mut caller = rig.connect().await;
    caller.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await;
    crate::rig::until(async || !app.seen().is_empty()).await;
    let shed = rig.get_with("/x", BROWSER).await;
    assert_eq!((shed.status, shed.field("Content-Type")), (503, Some("text/html; charset=utf-8")));
    assert!(shed.field("Retry-After").is_some() && shed.body.contains("Service Unavailable"), "{}", shed.body);
}

/// How values are escaped is tested where it is done: names of rules need none.
#[tokio::test]
async fn a_route_has_a_page_of_its_own() {
    let (_app, rig, _socket) = rig("{ html: '<p title=\"{status}\">{rule}: {message}</p>' }", "").await;
    let page = rig.get_with("/none/x", BROWSER).await;
    assert_eq!(page.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert!(page.body.starts_with("<p title=\"429\">some_rule: "), "{}", page.body);
}
