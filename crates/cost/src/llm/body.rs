//! What the body of a call says: texts of the prompt, maxima, and where `stream_options` is.

use std::sync::Arc;

use super::dialect::LlmDialect;
use super::media::{MEDIA_TOKENS_MAX, MediaTexts};
use super::rewrite::BodyEdit;
use super::settings::TokenCounter;
use super::stream_options::StreamOptions;
use super::tokenizer::{TokenCount, Tokenizer};
use crate::error::{CostError, CostErrorKind};
use crate::json::{JsonEvent, JsonFault, JsonPart, JsonPath, JsonSink, amount, scan_all};

/// Tokens that OpenAI completions have by default.
const COMPLETION_TOKENS: u64 = 16;

/// Fields that are read: each may be there once, because servers differ in which of two they take.
const READ: [&[&str]; 23] = [
    &["model"],
    &["stream"],
    &["background"],
    &["stream_options"],
    &["stream_options", "include_usage"],
    &["max_tokens"],
    &["max_completion_tokens"],
    &["max_output_tokens"],
    &["n"],
    &["best_of"],
    &["generationConfig"],
    &["generationConfig", "maxOutputTokens"],
    &["generationConfig", "candidateCount"],
    &["generation_config"],
    &["generation_config", "max_output_tokens"],
    &["generation_config", "candidate_count"],
    &["messages"],
    &["prompt"],
    &["input"],
    &["contents"],
    &["system"],
    &["instructions"],
    &["tools"],
];

/// Fields that are no part of the prompt.
const SETTINGS: [&str; 12] = [
    "model",
    "user",
    "metadata",
    "stop",
    "stop_sequences",
    "service_tier",
    "safetySettings",
    "safety_identifier",
    "prompt_cache_key",
    "previous_response_id",
    "include",
    "reasoning_effort",
];

/// Fields at the root that tell dialects apart.
const TELLING: [&str; 16] = [
    "contents",
    "messages",
    "anthropic_version",
    "system",
    "stop_sequences",
    "top_k",
    "prompt",
    "input",
    "model",
    "instructions",
    "max_output_tokens",
    "stream",
    "tools",
    "reasoning",
    "store",
    "background",
];

/// Why a body is refused.
pub(super) enum BodyFault {
    Json(JsonFault),
    Duplicate(&'static [&'static str]),
}

impl BodyFault {
    pub(super) fn error(&self) -> CostError {
        match self {
            BodyFault::Json(fault) => CostError::of_json(*fault),
            BodyFault::Duplicate(path) => {
                CostErrorKind::DuplicateField.error(format!("the body has `{}` twice", path.join(".")))
            }
        }
    }
}

/// What a body says.
#[derive(Debug, Default)]
pub(super) struct BodyFacts {
    pub(super) model: Option<String>,
    pub(super) stream: bool,
    /// Whether the response is generated behind the call.
    pub(super) background: bool,
    /// Root fields that are there, as bits of `TELLING`.
    telling: u32,
    /// Fields that are there, as bits of `READ`.
    seen: u32,
    duplicate: Option<usize>,
    text_bytes: u64,
    /// Instead of `text_bytes`, where there is a vocabulary.
    encoded: Option<TokenCount>,
    media: MediaTexts,
    /// Tokens of prompts that are sent as numbers.
    token_ids: u64,
    max_tokens: Option<u64>,
    choices: Option<u64>,
    /// Prompts in a list, each of which is completed.
    prompts: u64,
    /// After the brace of the root.
    root_start: Option<usize>,
    options: StreamOptions,
}

impl BodyFacts {
    pub(super) fn read(body: &[u8], vocabulary: Option<&Arc<Tokenizer>>) -> Result<BodyFacts, BodyFault> {
        let encoded = vocabulary.cloned().map(TokenCount::new);
        let mut facts = BodyFacts { encoded, ..BodyFacts::default() };
        scan_all(body, &mut facts).map_err(BodyFault::Json)?;
        match facts.duplicate.and_then(|index| READ.get(index)) {
            Some(path) => Err(BodyFault::Duplicate(path)),
            None => Ok(facts),
        }
    }

    pub(super) fn is_object(&self) -> bool {
        self.root_start.is_some()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        TELLING.iter().position(|telling| *telling == name).is_some_and(|index| self.telling >> index & 1 == 1)
    }

    pub(super) fn prompt_tokens(&self, counter: TokenCounter) -> u64 {
        let media = self.media.bytes.iter().map(|bytes| counter.tokens(*bytes).min(MEDIA_TOKENS_MAX));
        let media = media.fold(0, u64::saturating_add);
        let encoded = self.encoded.as_ref().map_or(0, TokenCount::tokens);
        counter.tokens(self.text_bytes).saturating_add(encoded).saturating_add(self.token_ids).saturating_add(media)
    }

    pub(super) fn max_output_tokens(&self, dialect: LlmDialect) -> Option<u64> {
        let default = (dialect == LlmDialect::Completions).then_some(COMPLETION_TOKENS);
        let prompts = if dialect == LlmDialect::Completions { self.prompts.max(1) } else { 1 };
        let choices = self.choices.unwrap_or(1).max(1);
        Some(self.max_tokens.or(default)?.saturating_mul(choices).saturating_mul(prompts))
    }

    pub(super) fn asks_for_usage(&self) -> bool {
        self.options.asks()
    }

    /// What makes a stream report its usage.
    pub(super) fn usage_edit(&self) -> Option<BodyEdit> {
        self.options.edit(self.root_start?)
    }

    fn key(&mut self, path: &JsonPath) {
        if path.depth() == 1
            && let Some(index) = TELLING.iter().position(|name| path.key(0) == Some(name))
        {
            self.telling |= 1 << index;
        }
        if let Some(index) = READ.iter().position(|read| path.is(read)) {
            if self.seen >> index & 1 == 1 {
                self.duplicate.get_or_insert(index);
            }
            self.seen |= 1 << index;
        }
    }

    fn text(&mut self, path: &JsonPath, text: Option<&str>, bytes: u64) {
        if path.is(&["model"]) {
            self.model = text.map(str::to_owned);
        }
        match &mut self.encoded {
            _ if MediaTexts::is_at(path) => self.media.add(path, bytes),
            _ if !is_prompt(path) => {}
            Some(encoded) => encoded.end_text(),
            None => self.text_bytes = self.text_bytes.saturating_add(bytes),
        }
        self.count_prompt(path);
        self.media.read_kind(path, text.unwrap_or_default());
    }

    /// An item of a list of prompts: a text, or a list of token ids.
    fn count_prompt(&mut self, path: &JsonPath) {
        if path.depth() == 2 && path.key(0) == Some("prompt") && path.index(1).is_some() {
            self.prompts = self.prompts.saturating_add(1);
        }
    }

    fn number(&mut self, path: &JsonPath, text: &str) {
        if path.depth() > 1 && matches!(path.key(0), Some("prompt" | "input")) {
            self.token_ids = self.token_ids.saturating_add(u64::from(path.last_key() == path.key(0)));
        }
        let Some(amount) = (if text.is_empty() { Some(u64::MAX) } else { amount(text) }) else { return };
        let is_maximum = match (path.depth(), path.key(0), path.key(1)) {
            (1, Some("max_tokens" | "max_completion_tokens" | "max_output_tokens"), _) => true,
            (2, Some("generationConfig" | "generation_config"), Some("maxOutputTokens" | "max_output_tokens")) => true,
            (1, Some("n" | "best_of"), _) => false,
            (2, Some("generationConfig" | "generation_config"), Some("candidateCount" | "candidate_count")) => false,
            _ => return,
        };
        let place = if is_maximum { &mut self.max_tokens } else { &mut self.choices };
        *place = Some(place.unwrap_or(0).max(amount));
    }
}

impl JsonSink for BodyFacts {
    fn part(&mut self, path: &JsonPath, kind: JsonPart, bytes: &[u8]) {
        if let Some(encoded) = &mut self.encoded
            && kind == JsonPart::Text
            && is_prompt(path)
            && !MediaTexts::is_at(path)
        {
            encoded.add(bytes);
        }
    }

    fn event(&mut self, path: &JsonPath, event: JsonEvent<'_>, offset: u64) {
        match event {
            JsonEvent::Object if path.depth() == 0 => {
                self.root_start = usize::try_from(offset).ok().map(|offset| offset + 1);
            }
            JsonEvent::Key { bytes } => {
                self.key(path);
                // Schemas of functions are sent to the model with their names.
                if matches!(path.key(0), Some("tools" | "functions" | "response_format" | "text")) {
                    self.text_bytes = self.text_bytes.saturating_add(bytes);
                }
            }
            JsonEvent::Text { text, bytes } => self.text(path, text, bytes),
            JsonEvent::Number(text) => self.number(path, text),
            JsonEvent::List => self.count_prompt(path),
            JsonEvent::Bool(value) if path.is(&["stream"]) => self.stream = value,
            JsonEvent::End => self.text_bytes = self.text_bytes.saturating_add(self.media.end(path)),
            _ => {}
        }
        // Anything but `false` and `null` may be a yes to the server.
        let is_value = !matches!(event, JsonEvent::Bool(false) | JsonEvent::Null | JsonEvent::Key { .. });
        self.background |= is_value && path.is(&["background"]);
        if path.key(0) == Some("stream_options") {
            self.options.event(path, event, offset);
        }
    }
}

/// Whether a text is sent to the model.
fn is_prompt(path: &JsonPath) -> bool {
    path.key(0).is_none_or(|root| !SETTINGS.contains(&root))
}
