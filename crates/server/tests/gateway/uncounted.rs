//! Meters that routes charge and no rule counts: the caller has not named them, and is not refused for them.

use crate::app::App;
use crate::llm::{budgets, routes, send};
use crate::rig::{Answer, Rig, until};

const ONLY_OUTPUT: &str = "rules: [{ name: output, key_by: ip, meter: output_tokens, limit: { amount: 1000, window: 7d, \
                           algorithm: fixed_window } }]\n";
const CHAT: &str = r#"{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Say hello."}]}"#;

async fn chat(rig: &Rig) -> Answer {
    let mut caller = rig.connect().await;
    send(&mut caller, "/v1/chat/completions", "X-Tokens: 7\r\n", CHAT).await;
    caller.answer().await
}

#[tokio::test]
async fn a_meter_without_a_rule_is_not_charged_and_refuses_nothing() {
    let app = App::start().await;
    let rig = Rig::routed(ONLY_OUTPUT, &routes(&app, "{}"));
    for round in 1..=2 {
        let answer = chat(&rig).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let left = (1_000 - 7 * round).to_string();
        until(async || rig.get("/output").await.field("X-RateLimit-Remaining") == Some(&left)).await;
    }
    assert_eq!(rig.get("/input").await.status, 200);
}

#[tokio::test]
async fn a_stream_of_a_meter_without_a_rule_is_passed_on() {
    let app = App::start().await;
    let rules = "rules: [{ key_by: ip, limit: { requests: 1000, window: 1h } }]\n";
    let rig = Rig::routed(rules, &routes(&app, "{ step: 2, reserve: 2 }"));
    let mut caller = rig.connect().await;
    let body = CHAT.replace("\"model\"", "\"stream\":true,\"model\"");
    send(&mut caller, "/v1/chat/completions", "X-Pieces: 9\r\n", &body).await;
    let text = crate::llm::stream(&mut caller).await;
    assert_eq!(crate::llm::text_bytes(&text), 36, "{text}");
}

#[tokio::test]
async fn rules_that_change_while_the_gateway_runs_change_what_is_counted() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(1_000), &routes(&app, "{}"));
    assert_eq!(chat(&rig).await.status, 200);
    std::fs::write(rig.dir.path().join("rules.yaml"), ONLY_OUTPUT).unwrap();
    until(async || rig.metrics().await.contains("\ntollgate_generation 2")).await;
    assert_eq!(chat(&rig).await.status, 200);
}
