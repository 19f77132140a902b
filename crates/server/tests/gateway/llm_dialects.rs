//! Every API of language models through the gateway, from end to end: bodies and streams pass as the provider sent them,
//! are settled as it reported, and end in its form when the budget is spent.

use serde_json::{Value, json};

use crate::app::App;
use crate::llm::{budgets, call, events, left, send, stream, text_bytes};
use crate::model::PROMPT_TOKENS;
use crate::model_forms::{Form, Generated};
use crate::rig::Rig;

const INPUT: u64 = 1_000_000;

/// Path, and a call that asks for a stream where the body says so.
const STREAMS: [(&str, &str); 6] = [
    ("/v1/chat/completions", r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#),
    ("/v1/completions", r#"{"model":"m","max_tokens":900,"stream":true,"prompt":"Hi"}"#),
    ("/v1/responses", r#"{"model":"m","stream":true,"input":"Hi"}"#),
    ("/v1/messages", r#"{"model":"m","max_tokens":900,"stream":true,"messages":[{"role":"user","content":"Hi"}]}"#),
    ("/v1beta/models/m:streamGenerateContent?alt=sse", r#"{"contents":[{"parts":[{"text":"Hi"}]}]}"#),
    ("/v1beta/models/m:streamGenerateContent", r#"{"contents":[{"parts":[{"text":"Hi"}]}]}"#),
];

/// The same calls for one body, with the most tokens that it may have.
const BODIES: [(&str, &str); 6] = [
    ("/v1/chat/completions", r#"{"model":"m","max_completion_tokens":90,"messages":[{"role":"user","content":"Hi"}]}"#),
    ("/v1/completions", r#"{"model":"m","max_tokens":90,"prompt":"Hi"}"#),
    ("/v1/responses", r#"{"model":"m","max_output_tokens":90,"input":"Hi"}"#),
    ("/v1/messages", r#"{"model":"m","max_tokens":90,"messages":[{"role":"user","content":"Hi"}]}"#),
    (
        "/v1beta/models/m:generateContent",
        r#"{"contents":[{"parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":90}}"#,
    ),
    ("/v1/embeddings", r#"{"model":"m","input":"Hi"}"#),
];

/// A gateway whose models are everywhere but at the paths that show what is left.
fn rig(app: &App, output: u64, llm: &str) -> Rig {
    let url = app.url();
    let routes = format!(
        "upstreams: {{ api: {{ servers: {url}, ejection: {{ after: 0 }} }} }}\nroutes:\n  - {{ path: /output, upstream: api, \
         cost: {{ output_tokens: 0 }} }}\n  - {{ path: /input, upstream: api, cost: {{ input_tokens: 0 }} }}\n  - {{ \
         upstream: api, cost: {{ llm: {llm} }} }}\n"
    );
    Rig::routed(&budgets(output), &routes)
}

/// The last request that the provider got to this path: its body.
fn sent_body(app: &App, path: &str) -> String {
    let seen = app.seen();
    let request = seen.iter().rev().find(|seen| seen.starts_with(&format!("POST {path} "))).expect("the call");
    request.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// A stream as the provider sends it.
fn whole_stream(path: &str, generated: &Generated) -> String {
    let form = Form::of_path(path).unwrap();
    let pieces: String = (0..generated.pieces).map(|sent| form.piece(sent, generated)).collect();
    form.start() + &pieces + &form.end(generated)
}

#[tokio::test]
async fn a_body_of_every_dialect_passes_unchanged_and_is_settled_as_reported() {
    for (path, body) in BODIES {
        let app = App::start().await;
        let rig = rig(&app, 100, "{}");
        let answer = call(&rig, path, "X-Pieces: 2\r\nX-Tokens: 5\r\n", body).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let generated = Generated { piece: "zzzz".to_owned(), pieces: 2, tokens: 5, reports: false };
        let form = Form::of_path(path).unwrap();
        assert_eq!(answer.body, form.body(&generated), "{path}");
        assert_eq!(sent_body(&app, path), body, "{path}: no byte of the call is changed");
        left(&rig, "/output", if form == Form::Embeddings { 100 } else { 95 }).await;
        left(&rig, "/input", INPUT - PROMPT_TOKENS).await;
        // The maximum is reserved: 95 are left, and the second call needs 90 of them; a third does not fit.
        if form != Form::Embeddings {
            assert_eq!(call(&rig, path, "X-Tokens: 6\r\n", body).await.status, 200, "{path}");
            left(&rig, "/output", 89).await;
            assert_eq!(call(&rig, path, "", body).await.status, 429, "{path}");
        }
    }
}

#[tokio::test]
async fn a_stream_of_every_dialect_passes_unchanged_and_is_settled_as_reported() {
    for (path, body) in STREAMS {
        let app = App::start().await;
        let rig = rig(&app, 1_000, "{ reserve: 10, step: 10 }");
        let mut caller = rig.connect().await;
        send(&mut caller, path, "X-Pieces: 40\r\nX-Bytes: 4\r\nX-Tokens: 37\r\n", body).await;
        let text = stream(&mut caller).await;
        // The report that the gateway asks for in the caller's place is taken out again.
        let generated = Generated { piece: "zzzz".to_owned(), pieces: 40, tokens: 37, reports: false };
        assert_eq!(text, whole_stream(path, &generated), "{path}");
        left(&rig, "/output", 1_000 - 37).await;
        left(&rig, "/input", INPUT - PROMPT_TOKENS).await;
        let sent = sent_body(&app, path);
        match Form::of_path(path).unwrap() {
            Form::Chat | Form::Completions => {
                assert_eq!(sent.replacen(r#""stream_options":{"include_usage":true},"#, "", 1), body, "{path}");
                assert_ne!(sent, body, "{path}: the report is asked for");
            }
            _ => assert_eq!(sent, body, "{path}: these report without being asked"),
        }
    }
}

/// What a caller says of `include_usage` decides what it gets; the gateway gets its report all the same.
#[tokio::test]
async fn callers_get_the_report_of_usage_that_they_asked_for_and_no_other() {
    for path in ["/v1/chat/completions", "/v1/completions"] {
        for (options, asks) in [
            (r#""stream_options":{"include_usage":true}"#, true),
            (r#""stream_options":{"include_usage":false}"#, false),
            (r#""stream_options":{}"#, false),
            (r#""stream_options":null"#, false),
            (r#""stream_options":{"include_obfuscation":false}"#, false),
        ] {
            let app = App::start().await;
            let rig = rig(&app, 1_000, "{ reserve: 10, step: 10 }");
            let mut caller = rig.connect().await;
            let body = format!(r#"{{"model":"m","stream":true,"prompt":"Hi","messages":[],{options}}}"#);
            send(&mut caller, path, "X-Pieces: 40\r\nX-Tokens: 37\r\n", &body).await;
            let text = stream(&mut caller).await;
            let generated = Generated { piece: "zzzz".to_owned(), pieces: 40, tokens: 37, reports: asks };
            assert_eq!(text, whole_stream(path, &generated), "{path}, {options}");
            let sent: Value = serde_json::from_str(&sent_body(&app, path)).unwrap();
            assert_eq!(sent["stream_options"]["include_usage"], true, "{path}, {options}");
            left(&rig, "/output", 1_000 - 37).await;
        }
    }
}

#[tokio::test]
async fn a_caller_that_hangs_up_in_mid_stream_is_charged_what_was_streamed_in_every_dialect() {
    for (path, body) in STREAMS {
        let app = App::start().await;
        let rig = rig(&app, 1_000, "{ reserve: 500 }");
        let mut caller = rig.connect().await;
        send(&mut caller, path, "X-Pieces: 90\r\nX-Bytes: 4\r\nX-Pause: 7\r\n", body).await;
        for _ in 0..7 {
            caller.until("zzzz").await;
        }
        left(&rig, "/output", 500).await;
        drop(caller);
        left(&rig, "/output", 1_000 - 7).await;
    }
}

/// A stream of 500 pieces against a budget of 25 tokens: two steps of ten pass, the third is refused.
async fn exhausted(path: &str, body: &str, on_exhausted: &str) -> String {
    let app = App::start().await;
    let rig = rig(&app, 25, &format!("{{ reserve: 10, step: 10, on_exhausted: {on_exhausted} }}"));
    let mut caller = rig.connect().await;
    send(&mut caller, path, "X-Pieces: 500\r\nX-Bytes: 4\r\n", body).await;
    let text = stream(&mut caller).await;
    assert_eq!(text_bytes(&text) / 4, 20, "{path}: {text}");
    left(&rig, "/output", 5).await;
    text
}

/// The last events of a stream, or the last items of a list.
fn last(path: &str, text: &str, count: usize) -> Vec<Value> {
    let all = match Form::of_path(path) {
        Some(Form::GeminiList) => serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")),
        _ => events(text),
    };
    all[all.len() - count..].to_vec()
}

#[tokio::test]
async fn a_spent_budget_ends_a_stream_as_if_the_model_had_reached_its_maximum() {
    for (path, body) in STREAMS {
        let text = exhausted(path, body, "finish").await;
        let form = Form::of_path(path).unwrap();
        let end = last(path, &text, 1).remove(0);
        match form {
            Form::Chat | Form::Completions => {
                assert_eq!(end["choices"][0]["finish_reason"], "length", "{text}");
                assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
                assert!(!text.contains("\"usage\""), "no report that was not asked for: {text}");
            }
            Form::Responses => {
                assert_eq!(end["type"], "response.incomplete");
                assert_eq!(end["sequence_number"], 21, "after the start and twenty pieces");
                assert_eq!(end["response"]["incomplete_details"], json!({ "reason": "max_output_tokens" }));
                assert_eq!(end["response"]["usage"]["output_tokens"], 20);
            }
            Form::Anthropic => {
                let types: Vec<Value> = last(path, &text, 3).into_iter().map(|event| event["type"].clone()).collect();
                assert_eq!(types, ["content_block_stop", "message_delta", "message_stop"]);
                let delta = last(path, &text, 2).remove(0);
                assert_eq!(
                    (&delta["delta"]["stop_reason"], &delta["usage"]["output_tokens"]),
                    (&"max_tokens".into(), &20.into())
                );
            }
            _ => {
                assert_eq!(end["candidates"][0]["finishReason"], "MAX_TOKENS", "{text}");
                assert_eq!(end["usageMetadata"]["candidatesTokenCount"], 20, "{text}");
            }
        }
    }
}

#[tokio::test]
async fn a_caller_that_asked_for_usage_gets_it_where_its_stream_is_ended() {
    let body = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}"#;
    let text = exhausted("/v1/chat/completions", body, "finish").await;
    assert_eq!(last("/v1/chat/completions", &text, 1)[0]["usage"]["completion_tokens"], 20, "{text}");
}

#[tokio::test]
async fn a_spent_budget_cuts_a_stream_with_the_error_of_its_provider() {
    for (path, body) in STREAMS {
        let text = exhausted(path, body, "cut").await;
        let end = last(path, &text, 1).remove(0);
        let (found, wanted) = match Form::of_path(path).unwrap() {
            Form::Chat | Form::Completions => (&end["error"]["code"], json!("rate_limit_exceeded")),
            Form::Responses => (&end["code"], json!("rate_limit_exceeded")),
            Form::Anthropic => (&end["error"]["type"], json!("rate_limit_error")),
            _ => (&end["error"]["status"], json!("RESOURCE_EXHAUSTED")),
        };
        assert_eq!(*found, wanted, "{path}: {text}");
        assert!(!text.contains("[DONE]"), "{path}: what was cut was not done: {text}");
    }
}

#[tokio::test]
async fn a_refusal_has_the_form_of_every_dialect() {
    for (path, body) in STREAMS {
        let app = App::start().await;
        let rig = rig(&app, 5, "{ reserve: 10 }");
        let refused = call(&rig, path, "", body).await;
        assert_eq!((refused.status, refused.field("Content-Type")), (429, Some("application/json")), "{path}");
        let error: Value = serde_json::from_str(&refused.body).unwrap();
        let found = match Form::of_path(path).unwrap() {
            Form::Anthropic => &error["error"]["type"],
            Form::GeminiEvents | Form::GeminiList => &error["error"]["status"],
            _ => &error["error"]["code"],
        };
        let wanted = ["rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"];
        assert!(wanted.iter().any(|wanted| found == wanted), "{path}: {error}");
        assert!(app.seen().is_empty(), "{path}");
    }
}
