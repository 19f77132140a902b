//! Text that counts before usage is reported: whatever the model writes, in whichever field, however it is cut.

use super::samples::*;
use super::*;
use crate::llm::TokenUsage;

/// 400 bytes: 100 tokens.
fn words() -> String {
    "word and ".repeat(45).get(..400).unwrap().to_owned()
}

fn anthropic() -> LlmRequest {
    call("/v1/messages", r#"{"model":"claude","max_tokens":99,"stream":true,"messages":[]}"#)
}

fn gemini() -> LlmRequest {
    call("/v1beta/models/gemini-2.5-pro:streamGenerateContent", r#"{"contents":[]}"#)
}

fn responses() -> LlmRequest {
    call("/v1/responses", r#"{"model":"gpt-4.1","input":"Hi","stream":true}"#)
}

/// The output of a stream that ends after these events, before any report.
fn output(request: &LlmRequest, data: &[&str]) -> u64 {
    let body: String = data.iter().map(|data| format!("data: {data}\n\n")).collect();
    let mut reader = events(request);
    feed(&mut reader, body.as_bytes(), 7);
    reader.usage().output
}

#[test]
fn whatever_the_model_writes_counts() {
    let chat = call(CHAT, CHAT_STREAM);
    let cases = [
        (&chat, r#"{"choices":[{"index":0,"delta":{"content":"TEXT"}}]}"#),
        (&chat, r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"TEXT"}}]}}]}"#),
        (&chat, r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"TEXT"}}]}}]}"#),
        (
            &chat,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c","type":"custom","custom":{"input":"TEXT"}}]}}]}"#,
        ),
        (&chat, r#"{"choices":[{"index":0,"delta":{"audio":{"id":"a","transcript":"TEXT"}}}]}"#),
        (&chat, r#"{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"t","summary":"TEXT"}]}}]}"#),
        (&chat, r#"{"choices":[{"index":0,"delta":{"function_call":{"arguments":{"a":"TEXT"}}}}]}"#),
        (&chat, r#"{"choices":[{"index":0,"message":{"content":[{"type":"text","text":"TEXT"}]}}]}"#),
        (
            &gemini(),
            r#"{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"TEXT"}}]}}]}"#,
        ),
        (&gemini(), r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"id":"TEXT"}}}]}}]}"#),
        (&gemini(), r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"TEXT":1}}}]}}]}"#),
        (
            &anthropic(),
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"TEXT"}}"#,
        ),
        (&anthropic(), r#"{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","new":"TEXT"}}"#),
        (&anthropic(), r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"TEXT"}}"#),
        (
            &anthropic(),
            r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"f","input":{"signature":"TEXT"}}}"#,
        ),
        (&anthropic(), r#"{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"TEXT"}}"#),
        (&responses(), r#"{"type":"response.custom_tool_call_input.delta","delta":"TEXT"}"#),
        (
            &responses(),
            r#"{"type":"response.output_item.done","item":{"type":"computer_call","id":"i","action":{"type":"type","text":"TEXT"}}}"#,
        ),
    ];
    for (request, event) in cases {
        let counted = output(request, &[&event.replace("TEXT", &words())]);
        assert!((100..=105).contains(&counted), "{counted}: {event}");
    }
}

#[test]
fn numbers_and_brackets_of_arguments_count() {
    let call = |args: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"f","args":{{"a":{args}}}}}}}]}}}}]}}"#
        )
    };
    for args in [
        format!("[{}0]", "12345678,".repeat(50)),
        "9".repeat(400),
        format!("[{}[]]", "[],".repeat(200)),
        format!("[{}null]", "true,".repeat(100)),
        format!("{{\"{}\":{{}}}}", "k".repeat(400)),
    ] {
        let counted = output(&gemini(), &[&call(&args)]);
        assert!((95..=115).contains(&counted), "{counted}: {args}");
    }
}

#[test]
fn what_describes_the_text_costs_nothing() {
    let long = "a".repeat(4_000);
    let chat = call(CHAT, CHAT_STREAM);
    let cases = [
        (
            &chat,
            format!(r#"{{"id":"{long}","model":"{long}","choices":[{{"index":0,"delta":{{"role":"assistant"}}}}]}}"#),
        ),
        (&chat, format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"id":"{long}","type":"function"}}]}}}}]}}"#)),
        (&chat, format!(r#"{{"choices":[{{"delta":{{}},"logprobs":{{"content":[{{"token":"{long}"}}]}}}}]}}"#)),
        (
            &chat,
            format!(
                r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop","content_filter_results":{{"a":"{long}"}}}}]}}"#
            ),
        ),
        (
            &anthropic(),
            format!(r#"{{"type":"content_block_delta","delta":{{"type":"signature_delta","signature":"{long}"}}}}"#),
        ),
        (
            &anthropic(),
            format!(
                r#"{{"type":"content_block_start","content_block":{{"type":"web_fetch_tool_result","content":{{"data":"{long}"}}}}}}"#
            ),
        ),
        (&gemini(), format!(r#"{{"candidates":[{{"content":{{"parts":[{{"thoughtSignature":"{long}"}}]}}}}]}}"#)),
        (&gemini(), format!(r#"{{"candidates":[{{"groundingMetadata":{{"chunks":["{long}"]}}}}]}}"#)),
    ];
    for (request, event) in cases {
        assert_eq!(output(request, &[&event]), 0, "{event}");
    }
}

/// Providers of streams of responses state a text up to four times: as it comes, when it is whole, in its item, at the end.
#[test]
fn a_text_that_is_stated_again_counts_once() {
    let text = words();
    let delta = format!(r#"{{"type":"response.output_text.delta","delta":"{text}"}}"#);
    let done = format!(r#"{{"type":"response.output_text.done","text":"{text}"}}"#);
    let item = format!(
        r#"{{"type":"response.output_item.done","item":{{"id":"i","type":"message","content":[{{"type":"output_text","text":"{text}"}}]}}}}"#
    );
    let whole = item.replace("\"item\":", "\"response\":{\"output\":[").replace("]}}", "]}]}}");
    assert_eq!(output(&responses(), &[&delta, &done, &item, &whole]), 100);
}

/// Media are far longer than the tokens that they cost.
#[test]
fn media_count_by_their_own_measure() {
    let sound = "A".repeat(102_400);
    let chat = call(CHAT, CHAT_STREAM);
    let event = format!(r#"{{"choices":[{{"delta":{{"audio":{{"data":"{sound}"}}}}}}]}}"#);
    assert_eq!(output(&chat, &[&event]), 100);
    let event = format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"inlineData":{{"mimeType":"image/png","data":"{sound}"}}}}]}}}}]}}"#
    );
    assert_eq!(output(&gemini(), &[&event]), 100);
}

/// Half of a pair of surrogates is JSON, and Python writes it.
#[test]
fn half_a_pair_of_surrogates_is_text() {
    let chat = call(CHAT, CHAT_STREAM);
    let text = words();
    for half in ["\\ud83d", "\\ude00", "\\ud83d\\ud83d", "\\ud83d\\n", "\u{fffd}"] {
        let event = format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{half}{text}{half}"}}}}]}}"#);
        assert!((101..=104).contains(&output(&chat, &[&event])), "{half}");
        let usage = r#""usage":{"prompt_tokens":5,"completion_tokens":1000}"#;
        let body = format!(r#"{{"choices":[{{"message":{{"content":"{half}{text}{half}"}}}}],{usage}}}"#);
        for size in [1, 7, body.len()] {
            let mut reader = UsageReader::new(&chat, &LlmSpec::default(), 200, Some("application/json"));
            assert_eq!(passed(&feed(&mut reader, body.as_bytes(), size)), body);
            assert_eq!(reader.usage(), TokenUsage { input: 5, output: 1000, cached: 0 }, "{half}");
        }
    }
}

/// What no parser reads may be text all the same.
#[test]
fn the_rest_of_an_event_that_is_not_json_counts() {
    let chat = call(CHAT, CHAT_STREAM);
    let text = words();
    assert!(output(&chat, &[&text]) >= 100);
    let bad = format!(r#"{{"choices":[{{"delta":{{"content":"a\x{text}"}}}}]}}"#);
    assert!(output(&chat, &[&bad]) >= 100);
    let twice = format!(r#"{{"choices":[]}}{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
    assert!(output(&chat, &[&twice]) >= 100);
    assert_eq!(output(&chat, &["[DONE]"]), 0, "the mark at the end of a stream");
    let json = format!(r#"{{"choices":NaN,"x":"{text}"}}"#);
    let mut reader = UsageReader::new(&chat, &LlmSpec::default(), 200, Some("application/json"));
    feed(&mut reader, json.as_bytes(), 7);
    assert!(reader.usage().output >= 100);
}

/// 1.4 MB of one event were passed on with nothing reserved.
#[test]
fn an_event_too_long_to_be_held_counts_as_it_passes() {
    let long = "z".repeat(1_500_000);
    let argument = format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"function":{{"arguments":"{long}"}}}}]}}}}]}}"#);
    let key =
        format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"function":{{"arguments":{{"{long}":1}}}}}}]}}}}]}}"#);
    for data in [argument, key, long.clone()] {
        // A report before it says nothing of it.
        let report = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
        let body = format!("data: {report}\n\ndata: {data}\n\n");
        let mut reader = events(&call(CHAT, CHAT_STREAM));
        let (mut out, mut sent) = (Vec::new(), 0);
        for piece in body.as_bytes().chunks(10_000) {
            reader.push(Bytes::copy_from_slice(piece), &mut out);
            for passage in out.drain(..) {
                sent += passage.bytes.iter().filter(|byte| **byte == b'z').count() as u64;
                assert!(passage.end.output_tokens >= sent / 4, "{} tokens for {sent} bytes", passage.end.output_tokens);
            }
        }
        assert!(sent > 1_400_000, "it passes as it comes");
    }
}

/// Arguments of tools can be nested as deeply as the caller asks for.
#[test]
fn deep_arguments_do_not_hide_the_report() {
    for depth in [61, 62, 63, 64, 70, 3_000] {
        let deep = format!("{}\"x]}}\\\"\"{}", "[".repeat(depth), "]".repeat(depth));
        let text = words();
        let body = format!(
            r#"{{"id":"m","content":[{{"type":"tool_use","input":{{"a":{deep},"b":1}}}},{{"type":"tool_use","input":{{"text":"{text}"}}}}],"usage":{{"input_tokens":10,"output_tokens":10000}}}}"#
        );
        let request = call("/v1/messages", r#"{"model":"m","max_tokens":1500,"messages":[]}"#);
        for size in [1, 7, body.len()] {
            let mut reader = UsageReader::new(&request, &LlmSpec::default(), 200, Some("application/json"));
            assert_eq!(passed(&feed(&mut reader, body.as_bytes(), size)), body);
            assert_eq!(
                reader.usage(),
                TokenUsage { input: 10, output: 10_000, cached: 0 },
                "{depth} in pieces of {size}"
            );
        }
        let mut reader = UsageReader::new(&request, &LlmSpec::default(), 200, Some("application/json"));
        let broken = body.split("\"usage\"").next().unwrap();
        feed(&mut reader, broken.as_bytes(), 7);
        assert!(reader.usage().output >= 100 + depth as u64 / 4, "{depth}");
    }
}
