//! Traffic as the providers send it.

use super::super::TokenUsage;

pub(super) const CHAT: &str = "/v1/chat/completions";

pub(super) const CHAT_STREAM: &str =
    r#"{"model":"gpt-4.1","stream":true,"messages":[{"role":"user","content":"Say hello."}]}"#;

/// A stream of chat completions, and the event that `include_usage` adds.
pub(super) const CHAT_EVENTS: &str = concat!(
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1763500000,"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
    "\n\n",
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1763500000,"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{"content":"Hello, wor"},"finish_reason":null}],"usage":null}"#,
    "\n\n",
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1763500000,"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{"content":"ld\u00e9."},"finish_reason":null}],"usage":null}"#,
    "\n\n",
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1763500000,"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#,
    "\n\n",
);
pub(super) const CHAT_USAGE: &str = concat!(
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1763500000,"model":"gpt-4.1-2025-04-14","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":3,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}"#,
    "\n\n",
);
pub(super) const DONE: &str = "data: [DONE]\n\n";

pub(super) const RESPONSES_EVENTS: &str = concat!(
    "event: response.created\n",
    r#"data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-4.1","output":[],"usage":null}}"#,
    "\n\nevent: response.output_text.delta\n",
    r#"data: {"type":"response.output_text.delta","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello"}"#,
    "\n\nevent: response.output_text.done\n",
    r#"data: {"type":"response.output_text.done","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"text":"Hello"}"#,
    "\n\nevent: response.completed\n",
    r#"data: {"type":"response.completed","sequence_number":3,"response":{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}],"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":5},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":7},"total_tokens":48}}}"#,
    "\n\n",
);

pub(super) const ANTHROPIC_EVENTS: &str = concat!(
    "event: message_start\r\n",
    r#"data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-sonnet-4-5","stop_reason":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1}}}"#,
    "\r\n\r\nevent: content_block_start\r\n",
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    "\r\n\r\nevent: ping\r\n",
    r#"data: {"type": "ping"}"#,
    "\r\n\r\nevent: content_block_delta\r\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello, world"}}"#,
    "\r\n\r\nevent: content_block_stop\r\n",
    r#"data: {"type":"content_block_stop","index":0}"#,
    "\r\n\r\nevent: message_delta\r\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}"#,
    "\r\n\r\nevent: message_stop\r\n",
    r#"data: {"type":"message_stop"}"#,
    "\r\n\r\n",
);

pub(super) const GEMINI_EVENTS: &str = concat!(
    r#"data: {"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2,"totalTokenCount":10},"modelVersion":"gemini-2.5-pro"}"#,
    "\r\n\r\n",
    r#"data: {"candidates":[{"content":{"parts":[{"text":", world."}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":4,"thoughtsTokenCount":20,"cachedContentTokenCount":6,"totalTokenCount":32},"modelVersion":"gemini-2.5-pro"}"#,
    "\r\n\r\n",
);

/// The same responses without events.
pub(super) const GEMINI_LIST: &str = concat!(
    r#"[{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2,"totalTokenCount":10}}"#,
    "\n,\r\n",
    r#"{"candidates":[{"content":{"parts":[{"text":", world."}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":4,"thoughtsTokenCount":20,"cachedContentTokenCount":6,"totalTokenCount":32}}"#,
    "\n]",
);

/// Bodies that are no streams: path, response, usage.
pub(super) const BODIES: [(&str, &str, TokenUsage); 7] = [
    (
        CHAT,
        r#"{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}}"#,
        TokenUsage { input: 19, output: 10, cached: 4 },
    ),
    (
        "/v1/completions",
        r#"{"id":"cmpl-1","object":"text_completion","choices":[{"text":"hi","index":0,"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}"#,
        TokenUsage { input: 5, output: 7, cached: 0 },
    ),
    (
        "/v1/responses",
        r#"{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}],"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":30},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":123}}"#,
        TokenUsage { input: 36, output: 87, cached: 30 },
    ),
    (
        "/v1/embeddings",
        r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.0023064255,-0.009327292,-1e-9]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":8,"total_tokens":8}}"#,
        TokenUsage { input: 8, output: 0, cached: 0 },
    ),
    (
        "/v1/messages",
        r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"Hello"},{"type":"tool_use","id":"toolu_1","name":"f","input":{"usage":{"output_tokens":1000000}}}],"stop_reason":"tool_use","usage":{"input_tokens":50,"cache_creation_input_tokens":0,"cache_read_input_tokens":1800,"output_tokens":33}}"#,
        TokenUsage { input: 1850, output: 33, cached: 1800 },
    ),
    (
        "/v1beta/models/gemini-2.5-pro:generateContent",
        r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":10,"thoughtsTokenCount":100,"toolUsePromptTokenCount":2,"totalTokenCount":116},"modelVersion":"gemini-2.5-pro"}"#,
        TokenUsage { input: 6, output: 110, cached: 0 },
    ),
    (
        CHAT,
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"sixteen letters."}}]}"#,
        TokenUsage { input: 5, output: 4, cached: 0 },
    ),
];
