//! Usage of streams and bodies, cut at every byte.

use super::samples::*;
use super::*;
use crate::llm::{OnExhausted, OutputBudget, StreamPoint, TokenUsage};

fn check(request: &LlmRequest, body: &str, expected: &str, usage: TokenUsage) {
    for size in 1..=body.len() {
        let mut reader = events(request);
        let passages = feed(&mut reader, body.as_bytes(), size);
        assert_eq!(passed(&passages), expected, "in pieces of {size}");
        assert_eq!(reader.usage(), usage, "in pieces of {size}");
        assert!(reader.is_reported(), "in pieces of {size}");
    }
}

#[test]
fn the_usage_that_was_asked_for_is_read_and_left_out() {
    let request = call(CHAT, CHAT_STREAM);
    let body = [CHAT_EVENTS, CHAT_USAGE, DONE].concat();
    let usage = TokenUsage { input: 11, output: 6, cached: 3 };
    check(&request, &body, &[CHAT_EVENTS, DONE].concat(), usage);
}

#[test]
fn the_usage_that_the_caller_asked_for_is_passed_on() {
    let asked = CHAT_STREAM.replace("\"stream\":true", "\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    let request = call(CHAT, &asked);
    assert_eq!(request.rewritten(asked.as_bytes()), None);
    let body = [CHAT_EVENTS, CHAT_USAGE, DONE].concat();
    check(&request, &body, &body, TokenUsage { input: 11, output: 6, cached: 3 });
}

#[test]
fn other_line_ends_are_cut_as_well() {
    let request = call(CHAT, CHAT_STREAM);
    for end in ["\r\n", "\r"] {
        let body = [CHAT_EVENTS, CHAT_USAGE, DONE].concat().replace('\n', end);
        let expected = [CHAT_EVENTS, DONE].concat().replace('\n', end);
        for size in 1..=body.len() {
            let mut reader = events(&request);
            let shown = passed(&feed(&mut reader, body.as_bytes(), size));
            assert_eq!(shown, expected, "in pieces of {size}");
            assert_eq!(reader.usage().output, 6);
        }
    }
}

#[test]
fn every_dialect_reports_at_the_end_of_its_stream() {
    let responses = call("/v1/responses", r#"{"model":"gpt-4.1","input":"Hi","stream":true}"#);
    check(&responses, RESPONSES_EVENTS, RESPONSES_EVENTS, TokenUsage { input: 37, output: 11, cached: 5 });
    let anthropic = call("/v1/messages", r#"{"model":"claude","max_tokens":99,"stream":true,"messages":[]}"#);
    check(&anthropic, ANTHROPIC_EVENTS, ANTHROPIC_EVENTS, TokenUsage { input: 135, output: 15, cached: 100 });
    let gemini = call("/v1beta/models/gemini-2.5-pro:streamGenerateContent", r#"{"contents":[]}"#);
    check(&gemini, GEMINI_EVENTS, GEMINI_EVENTS, TokenUsage { input: 8, output: 24, cached: 6 });
}

#[test]
fn a_list_of_responses_is_a_stream() {
    let request = call("/v1beta/models/gemini-2.5-pro:streamGenerateContent", r#"{"contents":[]}"#);
    for size in 1..=GEMINI_LIST.len() {
        let mut reader = UsageReader::new(&request, &LlmSpec::default(), 200, Some("application/json"));
        let passages = feed(&mut reader, GEMINI_LIST.as_bytes(), size);
        assert_eq!(passed(&passages), GEMINI_LIST, "in pieces of {size}");
        assert_eq!(reader.usage(), TokenUsage { input: 8, output: 24, cached: 6 }, "in pieces of {size}");
    }
}

#[test]
fn bodies_report_usage_or_are_estimated() {
    for (path, body, usage) in BODIES {
        let request = call(path, r#"{"model":"m","messages":[{"role":"user","content":"abcdefghijklmnop"}]}"#);
        for size in 1..=body.len() {
            let mut reader = UsageReader::new(&request, &LlmSpec::default(), 200, Some("application/json"));
            assert_eq!(passed(&feed(&mut reader, body.as_bytes(), size)), body);
            assert_eq!(reader.usage(), usage, "{path} in pieces of {size}");
        }
    }
}

#[test]
fn a_stream_that_breaks_off_is_charged_what_was_streamed() {
    let request = call(CHAT, CHAT_STREAM);
    let mut reader = events(&request);
    let mut out = Vec::new();
    reader.push(Bytes::from_static(CHAT_EVENTS.as_bytes()), &mut out);
    assert!(!reader.is_reported());
    // "Hello, worldé." has 15 bytes; "user" and "Say hello." have 14.
    assert_eq!(reader.usage(), TokenUsage { input: 4, output: 4, cached: 0 });

    let request = call("/v1/messages", r#"{"model":"claude","max_tokens":99,"stream":true,"messages":[]}"#);
    let mut reader = events(&request);
    let half = ANTHROPIC_EVENTS.split("event: message_delta").next().unwrap();
    reader.push(Bytes::from_static(half.as_bytes()), &mut out);
    assert_eq!(reader.usage(), TokenUsage { input: 135, output: 3, cached: 100 });
    assert!(!reader.is_reported());
}

#[test]
fn tokens_rise_from_passage_to_passage() {
    let request = call(CHAT, CHAT_STREAM);
    let mut reader = events(&request);
    let passages = feed(&mut reader, CHAT_EVENTS.as_bytes(), usize::MAX);
    let tokens: Vec<u64> = passages.iter().map(|passage| passage.end.output_tokens).collect();
    assert_eq!(tokens, [0, 3, 4], "neighbours with the same number are one passage");
    assert_eq!(passed(&passages), CHAT_EVENTS);
    assert!(passages.iter().all(|passage| passage.bytes.ends_with(b"\n\n")), "passages end where events end");
}

#[test]
fn a_refusal_of_the_upstream_costs_nothing() {
    let request = call(CHAT, CHAT_STREAM);
    let mut reader = UsageReader::new(&request, &LlmSpec::default(), 429, Some("application/json"));
    let body = r#"{"error":{"message":"slow down"}}"#;
    assert_eq!(passed(&feed(&mut reader, body.as_bytes(), 7)), body);
    assert_eq!(reader.usage(), TokenUsage::default());
}

#[test]
fn media_types_that_are_not_known_count_as_text() {
    let request = call(CHAT, CHAT_STREAM);
    let mut reader = UsageReader::new(&request, &LlmSpec::default(), 200, Some("application/x-ndjson"));
    assert_eq!(passed(&feed(&mut reader, &[b'x'; 400], 33)).len(), 400);
    assert_eq!(reader.usage().output, 100);
}

#[test]
fn a_piece_of_text_is_at_least_a_token() {
    let request = call(CHAT, CHAT_STREAM);
    let mut reader = events(&request);
    let delta = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    let empty = delta.replace("\"a\"", "\"\"");
    feed(&mut reader, [delta.repeat(20), empty.repeat(5)].concat().as_bytes(), 13);
    assert_eq!(reader.usage().output, 20);
}

/// The loop of a gateway: nothing is passed on that is not reserved, and the end comes where the budget does.
#[test]
fn a_stream_overruns_nothing() {
    let request = call("/v1/messages", r#"{"model":"claude","max_tokens":9000,"stream":true,"messages":[]}"#);
    let delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"twelve bytes\"}}\n\n";
    let stream = [
        ANTHROPIC_EVENTS.split("event: ping").next().unwrap(),
        &delta.repeat(1_000),
        ANTHROPIC_EVENTS.split("world\"}}").nth(1).unwrap(),
    ]
    .concat();
    for size in [1, 100, 5_000, usize::MAX] {
        let (mut reader, mut budget, mut left) = (events(&request), OutputBudget::new(100, 64), 500u64);
        let (mut sent, mut end, mut after) = (Vec::new(), None, StreamPoint::default());
        'chunks: for chunk in stream.as_bytes().chunks(size) {
            let mut passages = Vec::new();
            reader.push(Bytes::copy_from_slice(chunk), &mut passages);
            for passage in passages {
                if let Some(missing) = budget.missing(passage.end.output_tokens) {
                    let Some(rest) = left.checked_sub(missing) else {
                        end = Some(reader.exhaust(OnExhausted::Finish, "spent", &after));
                        break 'chunks;
                    };
                    left = rest;
                    budget.extend(missing);
                }
                sent.extend_from_slice(&passage.bytes);
                after = passage.end;
            }
        }
        // 100 and seven steps of 64 are 548 tokens; each delta is three, after the one that the start reports.
        let texts = String::from_utf8(sent).unwrap().matches("twelve bytes").count();
        assert_eq!((budget.reserved(), texts), (548, 182), "in pieces of {size}");
        assert!(String::from_utf8(end.unwrap().to_vec()).unwrap().starts_with("event: content_block_stop"));
    }
}
