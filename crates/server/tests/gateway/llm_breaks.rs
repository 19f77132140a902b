//! Callers of language models that hang up before the usage is reported, in the middle of whatever the model wrote.

use crate::llm::{budgets, left, send};
use crate::rig::Rig;
use crate::scripted::{Act, ScriptedApi, text};

const CALL: &str = r#"{"model":"m","max_tokens":1500,"messages":[{"role":"user","content":"Hi"}]}"#;

/// A gateway before a provider that sends this to `/0`, and then nothing more.
async fn rig(dialect: &str, response: String) -> (ScriptedApi, Rig) {
    let api = ScriptedApi::start(vec![vec![text(&response), Act::Stall]]).await;
    let routes = format!(
        "upstreams: {{ api: {{ servers: {} }} }}\nroutes:\n  - {{ path: /output, upstream: api, cost: {{ output_tokens: 0 }} \
         }}\n  - {{ path: /*, upstream: api, cost: {{ llm: {{ dialect: {dialect}, reserve: 100, step: 50 }} }} }}\n",
        api.url()
    );
    let rig = Rig::routed(&budgets(10_000), &routes);
    (api, rig)
}

fn event(data: &str) -> String {
    let event = format!("data: {data}\n\n");
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{event}\r\n",
        event.len()
    )
}

/// What is charged to a caller that hangs up behind the last `END`.
async fn charged(dialect: &str, response: String, tokens: u64) {
    let (_api, rig) = rig(dialect, response).await;
    let mut caller = rig.connect().await;
    send(&mut caller, "/0", "", CALL).await;
    caller.until("END").await;
    drop(caller);
    left(&rig, "/output", 10_000 - tokens).await;
}

#[tokio::test]
async fn text_is_charged_in_whichever_field_it_stands() {
    let text = "word".repeat(400);
    let custom = r#"{"choices":[{"delta":{"tool_calls":[{"custom":{"input":"TEXTEND!"}}]}}]}"#;
    charged("openai_chat", event(&custom.replace("TEXT", &text)), 401).await;
    let half = r#"{"choices":[{"delta":{"content":"TEXT\ud83d-END"}}]}"#;
    charged("openai_chat", event(&half.replace("TEXT", &text)), 402).await;
    let code = r#"{"candidates":[{"content":{"parts":[{"executableCode":{"code":"TEXTEND!"}}]}}]}"#;
    charged("gemini", event(&code.replace("TEXT", &text)), 401).await;
}

/// Nothing of it was reserved, because its text counted when it was whole.
#[tokio::test]
async fn an_event_too_long_to_be_held_is_charged_as_it_passes() {
    let start = r#"data: {"choices":[{"delta":{"content":""#;
    let long = "z".repeat(600_000);
    let chunk = format!("{start}{long}");
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (_api, rig) = rig("openai_chat", format!("{head}{:x}\r\n{chunk}", chunk.len() + 9)).await;
    let mut caller = rig.connect().await;
    send(&mut caller, "/0", "", CALL).await;
    // The budget of 10,000 tokens is 40,000 bytes: the stream ends before the first byte of this event.
    let answer = caller.until("\r\n0\r\n\r\n").await;
    assert!(!answer.contains("zzz"), "{} bytes were passed on", answer.len());
    left(&rig, "/output", 10_000).await;
}

/// It was generated before its first byte came, so little of it costs as much as all of it.
#[tokio::test]
async fn a_body_that_is_not_read_to_its_end_keeps_its_reservation() {
    let body = format!(r#"{{"choices":[{{"message":{{"content":"{}END"#, "word".repeat(100));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50000\r\n\r\n";
    charged("openai_chat", format!("{head}{body}"), 1_500).await;
}
