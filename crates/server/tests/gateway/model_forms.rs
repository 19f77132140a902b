//! The forms of the providers: bodies, and streams from their start to their end.

use crate::model::PROMPT_TOKENS;

/// What a model has generated.
pub struct Generated {
    /// A piece of text.
    pub piece: String,
    pub pieces: usize,
    /// Output tokens that are reported.
    pub tokens: usize,
    /// Whether the request asks for a report in the stream.
    pub reports: bool,
}

/// A provider's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Chat,
    Completions,
    Responses,
    Embeddings,
    Anthropic,
    /// One response, whole.
    Gemini,
    /// A stream of events.
    GeminiEvents,
    /// A stream that is one list.
    GeminiList,
}

impl Form {
    pub fn of_path(target: &str) -> Option<Form> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Some(match path.rsplit(['/', ':']).next()? {
            "completions" if path.ends_with("/chat/completions") => Form::Chat,
            "completions" => Form::Completions,
            "responses" => Form::Responses,
            "embeddings" => Form::Embeddings,
            "messages" => Form::Anthropic,
            "streamGenerateContent" if query.contains("alt=sse") => Form::GeminiEvents,
            "streamGenerateContent" => Form::GeminiList,
            "generateContent" => Form::Gemini,
            _ => Form::Chat,
        })
    }

    pub fn is_stream(self, body: &str) -> bool {
        match self {
            Form::GeminiEvents | Form::GeminiList => true,
            Form::Gemini | Form::Embeddings => false,
            _ => body.contains("\"stream\":true"),
        }
    }

    pub fn stream_media(self) -> &'static str {
        if self == Form::GeminiList { "application/json; charset=UTF-8" } else { "text/event-stream" }
    }

    /// A response that is no stream.
    pub fn body(self, generated: &Generated) -> String {
        let (text, tokens) = (generated.piece.repeat(generated.pieces), generated.tokens);
        let usage = format!(r#""usage":{{"prompt_tokens":{PROMPT_TOKENS},"completion_tokens":{tokens}}}"#);
        let inputs = format!(r#""usage":{{"input_tokens":{PROMPT_TOKENS},"output_tokens":{tokens}}}"#);
        match self {
            Form::Chat => format!(
                r#"{{"id":"c1","choices":[{{"index":0,"message":{{"content":"{text}"}},"finish_reason":"stop"}}],{usage}}}"#
            ),
            Form::Completions => {
                format!(r#"{{"id":"c1","choices":[{{"index":0,"text":"{text}","finish_reason":"stop"}}],{usage}}}"#)
            }
            Form::Responses => format!(
                r#"{{"id":"r1","status":"completed","output":[{{"type":"message","content":[{{"type":"output_text","text":"{text}"}}]}}],{inputs}}}"#
            ),
            Form::Embeddings => format!(
                r#"{{"object":"list","data":[{{"index":0,"embedding":[0.1,-2e-3]}}],"usage":{{"prompt_tokens":{PROMPT_TOKENS},"total_tokens":{PROMPT_TOKENS}}}}}"#
            ),
            Form::Anthropic => {
                format!(r#"{{"id":"msg_1","type":"message","content":[{{"type":"text","text":"{text}"}}],{inputs}}}"#)
            }
            Form::Gemini | Form::GeminiEvents | Form::GeminiList => {
                candidate(&text, tokens, r#","finishReason":"STOP""#)
            }
        }
    }

    /// The beginning of a stream.
    pub fn start(self) -> String {
        match self {
            Form::Chat => chunk(r#""delta":{"role":"assistant","content":""}"#, "null"),
            Form::Responses => event(
                "response.created",
                r#","sequence_number":0,"response":{"id":"r1","status":"in_progress","output":[],"usage":null}"#,
            ),
            Form::Anthropic => {
                let message = format!(
                    r#","message":{{"id":"msg_1","role":"assistant","usage":{{"input_tokens":{PROMPT_TOKENS},"output_tokens":1}}}}"#
                );
                let block = r#","index":0,"content_block":{"type":"text","text":""}"#;
                event("message_start", &message) + &event("content_block_start", block)
            }
            Form::GeminiList => "[".to_owned(),
            _ => String::new(),
        }
    }

    /// One piece of text; `sent` came before it. Gemini reports as it goes.
    pub fn piece(self, sent: usize, generated: &Generated) -> String {
        let (text, next) = (&generated.piece, sent + 1);
        let so_far = generated.tokens * next / generated.pieces;
        match self {
            Form::Chat => chunk(&format!(r#""delta":{{"content":"{text}"}}"#), "null"),
            Form::Completions => chunk(&format!(r#""text":"{text}""#), "null"),
            Form::Responses => event(
                "response.output_text.delta",
                &format!(
                    r#","sequence_number":{next},"item_id":"m1","output_index":0,"content_index":0,"delta":"{text}""#
                ),
            ),
            Form::Anthropic => {
                event("content_block_delta", &format!(r#","index":0,"delta":{{"type":"text_delta","text":"{text}"}}"#))
            }
            Form::GeminiList => format!("{}{}", if sent > 0 { "\n,\r\n" } else { "" }, candidate(text, so_far, "")),
            _ => format!("data: {}\r\n\r\n", candidate(text, so_far, "")),
        }
    }

    /// The end of a stream, with what is reported.
    pub fn end(self, generated: &Generated) -> String {
        let (tokens, next) = (generated.tokens, generated.pieces + 1);
        match self {
            Form::Chat => format!("{}{}data: [DONE]\n\n", chunk(r#""delta":{}"#, r#""stop""#), report(generated)),
            Form::Completions => format!("{}{}data: [DONE]\n\n", chunk(r#""text":"""#, r#""stop""#), report(generated)),
            Form::Responses => event(
                "response.completed",
                &format!(
                    r#","sequence_number":{next},"response":{{"id":"r1","status":"completed","usage":{{"input_tokens":{PROMPT_TOKENS},"output_tokens":{tokens}}}}}"#
                ),
            ),
            Form::Anthropic => {
                let stop = format!(r#","delta":{{"stop_reason":"end_turn"}},"usage":{{"output_tokens":{tokens}}}"#);
                event("content_block_stop", r#","index":0"#)
                    + &event("message_delta", &stop)
                    + &event("message_stop", "")
            }
            Form::GeminiList => {
                let joint = if generated.pieces > 0 { "\n,\r\n" } else { "" };
                format!("{joint}{}\n]", candidate("", tokens, r#","finishReason":"STOP""#))
            }
            _ => format!("data: {}\r\n\r\n", candidate("", tokens, r#","finishReason":"STOP""#)),
        }
    }
}

/// A chunk of completions.
fn chunk(content: &str, reason: &str) -> String {
    let object = if content.contains("delta") { "chat.completion.chunk" } else { "text_completion" };
    format!(
        "data: {{\"id\":\"c1\",\"object\":\"{object}\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,{content},\
         \"finish_reason\":{reason}}}]}}\n\n"
    )
}

/// The event that `include_usage` adds.
fn report(generated: &Generated) -> String {
    let tokens = generated.tokens;
    match generated.reports {
        true => format!(
            "data: {{\"id\":\"c1\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{{\"prompt_tokens\":{PROMPT_TOKENS},\
             \"completion_tokens\":{tokens}}}}}\n\n"
        ),
        false => String::new(),
    }
}

/// An event that has its name in its data, too.
fn event(name: &str, rest: &str) -> String {
    format!("event: {name}\ndata: {{\"type\":\"{name}\"{rest}}}\n\n")
}

/// A response of Gemini: each has the tokens so far.
fn candidate(text: &str, tokens: usize, reason: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}},"index":0{reason}}}],"usageMetadata":{{"promptTokenCount":{PROMPT_TOKENS},"candidatesTokenCount":{tokens}}}}}"#
    )
}
