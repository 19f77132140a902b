//! What stands beside calls of a language model on its route, and requests that no budget will ever admit.

use crate::app::App;
use crate::llm::{call, routes};
use crate::rig::Rig;

/// Every request must carry output tokens.
const STRICT: &str = "rules:\n  - { name: strict, key_by: ip, meter: output_tokens, unmetered: reject, limit: { amount: \
                      100, window: 7d, algorithm: fixed_window } }\n";

#[tokio::test]
async fn other_calls_of_the_route_carry_no_tokens_and_pass() {
    let app = App::start().await;
    let rig = Rig::routed(STRICT, &routes(&app, "{ reserve: 10, step: 10 }"));
    assert_eq!(rig.get("/v1/models").await.status, 200);
    let upload = call(&rig, "/v1/files", "", "a file").await;
    assert_eq!((upload.status, upload.field("X-RateLimit-Remaining")), (200, Some("100")), "{}", upload.body);
}

#[tokio::test]
async fn a_request_without_its_meter_is_refused_without_a_word_about_the_rules() {
    let app = App::start().await;
    let routes =
        format!("upstreams: {{ api: {{ servers: {} }} }}\nroutes:\n  - {{ path: /*, upstream: api }}\n", app.url());
    let rig = Rig::routed(STRICT, &routes);
    let refused = rig.get("/v1/models").await;
    assert_eq!((refused.status, app.seen().len()), (400, 0));
    assert!(
        refused.body.contains("\"error\":\"missing_meter\"") && refused.body.contains("\"message\":"),
        "{}",
        refused.body
    );
    assert!(!refused.body.contains("strict") && !refused.body.contains("output_tokens"), "{}", refused.body);
}

#[tokio::test]
async fn a_call_that_no_budget_ever_admits_is_not_told_to_try_again() {
    let app = App::start().await;
    let rig = Rig::routed(STRICT, &routes(&app, "{ reserve: 10, step: 10 }"));
    let body = r#"{"model":"m","max_tokens":900,"messages":[{"role":"user","content":"Hi"}]}"#;
    let refused = call(&rig, "/v1/chat/completions", "", body).await;
    assert_eq!((refused.status, refused.field("Retry-After")), (429, None), "{}", refused.head);
    assert!(refused.body.contains("ask for less") && !refused.body.contains("Retry-After"), "{}", refused.body);
}
