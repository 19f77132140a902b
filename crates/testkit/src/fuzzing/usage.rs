//! Calls of language models and their responses.

use bytes::Bytes;
use tollgate_cost::llm::{LlmRequest, LlmSpec, OnExhausted, Passage, TokenUsage, UsageReader};

/// Paths, a body each, and the media type of a response.
const CALLS: [(&str, &str, &str); 6] = [
    ("/v1/chat/completions", r#"{"stream":true,"messages":[]}"#, "text/event-stream"),
    ("/v1/chat/completions", r#"{"stream":true,"stream_options":{"include_usage":true}}"#, "text/event-stream"),
    ("/v1/messages", r#"{"stream":true,"max_tokens":9,"messages":[]}"#, "text/event-stream"),
    ("/v1/responses", r#"{"stream":true,"input":"a"}"#, "text/event-stream"),
    ("/m:streamGenerateContent", r#"{"contents":[]}"#, "application/json"),
    ("/v1/chat/completions", r#"{"messages":[]}"#, "application/json"),
];

/// A byte for the call, a byte for the size of pieces, then the response; it is also read as the body of a request.
pub fn sse_usage(data: &[u8]) {
    let byte = |place: usize| usize::from(data.get(place).copied().unwrap_or(0));
    let body = data.get(2..).unwrap_or_default();
    check_request(body);
    let (path, request, media) = CALLS[byte(0) % CALLS.len()];
    let request = read(path, request.as_bytes()).expect("it is a call");
    let adds_usage = request.rewritten(b"{}").is_some();
    let (whole, usage) = feed(&request, media, body, body.len().max(1));
    for size in [1, byte(1) + 1] {
        let (parts, other) = feed(&request, media, body, size);
        assert_eq!(bytes(&parts), bytes(&whole), "pieces of {size} pass as the whole");
        assert_eq!(other, usage, "pieces of {size} have the usage of the whole");
    }
    match adds_usage {
        false => assert_eq!(bytes(&whole), body, "what was not added is passed on"),
        true => assert!(is_subsequence(&bytes(&whole), body), "nothing is passed on that was not sent"),
    }
    check_charge(&request, media, body, byte(1) + 1);
    check_end(&request, media, body);
}

/// However a response breaks off: what is charged without a report is never below what was passed on, nor below what was
/// reserved if it is no stream.
fn check_charge(request: &LlmRequest, media: &str, body: &[u8], size: usize) {
    let text = String::from_utf8_lossy(body);
    // A later report may say less than an earlier one.
    if text.contains("oken") || text.contains("\\u") {
        return;
    }
    let (mut reader, mut out, mut passed) = (reader(request, media), Vec::new(), 0);
    let reserved = if request.stream { 0 } else { request.output_reservation(&LlmSpec::default()) };
    for piece in body.chunks(size) {
        reader.push(Bytes::copy_from_slice(piece), &mut out);
        passed = out.last().map_or(passed, |passage| passage.end.output_tokens);
        assert!(reader.usage().output >= passed, "what was passed on counts");
        assert!(reader.charge(None).output >= reserved.max(passed), "it is charged");
    }
}

/// A request that is read can be rewritten, and then asks for its usage.
fn check_request(body: &[u8]) {
    for (path, ..) in CALLS {
        let Some(request) = read(path, body) else { continue };
        let Some(changed) = request.rewritten(body) else { continue };
        assert!(request.stream && is_subsequence(&without(body), &without(&changed)), "only usage is added");
        let again = read(path, &changed).expect("what was rewritten is a call");
        assert_eq!(again.rewritten(&changed), None, "usage is asked for once");
        assert_eq!(again.max_output_tokens, request.max_output_tokens);
    }
}

/// The body without what a rewrite may replace.
fn without(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    text.replace("null", "").replace("false", "").into_bytes()
}

fn read(path: &str, body: &[u8]) -> Option<LlmRequest> {
    LlmRequest::read(&LlmSpec::default(), path, body).ok().flatten()
}

fn reader(request: &LlmRequest, media: &str) -> UsageReader {
    UsageReader::new(request, &LlmSpec::default(), 200, Some(media))
}

fn feed(request: &LlmRequest, media: &str, body: &[u8], size: usize) -> (Vec<Passage>, TokenUsage) {
    let (mut reader, mut out) = (reader(request, media), Vec::new());
    body.chunks(size).for_each(|piece| reader.push(Bytes::copy_from_slice(piece), &mut out));
    reader.end(&mut out);
    (out, reader.usage())
}

fn bytes(passages: &[Passage]) -> Vec<u8> {
    passages.iter().flat_map(|passage| passage.bytes.to_vec()).collect()
}

/// An ending is text that ends an event, or a list, and comes once.
fn check_end(request: &LlmRequest, media: &str, body: &[u8]) {
    for how in [OnExhausted::Finish, OnExhausted::Cut] {
        let (mut reader, mut out) = (reader(request, media), Vec::new());
        reader.push(Bytes::copy_from_slice(body), &mut out);
        let after = out.last().map(|passage| passage.end).unwrap_or_default();
        let end = reader.exhaust(how, "spent", &after);
        let end = std::str::from_utf8(&end).expect("endings are text");
        assert!(end.is_empty() || end.ends_with("\n\n") || end.ends_with(']'), "{end:?}");
        for line in end.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|line| *line != "[DONE]") {
            serde_json::from_str::<serde_json::Value>(line).expect("the data of an event is JSON");
        }
        assert!(reader.exhaust(how, "spent", &after).is_empty());
    }
}

fn is_subsequence(short: &[u8], long: &[u8]) -> bool {
    let mut long = long.iter();
    short.iter().all(|byte| long.any(|other| other == byte))
}
