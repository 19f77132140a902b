//! What the events of a response say: reports of usage, generated text, and what is needed to end a stream in its form.

use super::passage::StreamPoint;
use super::settings::TokenCounter;
use super::usage::{ReportedUsage, TokenUsage, steps_to_report};
use crate::json::{JsonEvent, JsonPath, JsonSink, amount};

/// The largest amount of a meter: what a JSON number holds exactly.
const TOKENS_MAX: u64 = (1 << 53) - 1;
/// Most choices that an ending names.
const CHOICES_MAX: u64 = 16;

/// Tokens of a response so far.
#[derive(Debug)]
pub(super) struct UsageTally {
    counter: TokenCounter,
    prompt_estimate: u64,
    reported: ReportedUsage,
    text_bytes: u64,
    /// Pieces of text. Models stream whole tokens, so that each piece has at least one.
    pieces: u64,
    /// Whether the last report says everything: no text followed it.
    is_final: bool,
    event: EventFacts,
    /// Where the stream stands, but for its tokens.
    place: StreamPoint,
    /// What an ending needs to know of the stream.
    pub(super) identity: StreamIdentity,
}

/// What one event says; a body that is no stream is one event.
#[derive(Debug, Default)]
struct EventFacts {
    reported: ReportedUsage,
    has_report: bool,
    text_bytes: u64,
    pieces: u64,
    finished: bool,
    /// Whether there is a list of choices, and none in it.
    no_choices: Option<bool>,
    block: Option<BlockChange>,
    index: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockChange {
    Start,
    Stop,
}

/// The stream, as its events name themselves.
#[derive(Debug, Default)]
pub(super) struct StreamIdentity {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) created: Option<u64>,
}

impl UsageTally {
    pub(super) fn new(counter: TokenCounter, prompt_estimate: u64) -> UsageTally {
        UsageTally {
            counter,
            prompt_estimate,
            reported: ReportedUsage::default(),
            text_bytes: 0,
            pieces: 0,
            is_final: false,
            event: EventFacts::default(),
            place: StreamPoint::default(),
            identity: StreamIdentity::default(),
        }
    }

    /// Usage so far: as reported at the end, before it the larger of the last report and the estimate.
    pub(super) fn usage(&self) -> TokenUsage {
        let pieces = self.pieces.saturating_add(self.event.pieces);
        let estimate = self.counter.tokens(self.text_bytes.saturating_add(self.event.text_bytes)).max(pieces);
        let mut reported = self.reported;
        reported.merge(&self.event.reported);
        let output = match reported.output() {
            Some(output) if self.is_final => output,
            output => estimate.max(output.unwrap_or(0)),
        };
        TokenUsage {
            input: reported.input().unwrap_or(self.prompt_estimate).min(TOKENS_MAX),
            output: output.min(TOKENS_MAX),
            cached: reported.cached().min(TOKENS_MAX),
        }
    }

    /// Where the stream stands.
    pub(super) fn point(&self) -> StreamPoint {
        StreamPoint { output_tokens: self.usage().output, ..self.place }
    }

    /// Whether the provider has reported everything.
    pub(super) fn is_final(&self) -> bool {
        self.is_final
    }

    /// Counts bytes of a body that cannot be read as generated text.
    pub(super) fn add_opaque(&mut self, bytes: usize) {
        self.text_bytes = self.text_bytes.saturating_add(bytes as u64);
    }

    /// Whether the event is what `include_usage` adds: a report, and no choices.
    pub(super) fn is_usage_only(&self) -> bool {
        self.event.has_report && self.event.no_choices == Some(true) && self.event.text_bytes == 0
    }

    /// The event ends: what it said is added.
    pub(super) fn end_event(&mut self) {
        let event = std::mem::take(&mut self.event);
        self.reported.merge(&event.reported);
        self.text_bytes = self.text_bytes.saturating_add(event.text_bytes);
        self.pieces = self.pieces.saturating_add(event.pieces);
        if event.has_report {
            self.is_final = event.text_bytes == 0 || event.finished;
        } else if event.text_bytes > 0 {
            self.is_final = false;
        }
        match event.block {
            Some(BlockChange::Start) => self.place.open_block = event.index,
            Some(BlockChange::Stop) => self.place.open_block = None,
            None => {}
        }
    }

    fn text(&mut self, path: &JsonPath, from: usize, text: Option<&str>, bytes: u64) {
        if is_generated(path, from) {
            self.event.text_bytes = self.event.text_bytes.saturating_add(bytes);
            self.event.pieces = self.event.pieces.saturating_add(u64::from(bytes > 0));
        }
        let Some(text) = text else { return };
        let is_ended = matches!(path.last_key(), Some("finish_reason" | "finishReason" | "stop_reason"));
        self.event.finished |= is_ended && path.depth() > from + 1;
        if path.depth() == from + 1 {
            match path.key(from) {
                Some("type") => self.kind(text),
                Some("id") => self.identity.id = Some(text.to_owned()),
                Some("model" | "modelVersion") => self.identity.model = Some(text.to_owned()),
                _ => {}
            }
        } else if path.is(&["response", "id"]) {
            self.identity.id = Some(text.to_owned());
        }
    }

    fn kind(&mut self, text: &str) {
        match text {
            "content_block_start" => self.event.block = Some(BlockChange::Start),
            "content_block_stop" => self.event.block = Some(BlockChange::Stop),
            "response.completed" | "response.incomplete" | "response.failed" => self.event.finished = true,
            _ => {}
        }
    }

    fn number(&mut self, path: &JsonPath, from: usize, text: &str) {
        // A number with more digits than are kept is larger than any amount.
        let Some(amount) = (if text.is_empty() { Some(u64::MAX) } else { amount(text) }) else { return };
        if let Some(steps) = steps_to_report(path, from) {
            return self.event.reported.set(path, steps, amount);
        }
        match path.key(from) {
            Some("created") if path.depth() == from + 1 => self.identity.created = Some(amount),
            Some("sequence_number") if path.depth() == from + 1 => self.place.sequence = Some(amount),
            Some("index") if path.depth() == from + 1 => self.event.index = Some(amount),
            Some("choices") if path.depth() == from + 3 && path.key(from + 2) == Some("index") => {
                self.place.last_choice = self.place.last_choice.max(amount.min(CHOICES_MAX - 1));
            }
            _ => {}
        }
    }
}

impl JsonSink for UsageTally {
    fn event(&mut self, path: &JsonPath, event: JsonEvent<'_>, _offset: u64) {
        // Gemini streams are lists of responses where events are not asked for.
        let from = usize::from(path.index(0).is_some());
        self.place.has_started |= path.depth() > from;
        match event {
            JsonEvent::Text { text, bytes } => self.text(path, from, text, bytes),
            JsonEvent::Number(text) => self.number(path, from, text),
            JsonEvent::Key { bytes } if is_argument(path, from) => {
                self.event.text_bytes = self.event.text_bytes.saturating_add(bytes);
            }
            JsonEvent::List if path.depth() == from + 1 && path.key(from) == Some("choices") => {
                self.event.no_choices = Some(true);
            }
            JsonEvent::Object if path.depth() == from + 2 && path.key(from) == Some("choices") => {
                self.event.no_choices = Some(false);
            }
            JsonEvent::Object if steps_to_report(path, from) == Some(path.depth()) => self.event.has_report = true,
            _ => {}
        }
    }
}

/// Whether a text is generated by the model. Events that repeat a whole text at its end have other names.
fn is_generated(path: &JsonPath, from: usize) -> bool {
    let last = path.last_key();
    match path.key(from) {
        Some("delta") => path.depth() == from + 1 || matches!(last, Some("text" | "partial_json" | "thinking")),
        Some("choices") => {
            let is_text =
                matches!(last, Some("content" | "text" | "reasoning" | "reasoning_content" | "refusal" | "arguments"));
            is_text && !path.has_key("logprobs")
        }
        Some("candidates") => last == Some("text") || is_argument(path, from),
        Some("content") => matches!(last, Some("text" | "thinking")) || is_argument(path, from),
        Some("output") => matches!(last, Some("text" | "arguments" | "refusal")),
        _ => false,
    }
}

/// Whether the value is part of the arguments of a function that are sent as JSON.
fn is_argument(path: &JsonPath, from: usize) -> bool {
    match path.key(from) {
        Some("candidates") => path.has_key("functionCall"),
        Some("content") => path.key(from + 2) == Some("input"),
        _ => false,
    }
}
