//! Language models behind the gateway: budgets that no stream overruns, and usage that is settled exactly.

use serde_json::Value;

use crate::app::App;
use crate::model::{LETTER, PROMPT_TOKENS};
use crate::rig::{Answer, Caller, Rig, until};

/// A budget of output tokens and one of prompts, per address.
pub fn budgets(output: u64) -> String {
    format!(
        "rules:\n  - {{ name: output, key_by: ip, meter: output_tokens, limit: {{ amount: {output}, window: 7d, \
         algorithm: fixed_window }} }}\n  - {{ name: input, key_by: ip, meter: input_tokens, limit: {{ amount: 1000000, \
         window: 7d, algorithm: fixed_window }} }}\n"
    )
}

/// Routes to a model, and one for each meter that shows what is left of it.
pub fn routes(app: &App, llm: &str) -> String {
    let url = app.url();
    format!(
        "upstreams: {{ api: {{ servers: {url}, ejection: {{ after: 0 }} }} }}\nroutes:\n  - {{ path: /v1/*, upstream: api, \
         cost: {{ llm: {llm} }} }}\n  - {{ path: /output, upstream: api, cost: {{ output_tokens: 0 }} }}\n  - {{ path: \
         /input, upstream: api, cost: {{ input_tokens: 0 }} }}\n"
    )
}

/// Sends a call; its first line has the fields that tell the model what to answer.
pub async fn send(caller: &mut Caller, path: &str, fields: &str, body: &str) {
    let length = body.len();
    caller.send(&format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {length}\r\n\r\n{body}")).await;
}

pub async fn call(rig: &Rig, path: &str, fields: &str, body: &str) -> Answer {
    let mut caller = rig.connect().await;
    send(&mut caller, path, fields, body).await;
    caller.answer().await
}

/// A whole stream of events, without its framing.
pub async fn stream(caller: &mut Caller) -> String {
    let head = caller.head().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(!head.to_ascii_lowercase().contains("content-length"), "{head}");
    dechunked(&caller.until("\r\n0\r\n\r\n").await)
}

fn dechunked(mut text: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&rest[..size]);
        text = rest[size..].strip_prefix("\r\n").unwrap();
    }
    whole
}

/// The JSON of every event.
pub fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Bytes of text that a chat passed on.
pub fn text_bytes(stream: &str) -> usize {
    stream.matches(LETTER).count()
}

/// Waits until this much is left: amounts are settled just after a response has ended.
pub async fn left(rig: &Rig, path: &str, tokens: u64) {
    let wanted = tokens.to_string();
    until(async || rig.get(path).await.field("X-RateLimit-Remaining") == Some(&wanted)).await;
}

const CHAT: &str = "/v1/chat/completions";
const CHAT_STREAM: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Say hello."}]}"#;

#[tokio::test]
async fn a_stream_within_its_budget_is_settled_as_reported() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(1_000), &routes(&app, "{ reserve: 10, step: 10 }"));
    let mut caller = rig.connect().await;
    let fields = "X-Pieces: 40\r\nX-Bytes: 4\r\nX-Tokens: 37\r\nAccept-Encoding: gzip\r\n";
    send(&mut caller, CHAT, fields, CHAT_STREAM).await;
    let text = stream(&mut caller).await;
    assert_eq!(text_bytes(&text), 160);
    assert!(text.ends_with("data: [DONE]\n\n"));
    assert!(!text.contains("\"usage\":{"), "the report was asked for by the gateway alone: {text}");
    let seen = app.seen();
    assert!(seen[0].contains("\"include_usage\":true"), "{seen:?}");
    let (head, body) = seen[0].split_once("\r\n\r\n").unwrap();
    assert!(head.to_ascii_lowercase().contains(&format!("content-length: {}", body.len())), "{head}");
    assert!(head.to_ascii_lowercase().contains("accept-encoding: identity"), "{head}");
    left(&rig, "/output", 1_000 - 37).await;
    left(&rig, "/input", 1_000_000 - PROMPT_TOKENS).await;
}

#[tokio::test]
async fn a_caller_that_asks_for_usage_gets_it() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(5_000), &routes(&app, "{}"));
    let mut caller = rig.connect().await;
    let body = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}"#;
    send(&mut caller, CHAT, "X-Tokens: 5\r\n", body).await;
    let text = stream(&mut caller).await;
    assert_eq!(events(&text).last().unwrap()["usage"]["completion_tokens"], 5);
    assert!(app.seen()[0].ends_with(body), "the request is not changed");
}

#[tokio::test]
async fn a_stream_ends_in_form_when_its_budget_is_spent() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(25), &routes(&app, "{ reserve: 10, step: 10 }"));
    let mut caller = rig.connect().await;
    send(&mut caller, CHAT, "X-Pieces: 500\r\nX-Bytes: 4\r\n", CHAT_STREAM).await;
    let text = stream(&mut caller).await;
    assert_eq!(text_bytes(&text) / 4, 20, "two steps of ten; the third is refused");
    let all = events(&text);
    assert_eq!(all.last().unwrap()["choices"][0]["finish_reason"], "length");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    left(&rig, "/output", 5).await;
}

#[tokio::test]
async fn a_stream_is_cut_with_the_error_of_its_provider_where_the_route_says_so() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(25), &routes(&app, "{ reserve: 10, step: 10, on_exhausted: cut }"));
    let mut caller = rig.connect().await;
    let body = r#"{"model":"m","max_tokens":900,"stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
    send(&mut caller, "/v1/messages", "X-Pieces: 500\r\nX-Bytes: 4\r\n", body).await;
    let text = stream(&mut caller).await;
    assert_eq!(events(&text).last().unwrap()["error"]["type"], "rate_limit_error", "{text}");
    assert!(text_bytes(&text) / 4 <= 20, "{text}");
}

#[tokio::test]
async fn a_messages_stream_stops_its_block_when_its_budget_is_spent() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(25), &routes(&app, "{ reserve: 10, step: 10 }"));
    let mut caller = rig.connect().await;
    let body = r#"{"model":"m","max_tokens":900,"stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
    send(&mut caller, "/v1/messages", "X-Pieces: 500\r\nX-Bytes: 4\r\n", body).await;
    let text = stream(&mut caller).await;
    let types: Vec<Value> = events(&text).iter().rev().take(3).map(|event| event["type"].clone()).collect();
    assert_eq!(types, ["message_stop", "message_delta", "content_block_stop"], "{text}");
    assert!(text_bytes(&text) / 4 <= 20, "{text}");
}

#[tokio::test]
async fn a_caller_that_hangs_up_is_charged_what_was_streamed() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(1_000), &routes(&app, "{ reserve: 500 }"));
    let mut caller = rig.connect().await;
    send(&mut caller, CHAT, "X-Pieces: 90\r\nX-Bytes: 4\r\nX-Pause: 7\r\n", CHAT_STREAM).await;
    for _ in 0..7 {
        caller.until("zzzz").await;
    }
    left(&rig, "/output", 500).await;
    drop(caller);
    left(&rig, "/output", 1_000 - 7).await;
}

#[tokio::test]
async fn a_call_without_a_stream_reserves_its_maximum_and_settles_what_is_reported() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(100), &routes(&app, "{}"));
    let body = r#"{"model":"m","max_tokens":90,"messages":[{"role":"user","content":"Hi"}]}"#;
    for (round, path) in [(1, CHAT), (2, "/v1/messages")] {
        let answer = call(&rig, path, "X-Tokens: 5\r\n", body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.body.contains("zzzz"), "{answer:?}");
        assert!(app.seen().iter().any(|seen| seen.ends_with(body)));
        left(&rig, "/output", 100 - 5 * round).await;
    }
    let refused = call(&rig, CHAT, "", body).await;
    assert_eq!(refused.status, 200, "the maximum fits exactly");
    left(&rig, "/output", 100 - 5 * 2 - 3).await;
    assert_eq!(call(&rig, CHAT, "", body).await.status, 429);
}

#[tokio::test]
async fn refusals_have_the_form_of_the_provider() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(50), &routes(&app, "{}"));
    let body = r#"{"model":"m","max_tokens":90,"messages":[{"role":"user","content":"Hi"}]}"#;
    let refused = call(&rig, CHAT, "", body).await;
    assert_eq!((refused.status, refused.field("Content-Type")), (429, Some("application/json")));
    assert!(refused.field("Retry-After").is_some() || refused.field("X-RateLimit-Remaining").is_some(), "{refused:?}");
    let error: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!(error["error"]["code"], "rate_limit_exceeded");
    let refused = call(&rig, "/v1/messages", "", body).await;
    let error: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!((&error["type"], &error["error"]["type"]), (&"error".into(), &"rate_limit_error".into()));
    assert!(app.seen().is_empty());
}

#[tokio::test]
async fn a_call_that_the_provider_refuses_costs_nothing() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(5_000), &routes(&app, "{}"));
    assert_eq!(call(&rig, CHAT, "X-Status: 400\r\n", CHAT_STREAM).await.status, 400);
    left(&rig, "/output", 5_000).await;
    left(&rig, "/input", 1_000_000).await;
}

#[tokio::test]
async fn what_is_no_call_costs_no_tokens() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(1_000), &routes(&app, "{}"));
    assert_eq!(rig.get("/v1/models").await.status, 200);
    let mut caller = rig.connect().await;
    caller.send(&format!("OPTIONS {CHAT} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    assert_eq!(caller.answer().await.status, 200, "a preflight of a browser");
    let bad = call(&rig, CHAT, "", "{\"messages\":").await;
    assert_eq!(bad.status, 400);
    assert!(bad.body.contains("\"bad_body\""), "{}", bad.body);
    left(&rig, "/output", 1_000).await;
}
