//! The end of a stream whose budget is spent, and refusals, in the form of each provider.

use serde_json::Value;

use super::dialect::LlmDialect;
use super::passage::StreamPoint;
use super::settings::OnExhausted;
use super::tally::StreamIdentity;
use super::usage::TokenUsage;

/// What an ending says.
pub(super) struct Ending<'a> {
    pub(super) how: OnExhausted,
    pub(super) message: &'a str,
    /// Where the stream is ended.
    pub(super) after: &'a StreamPoint,
    pub(super) identity: &'a StreamIdentity,
    pub(super) usage: TokenUsage,
    /// Whether the caller asked for a report of usage.
    pub(super) reports: bool,
}

/// The text as a JSON string.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl LlmDialect {
    /// The body of a refusal, as the provider writes it for this status.
    pub fn refusal(self, status: u16, message: &str) -> Vec<u8> {
        let message = quoted(message);
        let body = match self {
            LlmDialect::AnthropicMessages => {
                let kind = anthropic_error(status);
                format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
            }
            LlmDialect::Gemini => {
                let name = google_status(status);
                format!(r#"{{"error":{{"code":{status},"message":{message},"status":"{name}"}}}}"#)
            }
            _ => openai_error(status, &message),
        };
        body.into_bytes()
    }

    /// The events that end a stream; `list` is what joins an item to a list of responses that is no stream of events.
    pub(super) fn ending(self, ending: &Ending<'_>, list: Option<&str>) -> String {
        match (self, ending.how) {
            (LlmDialect::ChatCompletions | LlmDialect::Completions, OnExhausted::Finish) => {
                self.finish_completion(ending)
            }
            (LlmDialect::ChatCompletions | LlmDialect::Completions | LlmDialect::Embeddings, _) => {
                format!("data: {}\n\n", openai_error(429, &quoted(ending.message)))
            }
            (LlmDialect::Responses, OnExhausted::Finish) => incomplete_response(ending),
            (LlmDialect::Responses, OnExhausted::Cut) => failed_response(ending),
            (LlmDialect::AnthropicMessages, OnExhausted::Finish) => finish_message(ending),
            (LlmDialect::AnthropicMessages, OnExhausted::Cut) => {
                event("error", &text(self.refusal(429, ending.message)))
            }
            (LlmDialect::Gemini, how) => {
                let item = match how {
                    OnExhausted::Finish => last_candidate(ending),
                    OnExhausted::Cut => text(self.refusal(429, ending.message)),
                };
                match list {
                    Some(join) => format!("{join}{item}]"),
                    None => format!("data: {item}\r\n\r\n"),
                }
            }
        }
    }

    fn finish_completion(self, ending: &Ending<'_>) -> String {
        let identity = ending.identity;
        let (object, content) = match self {
            LlmDialect::Completions => ("text_completion", r#""text":"","logprobs":null"#),
            _ => ("chat.completion.chunk", r#""delta":{}"#),
        };
        let id = quoted(identity.id.as_deref().unwrap_or("tollgate"));
        let model = quoted(identity.model.as_deref().unwrap_or_default());
        let created = identity.created.unwrap_or(0);
        let head = format!(r#""id":{id},"object":"{object}","created":{created},"model":{model}"#);
        let choice = |index| format!(r#"{{"index":{index},{content},"finish_reason":"length"}}"#);
        let choices = (0..=ending.after.last_choice).map(choice).collect::<Vec<_>>().join(",");
        let mut events = format!("data: {{{head},\"choices\":[{choices}]}}\n\n");
        if ending.reports {
            let TokenUsage { input, output, .. } = ending.usage;
            let total = input.saturating_add(output);
            let usage = format!(r#"{{"prompt_tokens":{input},"completion_tokens":{output},"total_tokens":{total}}}"#);
            events.push_str(&format!("data: {{{head},\"choices\":[],\"usage\":{usage}}}\n\n"));
        }
        events.push_str("data: [DONE]\n\n");
        events
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_default()
}

fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn openai_error(status: u16, message: &str) -> String {
    let (kind, code) = match status {
        400 | 413 | 422 => ("invalid_request_error", "null"),
        401 => ("invalid_request_error", r#""invalid_api_key""#),
        403 => ("permission_error", "null"),
        404 => ("invalid_request_error", r#""model_not_found""#),
        429 => ("rate_limit_error", r#""rate_limit_exceeded""#),
        _ => ("server_error", "null"),
    };
    format!(r#"{{"error":{{"message":{message},"type":"{kind}","param":null,"code":{code}}}}}"#)
}

fn anthropic_error(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        503 | 529 => "overloaded_error",
        _ => "api_error",
    }
}

fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..=499 => "INVALID_ARGUMENT",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    }
}

/// The number of the next event of a stream of responses.
fn next_number(ending: &Ending<'_>) -> u64 {
    ending.after.sequence.map_or(0, |number| number.saturating_add(1))
}

fn incomplete_response(ending: &Ending<'_>) -> String {
    let identity = ending.identity;
    let TokenUsage { input, output, cached } = ending.usage;
    let id = quoted(identity.id.as_deref().unwrap_or("resp_tollgate"));
    let total = input.saturating_add(output);
    let usage = format!(
        r#"{{"input_tokens":{input},"input_tokens_details":{{"cached_tokens":{cached}}},"output_tokens":{output},"output_tokens_details":{{"reasoning_tokens":0}},"total_tokens":{total}}}"#
    );
    let response = format!(
        r#"{{"id":{id},"object":"response","status":"incomplete","error":null,"incomplete_details":{{"reason":"max_output_tokens"}},"output":[],"usage":{usage}}}"#
    );
    let number = next_number(ending);
    let data = format!(r#"{{"type":"response.incomplete","sequence_number":{number},"response":{response}}}"#);
    event("response.incomplete", &data)
}

fn failed_response(ending: &Ending<'_>) -> String {
    let (number, message) = (next_number(ending), quoted(ending.message));
    let data = format!(
        r#"{{"type":"error","sequence_number":{number},"code":"rate_limit_exceeded","message":{message},"param":null}}"#
    );
    event("error", &data)
}

fn finish_message(ending: &Ending<'_>) -> String {
    let stop = ending
        .after
        .open_block
        .map(|index| event("content_block_stop", &format!(r#"{{"type":"content_block_stop","index":{index}}}"#)));
    let output = ending.usage.output;
    let delta = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"max_tokens","stop_sequence":null}},"usage":{{"output_tokens":{output}}}}}"#
    );
    let end = event("message_stop", r#"{"type":"message_stop"}"#);
    format!("{}{}{end}", stop.unwrap_or_default(), event("message_delta", &delta))
}

fn last_candidate(ending: &Ending<'_>) -> String {
    let TokenUsage { input, output, .. } = ending.usage;
    let total = input.saturating_add(output);
    format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"text":""}}],"role":"model"}},"finishReason":"MAX_TOKENS","index":0}}],"usageMetadata":{{"promptTokenCount":{input},"candidatesTokenCount":{output},"totalTokenCount":{total}}}}}"#
    )
}
