//! Which API of language models a request speaks.

/// An API, by the shape of its requests, responses and streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LlmDialect {
    /// OpenAI chat completions, and everything compatible with it.
    ChatCompletions,
    /// OpenAI completions.
    Completions,
    /// OpenAI responses.
    Responses,
    /// OpenAI embeddings.
    Embeddings,
    /// Anthropic messages.
    AnthropicMessages,
    /// Gemini `generateContent`, `streamGenerateContent` and `embedContent`.
    Gemini,
}

/// Ends of paths, in lower case.
const PATHS: [(&str, LlmDialect); 9] = [
    ("/chat/completions", LlmDialect::ChatCompletions),
    ("/completions", LlmDialect::Completions),
    ("/responses", LlmDialect::Responses),
    ("/embeddings", LlmDialect::Embeddings),
    ("/messages", LlmDialect::AnthropicMessages),
    (":generatecontent", LlmDialect::Gemini),
    (":streamgeneratecontent", LlmDialect::Gemini),
    (":embedcontent", LlmDialect::Gemini),
    (":batchembedcontents", LlmDialect::Gemini),
];

impl LlmDialect {
    /// Names in routes.
    pub const NAMES: [(&'static str, LlmDialect); 6] = [
        ("openai_chat", LlmDialect::ChatCompletions),
        ("openai_completions", LlmDialect::Completions),
        ("openai_responses", LlmDialect::Responses),
        ("openai_embeddings", LlmDialect::Embeddings),
        ("anthropic", LlmDialect::AnthropicMessages),
        ("gemini", LlmDialect::Gemini),
    ];

    /// The API of a path, whatever stands before it, such as `/openai/deployments/x`.
    pub fn of_path(path: &str) -> Option<LlmDialect> {
        let path = path.trim_end_matches('/').to_ascii_lowercase();
        PATHS.iter().find(|(end, _)| path.ends_with(end)).map(|(_, dialect)| *dialect)
    }

    /// The API of a body, by the fields at its root.
    pub(super) fn of_fields(has: impl Fn(&str) -> bool) -> Option<LlmDialect> {
        let any = |names: &[&str]| names.iter().any(|name| has(name));
        if has("contents") {
            return Some(LlmDialect::Gemini);
        }
        if has("messages") {
            let is_anthropic = any(&["anthropic_version", "system", "stop_sequences", "top_k"]);
            return Some(if is_anthropic { LlmDialect::AnthropicMessages } else { LlmDialect::ChatCompletions });
        }
        if has("prompt") {
            return Some(LlmDialect::Completions);
        }
        if !has("input") || !has("model") {
            return None;
        }
        let is_generated =
            any(&["instructions", "max_output_tokens", "stream", "tools", "reasoning", "store", "background"]);
        Some(if is_generated { LlmDialect::Responses } else { LlmDialect::Embeddings })
    }

    /// Whether responses are made of generated tokens.
    pub fn generates(self) -> bool {
        self != LlmDialect::Embeddings
    }

    /// Whether a stream reports its usage only if the request asks for it.
    pub(super) fn reports_on_request(self) -> bool {
        matches!(self, LlmDialect::ChatCompletions | LlmDialect::Completions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_paths_of_providers_and_compatible_servers() {
        let cases = [
            ("/v1/chat/completions", Some(LlmDialect::ChatCompletions)),
            ("/openai/deployments/gpt/chat/completions", Some(LlmDialect::ChatCompletions)),
            ("/V1/Chat/Completions/", Some(LlmDialect::ChatCompletions)),
            ("/v1/completions", Some(LlmDialect::Completions)),
            ("/v1/responses", Some(LlmDialect::Responses)),
            ("/v1/embeddings", Some(LlmDialect::Embeddings)),
            ("/v1/messages", Some(LlmDialect::AnthropicMessages)),
            ("/v1beta/models/gemini-2.5-pro:generateContent", Some(LlmDialect::Gemini)),
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent", Some(LlmDialect::Gemini)),
            ("/v1/messages/count_tokens", None),
            ("/v1/models", None),
            ("/v1/mycompletions", None),
            ("/", None),
        ];
        for (path, wanted) in cases {
            assert_eq!(LlmDialect::of_path(path), wanted, "{path}");
        }
    }

    #[test]
    fn knows_bodies_where_the_path_says_nothing() {
        let cases: [(&[&str], Option<LlmDialect>); 8] = [
            (&["messages", "model"], Some(LlmDialect::ChatCompletions)),
            (&["messages", "model", "max_tokens", "system"], Some(LlmDialect::AnthropicMessages)),
            (&["contents"], Some(LlmDialect::Gemini)),
            (&["model", "prompt"], Some(LlmDialect::Completions)),
            (&["model", "input"], Some(LlmDialect::Embeddings)),
            (&["model", "input", "stream"], Some(LlmDialect::Responses)),
            (&["input"], None),
            (&["model"], None),
        ];
        for (fields, wanted) in cases {
            assert_eq!(LlmDialect::of_fields(|name| fields.contains(&name)), wanted, "{fields:?}");
        }
    }
}
