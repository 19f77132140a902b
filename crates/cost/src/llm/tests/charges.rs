//! What is charged for a response that ends, or breaks off.

use super::samples::*;
use super::*;
use crate::llm::TokenUsage;

const JSON: &str = "application/json";

fn reader(path: &str, body: &str, media: &str) -> UsageReader {
    let spec = LlmSpec { background: true, ..LlmSpec::default() };
    let request = LlmRequest::read(&spec, path, body.as_bytes()).unwrap().unwrap();
    UsageReader::new(&request, &spec, 200, Some(media))
}

fn push(reader: &mut UsageReader, body: &str) {
    reader.push(Bytes::copy_from_slice(body.as_bytes()), &mut Vec::new());
}

/// The provider has generated all of it before its first byte came.
#[test]
fn a_body_that_breaks_off_keeps_its_reservation() {
    let request = r#"{"model":"m","max_tokens":1500,"messages":[]}"#;
    let start = r#"{"choices":[{"message":{"content":""#;
    let mut reader = reader(CHAT, request, JSON);
    assert_eq!(reader.charge(None).output, 1_500, "before the first byte");
    push(&mut reader, start);
    push(&mut reader, &"word".repeat(100));
    assert_eq!(reader.charge(None).output, 1_500);
    push(&mut reader, &"word".repeat(2_000));
    assert_eq!(reader.charge(None).output, 2_100, "more than was reserved has passed");
    push(&mut reader, r#""}}],"usage":{"prompt_tokens":5,"completion_tokens":2050}}"#);
    assert_eq!(reader.charge(None), TokenUsage { input: 5, output: 2_050, cached: 0 }, "before the end was asked for");
    reader.end(&mut Vec::new());
    assert_eq!(reader.charge(None), TokenUsage { input: 5, output: 2_050, cached: 0 });
}

#[test]
fn a_body_without_a_report_keeps_its_reservation() {
    let request = r#"{"model":"m","input":"a","max_output_tokens":1000,"background":true}"#;
    for body in [
        r#"{"id":"r","status":"queued","output":[],"usage":null}"#,
        r#"{"id":"r","status":"queued"}"#,
        r#"{"id":"r","usage":{}}"#,
        r#"{"id":"r","usage":{"input_tokens":0}}"#,
        r#"{"id":"r","usage":{"output_tokens":1}} {"more":1}"#,
        "",
        "no JSON",
    ] {
        let mut reader = reader("/v1/responses", request, JSON);
        feed(&mut reader, body.as_bytes(), 7);
        assert_eq!(reader.charge(None).output, 1_000, "{body}");
    }
    let mut refused = UsageReader::new(&call(CHAT, "{}"), &LlmSpec::default(), 500, Some(JSON));
    feed(&mut refused, b"{}", 7);
    assert_eq!(refused.charge(None), TokenUsage::default());
}

/// A stream in the background goes on when its caller has gone.
#[test]
fn a_stream_in_the_background_keeps_its_reservation() {
    let start = RESPONSES_EVENTS.split("event: response.completed").next().unwrap();
    let request = r#"{"model":"m","input":"a","max_output_tokens":1000,"stream":true"#;
    for (more, charged) in [("}", 2), (r#","background":true}"#, 1_000)] {
        let mut reader = reader("/v1/responses", &format!("{request}{more}"), "text/event-stream");
        push(&mut reader, start);
        assert_eq!(reader.charge(Some(2)).output, charged);
        push(&mut reader, RESPONSES_EVENTS.strip_prefix(start).unwrap());
        assert_eq!(reader.charge(Some(2)).output, 11);
    }
}

#[test]
fn embeddings_have_no_output() {
    let mut reader = reader("/v1/embeddings", r#"{"model":"e","input":"abcd"}"#, JSON);
    push(&mut reader, r#"{"data":[{"embedding":[0.5,"#);
    assert_eq!(reader.charge(None), TokenUsage { input: 1, output: 0, cached: 0 });
}
