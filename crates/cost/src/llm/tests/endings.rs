//! Ends of streams whose budget is spent, and refusals.

use super::samples::*;
use super::*;
use crate::llm::{LlmDialect, OnExhausted, StreamPoint};

/// Feeds the beginning of a stream, in one chunk that ends within an event, and ends it.
fn ended(request: &LlmRequest, media: &str, start: &str, how: OnExhausted) -> (String, String) {
    let mut reader = UsageReader::new(request, &LlmSpec::default(), 200, Some(media));
    let mut out = Vec::new();
    reader.push(Bytes::copy_from_slice(start.as_bytes()), &mut out);
    let mut after = out.last().map(|passage| passage.end).unwrap_or_default();
    after.output_tokens = 2;
    let end = reader.exhaust(how, "The budget of tokens is \"spent\".", &after);
    reader.push(Bytes::from_static(b"data: {}\n\n"), &mut out);
    reader.end(&mut out);
    assert!(reader.exhaust(how, "again", &after).is_empty(), "a stream ends once");
    (passed(&out), String::from_utf8(end.to_vec()).unwrap())
}

/// The JSON of every event of a text.
fn data(text: &str) -> Vec<serde_json::Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|line| *line != "[DONE]");
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn chat_ends_with_its_length_reached_or_an_error() {
    let request = call(CHAT, CHAT_STREAM);
    let start = CHAT_EVENTS.get(..600).unwrap();
    let (before, end) = ended(&request, "text/event-stream", start, OnExhausted::Finish);
    assert!(before.ends_with("\n\n"), "only whole events are passed on");
    assert_eq!(
        end,
        "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1763500000,\"model\":\"gpt-4.1-2025-04-14\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n"
    );
    let (_, end) = ended(&request, "text/event-stream", start, OnExhausted::Cut);
    assert_eq!(
        end,
        "data: {\"error\":{\"message\":\"The budget of tokens is \\\"spent\\\".\",\"type\":\"rate_limit_error\",\"param\":null,\"code\":\"rate_limit_exceeded\"}}\n\n"
    );
}

/// Clients of Gemini look for CR LF CR LF behind an event. An ending that followed the second CR was lost on them.
#[test]
fn an_ending_follows_a_whole_event_wherever_the_stream_was_cut() {
    let request = call("/v1beta/models/gemini-2.5-pro:streamGenerateContent", "{}");
    for size in (1..60).chain([GEMINI_EVENTS.len()]) {
        let mut reader = events(&request);
        let mut out = Vec::new();
        for piece in GEMINI_EVENTS.as_bytes().chunks(size) {
            reader.push(Bytes::copy_from_slice(piece), &mut out);
        }
        // After any passage: what was read behind it is not passed on.
        let passage = |text: &str| out.iter().position(|passage| passage.bytes.ends_with(text.as_bytes()));
        let first = passage("\r\n\r\n").or(passage("\r\n\r")).unwrap();
        let end = reader.exhaust(OnExhausted::Cut, "spent", &out[first].end);
        let text = passed(&out[..=first]) + std::str::from_utf8(&end).unwrap();
        let whole: Vec<&str> = text.split_terminator("\r\n\r\n").collect();
        assert!(whole.len() > 1 && whole.iter().all(|event| event.starts_with("data: {")), "{size}: {text:?}");
        assert!(whole.last().unwrap().contains("RESOURCE_EXHAUSTED"), "{size}: {text:?}");
    }
}

#[test]
fn a_caller_who_asked_for_usage_gets_it() {
    let asked = CHAT_STREAM.replace("\"stream\":true", "\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    let (_, end) = ended(&call(CHAT, &asked), "text/event-stream", CHAT_EVENTS, OnExhausted::Finish);
    let events = data(&end);
    assert_eq!(events.len(), 2);
    assert_eq!(events[1]["choices"], serde_json::json!([]));
    assert_eq!(events[1]["usage"]["completion_tokens"], 2);
    assert!(end.ends_with("data: [DONE]\n\n"));
}

#[test]
fn every_choice_of_a_completion_ends() {
    let request = call("/v1/completions", r#"{"prompt":"a","n":2,"stream":true}"#);
    let start = "data: {\"id\":\"cmpl-1\",\"choices\":[{\"index\":1,\"text\":\"hi\"}]}\n\n";
    let (_, end) = ended(&request, "text/event-stream", start, OnExhausted::Finish);
    let choices = &data(&end)[0]["choices"];
    assert_eq!(choices[0]["finish_reason"], "length");
    assert_eq!(choices[1]["index"], 1);
    assert_eq!(choices[1]["text"], "");
}

#[test]
fn responses_end_incomplete_or_with_an_error() {
    let request = call("/v1/responses", r#"{"model":"gpt-4.1","input":"Hi","stream":true}"#);
    let start = RESPONSES_EVENTS.split("event: response.completed").next().unwrap();
    let (_, end) = ended(&request, "text/event-stream", start, OnExhausted::Finish);
    assert!(end.starts_with("event: response.incomplete\ndata: "), "{end}");
    let event = &data(&end)[0];
    assert_eq!(event["sequence_number"], 3);
    assert_eq!(event["response"]["id"], "resp_1");
    assert_eq!(event["response"]["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(event["response"]["usage"]["output_tokens"], 2);
    let (_, end) = ended(&request, "text/event-stream", start, OnExhausted::Cut);
    assert!(end.starts_with("event: error\ndata: "), "{end}");
    assert_eq!(data(&end)[0]["code"], "rate_limit_exceeded");
}

#[test]
fn messages_stop_their_block_and_end() {
    let request = call("/v1/messages", r#"{"model":"claude","max_tokens":99,"stream":true,"messages":[]}"#);
    let start = ANTHROPIC_EVENTS.split("event: content_block_stop").next().unwrap();
    let (_, end) = ended(&request, "text/event-stream", start, OnExhausted::Finish);
    let events = data(&end);
    assert_eq!(events[0]["type"], "content_block_stop");
    assert_eq!(events[0]["index"], 0);
    assert_eq!(events[1]["delta"]["stop_reason"], "max_tokens");
    assert_eq!(events[1]["usage"]["output_tokens"], 2);
    assert_eq!(events[2]["type"], "message_stop");
    let closed = ANTHROPIC_EVENTS.split("event: message_delta").next().unwrap();
    let (_, end) = ended(&request, "text/event-stream", closed, OnExhausted::Finish);
    assert_eq!(data(&end).len(), 2, "the block has stopped already");
    let (_, end) = ended(&request, "text/event-stream", start, OnExhausted::Cut);
    assert_eq!(data(&end)[0]["error"]["type"], "rate_limit_error");
}

#[test]
fn gemini_ends_as_events_or_as_a_list() {
    let request = call("/v1beta/models/gemini-2.5-pro:streamGenerateContent", r#"{"contents":[]}"#);
    let (_, end) = ended(&request, "text/event-stream", GEMINI_EVENTS, OnExhausted::Finish);
    assert_eq!(data(&end)[0]["candidates"][0]["finishReason"], "MAX_TOKENS");
    for (length, items) in [(0, 1), (100, 1), (GEMINI_LIST.len() - 100, 2)] {
        for how in [OnExhausted::Finish, OnExhausted::Cut] {
            let start = GEMINI_LIST.get(..length.max(1)).unwrap();
            let (before, end) = ended(&request, "application/json", start, how);
            let list: serde_json::Value = serde_json::from_str(&format!("{before}{end}")).unwrap();
            assert_eq!(list.as_array().unwrap().len(), items, "{before}{end}");
        }
    }
}

#[test]
fn an_event_that_was_passed_on_in_part_is_closed() {
    let request = call(CHAT, CHAT_STREAM);
    let start = format!("data: {{\"x\":\"{}", "y".repeat(300 << 10));
    let (before, end) = ended(&request, "text/event-stream", &start, OnExhausted::Cut);
    assert_eq!(before, start);
    assert!(end.starts_with("\n\ndata: {\"error\""), "{end}");
}

#[test]
fn a_body_that_is_no_stream_cannot_be_ended() {
    let request = call(CHAT, r#"{"messages":[]}"#);
    let (_, end) = ended(&request, "application/json", r#"{"choices":["#, OnExhausted::Finish);
    assert_eq!(end, "");
}

#[test]
fn refusals_have_the_form_of_the_provider() {
    let refusal = |dialect: LlmDialect, status| {
        serde_json::from_slice::<serde_json::Value>(&dialect.refusal(status, "line\n\"quoted\"")).unwrap()
    };
    let openai = refusal(LlmDialect::ChatCompletions, 429);
    assert_eq!(openai["error"]["code"], "rate_limit_exceeded");
    assert_eq!(openai["error"]["message"], "line\n\"quoted\"");
    let anthropic = refusal(LlmDialect::AnthropicMessages, 429);
    assert_eq!(anthropic["type"], "error");
    assert_eq!(anthropic["error"]["type"], "rate_limit_error");
    let gemini = refusal(LlmDialect::Gemini, 429);
    assert_eq!(gemini["error"]["status"], "RESOURCE_EXHAUSTED");
    assert_eq!(gemini["error"]["code"], 429);
    assert_eq!(refusal(LlmDialect::AnthropicMessages, 413)["error"]["type"], "request_too_large");
    assert_eq!(refusal(LlmDialect::Gemini, 503)["error"]["status"], "UNAVAILABLE");
    assert_eq!(refusal(LlmDialect::Responses, 400)["error"]["type"], "invalid_request_error");
}

#[test]
fn a_stream_ends_where_it_was_passed_on_to() {
    let request = call("/v1/messages", r#"{"model":"claude","max_tokens":99,"stream":true,"messages":[]}"#);
    let mut reader = events(&request);
    let mut out = Vec::new();
    reader.push(Bytes::from_static(ANTHROPIC_EVENTS.as_bytes()), &mut out);
    let started = out.first().unwrap().end;
    let end = reader.exhaust(OnExhausted::Finish, "spent", &started);
    let events = data(std::str::from_utf8(&end).unwrap());
    assert_eq!(events[0]["type"], "content_block_stop", "the stop that was read was not passed on");
    assert_eq!(events[1]["usage"]["output_tokens"], 1);
}

#[test]
fn a_stream_of_which_nothing_was_passed_on_ends_with_an_error() {
    for (path, body, start, error) in [
        ("/v1/messages", r#"{"stream":true,"messages":[]}"#, ANTHROPIC_EVENTS, "rate_limit_error"),
        ("/v1/responses", r#"{"input":"a","stream":true}"#, RESPONSES_EVENTS, "rate_limit_exceeded"),
        (CHAT, CHAT_STREAM, CHAT_EVENTS, "rate_limit_exceeded"),
    ] {
        let (mut reader, mut out) = (events(&call(path, body)), Vec::new());
        reader.push(Bytes::from_static(start.as_bytes()), &mut out);
        let end = reader.exhaust(OnExhausted::Finish, "spent", &StreamPoint::default());
        assert!(std::str::from_utf8(&end).unwrap().contains(error), "{end:?}");
    }
}
