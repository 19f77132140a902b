//! What requests say.

use super::samples::*;
use super::*;
use crate::error::CostErrorKind;
use crate::llm::{LlmDialect, OtherCalls};

/// Path, body, dialect, stream, prompt, most output tokens.
type Row = (&'static str, &'static str, LlmDialect, bool, u64, Option<u64>);

const ROWS: [Row; 14] = [
    (CHAT, CHAT_STREAM, LlmDialect::ChatCompletions, true, 4, None),
    (
        CHAT,
        r#"{"messages":[{"content":"12345678"}],"max_tokens":100}"#,
        LlmDialect::ChatCompletions,
        false,
        2,
        Some(100),
    ),
    (CHAT, r#"{"max_completion_tokens":50,"max_tokens":20,"n":3}"#, LlmDialect::ChatCompletions, false, 0, Some(150)),
    (CHAT, r#"{"max\u005ftokens":1e3,"n":0}"#, LlmDialect::ChatCompletions, false, 0, Some(1000)),
    (CHAT, r#"{"max_tokens":99999999999999999999999,"n":9}"#, LlmDialect::ChatCompletions, false, 0, Some(u64::MAX)),
    (CHAT, r#"{"max_tokens":-5}"#, LlmDialect::ChatCompletions, false, 0, None),
    (CHAT, r#"{"max_tokens":"100","stream":"true"}"#, LlmDialect::ChatCompletions, false, 2, None),
    ("/v1/completions", r#"{"prompt":["abcd","efgh"],"best_of":2}"#, LlmDialect::Completions, false, 2, Some(64)),
    ("/v1/completions", r#"{"prompt":[[1,2,3],[4]],"max_tokens":5}"#, LlmDialect::Completions, false, 4, Some(10)),
    (
        "/v1/responses",
        r#"{"model":"gpt-4.1","instructions":"abcd","input":[{"role":"user","content":[{"type":"input_text","text":"hello"}]}],"max_output_tokens":300}"#,
        LlmDialect::Responses,
        false,
        6,
        Some(300),
    ),
    ("/v1/embeddings", r#"{"model":"e","input":["abcd","efgh"]}"#, LlmDialect::Embeddings, false, 2, None),
    (
        "/v1/messages",
        r#"{"model":"claude","max_tokens":1024,"system":"Be kind.","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#,
        LlmDialect::AnthropicMessages,
        true,
        4,
        Some(1024),
    ),
    (
        "/v1beta/models/gemini-2.5-pro:generateContent",
        r#"{"contents":[{"parts":[{"text":"abcdefgh"}]}],"generationConfig":{"maxOutputTokens":200,"candidateCount":2}}"#,
        LlmDialect::Gemini,
        false,
        2,
        Some(400),
    ),
    (
        "/llm",
        r#"{"contents":[{"parts":[{"text":"abcdefgh"}]}],"generation_config":{"max_output_tokens":7}}"#,
        LlmDialect::Gemini,
        false,
        2,
        Some(7),
    ),
];

#[test]
fn requests_say_what_they_will_cost() {
    for (path, body, dialect, stream, prompt, most) in ROWS {
        let request = call(path, body);
        assert_eq!(request.dialect, dialect, "{body}");
        assert_eq!(request.stream, stream, "{body}");
        assert_eq!(request.prompt_tokens, prompt, "{body}");
        assert_eq!(request.max_output_tokens, most, "{body}");
    }
}

#[test]
fn models_are_in_the_body_or_the_path() {
    for (path, body, model) in [
        (CHAT, r#"{"model":"gpt-4.1"}"#, Some("gpt-4.1")),
        ("/openai/deployments/mine/chat/completions", "{}", Some("mine")),
        ("/v1beta/models/gemini-2.5-pro:generateContent", "{}", Some("gemini-2.5-pro")),
        (CHAT, r#"{"model":7}"#, None),
    ] {
        assert_eq!(call(path, body).model.as_deref(), model, "{path}");
    }
    let long = format!(r#"{{"model":"{}"}}"#, "m".repeat(300));
    assert_eq!(call(CHAT, &long).model, None);
}

#[test]
fn pictures_are_not_counted_as_text() {
    let picture = "A".repeat(1_000_000);
    let body = format!(
        r#"{{"messages":[{{"content":[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{picture}"}}}}]}}]}}"#
    );
    assert_eq!(call(CHAT, &body).prompt_tokens, 1_600 + 3);
}

/// A text in a place for media was estimated at 1,600 tokens, however long it was.
#[test]
fn texts_in_places_for_media_are_counted_as_text() {
    let text = "word".repeat(100_000);
    for block in [
        r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"TEXT"}}"#,
        r#"{"type":"document","source":{"data":"TEXT","media_type":"Text/Plain"}}"#,
        r#"{"type":"document","source":{"data":"TEXT","x":{"data":"","y":[{}]},"type":"text"}}"#,
        r#"{"type":"tool_use","input":{"source":{"data":"TEXT"}}}"#,
        r#"{"type":"tool_use","input":{"url":"TEXT"}}"#,
        r#"{"type":"any","url":"TEXT","data":"TEXT"}"#,
    ] {
        let body = format!(r#"{{"messages":[{{"content":[{}]}}]}}"#, block.replace("TEXT", &text));
        assert!(call("/v1/messages", &body).prompt_tokens >= 100_000, "{block}");
    }
    for block in [
        r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"TEXT"}}"#,
        r#"{"inlineData":{"mimeType":"image/png","data":"TEXT"}}"#,
        r#"{"type":"input_audio","input_audio":{"format":"wav","data":"TEXT"}}"#,
        r#"{"type":"input_image","image_url":"TEXT"}"#,
        r#"{"type":"file","file":{"filename":"a.pdf","file_data":"TEXT"}}"#,
        r#"{"type":"tool_result","content":[{"source":{"type":"base64","media_type":"image/png","data":"TEXT"}}]}"#,
    ] {
        let body = format!(r#"{{"messages":[{{"content":[{}]}}]}}"#, block.replace("TEXT", &text));
        let tokens = call("/v1/messages", &body).prompt_tokens;
        assert!((1_600..1_620).contains(&tokens), "{tokens}: {block}");
    }
}

/// The call reports no usage, and the request that fetches the response costs nothing.
#[test]
fn calls_in_the_background_are_refused_unless_the_route_allows_them() {
    let allowed = LlmSpec { background: true, ..LlmSpec::default() };
    let read = |spec: &LlmSpec, path: &str, body: &str| LlmRequest::read(spec, path, body.as_bytes());
    for background in ["true", "1", "\"true\"", "{}", "[]"] {
        let body = format!(r#"{{"model":"m","input":"a","max_output_tokens":9,"background":{background}}}"#);
        for path in ["/v1/responses", "/llm"] {
            let error = read(&LlmSpec::default(), path, &body).unwrap_err();
            assert_eq!(error.kind, CostErrorKind::BackgroundCall, "{body}");
            let request = read(&allowed, path, &body).unwrap().unwrap();
            assert!(request.background, "{body}");
        }
    }
    for background in ["false", "null"] {
        let body = format!(r#"{{"model":"m","input":"a","background":{background}}}"#);
        assert!(!call("/v1/responses", &body).background);
    }
    let picture = r#"{"model":"m","prompt":"a","background":"transparent"}"#;
    assert!(!call("/v1/images/generations", picture).background, "a picture has another one");
    let twice = r#"{"model":"m","input":"a","background":false,"background":true}"#;
    assert_eq!(read(&allowed, "/v1/responses", twice).unwrap_err().kind, CostErrorKind::DuplicateField);
}

#[test]
fn the_report_of_usage_is_added_and_nothing_else_changes() {
    for (body, rewritten) in [
        (r#" {"stream":true}"#, Some(r#" {"stream_options":{"include_usage":true},"stream":true}"#)),
        (
            r#"{"stream":true,"stream_options":{} }"#,
            Some(r#"{"stream":true,"stream_options":{"include_usage":true} }"#),
        ),
        (
            r#"{"stream_options": { "include_obfuscation":false},"stream":true}"#,
            Some(r#"{"stream_options": {"include_usage":true, "include_obfuscation":false},"stream":true}"#),
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage": false}}"#,
            Some(r#"{"stream":true,"stream_options":{"include_usage": true}}"#),
        ),
        (
            r#"{"stream":true,"stream_options":{"a":1,"include_usage":null}}"#,
            Some(r#"{"stream":true,"stream_options":{"a":1,"include_usage":true}}"#),
        ),
        (
            r#"{"stream":true,"stream_options":null}"#,
            Some(r#"{"stream":true,"stream_options":{"include_usage":true}}"#),
        ),
        (r#"{"stream":true,"stream_options":{"include_usage":true}}"#, None),
        (r#"{"stream":true,"stream_options":7}"#, None),
        (r#"{"stream":true,"stream_options":{"include_usage":"yes"}}"#, None),
        (r#"{"stream":false}"#, None),
        (r#"{"messages":[]}"#, None),
    ] {
        let changed = call(CHAT, body).rewritten(body.as_bytes());
        assert_eq!(changed.map(|bytes| String::from_utf8(bytes).unwrap()).as_deref(), rewritten, "{body}");
    }
    let body = r#"{"stream":true,"max_tokens":5,"messages":[]}"#;
    assert_eq!(call("/v1/messages", body).rewritten(body.as_bytes()), None, "others report always");
    let off = LlmSpec { include_usage: false, ..LlmSpec::default() };
    let request = LlmRequest::read(&off, CHAT, body.as_bytes()).unwrap().unwrap();
    assert_eq!(request.rewritten(body.as_bytes()), None);
}

#[test]
fn hostile_bodies_are_refused() {
    let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
    let deep = format!(r#"{{"messages":{deep}}}"#);
    let cases: [(&[u8], CostErrorKind); 14] = [
        (b"", CostErrorKind::BadBody),
        (b"null", CostErrorKind::BadBody),
        (b"[]", CostErrorKind::BadBody),
        (b"{\"a\":1", CostErrorKind::BadBody),
        (b"{\"a\":1}}", CostErrorKind::BadBody),
        (b"\xef\xbb\xbf{}", CostErrorKind::BadBody),
        (b"{\"a\":\"\xff\"}", CostErrorKind::BadBody),
        (b"{\"a\":\"\\ud800\"}", CostErrorKind::BadBody),
        (b"{\"a\":NaN}", CostErrorKind::BadBody),
        (b"{\"a\":01}", CostErrorKind::BadBody),
        (b"{\"max_tokens\":1,\"max_tokens\":9}", CostErrorKind::DuplicateField),
        (b"{\"max_tokens\":1,\"max\\u005ftokens\":9}", CostErrorKind::DuplicateField),
        (b"{\"stream_options\":{\"include_usage\":true,\"include_usage\":false}}", CostErrorKind::DuplicateField),
        (deep.as_bytes(), CostErrorKind::BodyTooDeep),
    ];
    for (body, kind) in cases {
        let error = LlmRequest::read(&LlmSpec::default(), CHAT, body).unwrap_err();
        assert_eq!(error.kind, kind, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn other_requests_pass_or_are_refused() {
    let reject = LlmSpec { others: OtherCalls::Reject, ..LlmSpec::default() };
    for body in [&b""[..], b"{}", b"--boundary", b"[1]"] {
        assert_eq!(LlmRequest::read(&LlmSpec::default(), "/v1/files", body), Ok(None));
        let error = LlmRequest::read(&reject, "/v1/files", body).unwrap_err();
        assert_eq!(error.kind, CostErrorKind::UnknownCall);
    }
}

#[test]
fn reservations_are_exact_where_they_cannot_be_extended() {
    let spec = LlmSpec::default();
    let reserve = |body: &str| call(CHAT, body).output_reservation(&spec);
    assert_eq!(reserve(r#"{"max_tokens":100000}"#), 100_000);
    assert_eq!(reserve(r#"{"max_tokens":100000,"stream":true}"#), 1_024);
    assert_eq!(reserve(r#"{"max_tokens":10,"stream":true}"#), 10);
    assert_eq!(reserve("{}"), 1_024);
    assert_eq!(call("/v1/embeddings", r#"{"input":"a"}"#).output_reservation(&spec), 0);
    let amounts = call(CHAT, r#"{"max_tokens":7,"messages":[{"content":"12345678"}]}"#).reservation(&spec);
    assert_eq!((amounts.get("input_tokens"), amounts.get("output_tokens")), (Some(2), Some(7)));
}
