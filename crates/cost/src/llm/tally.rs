//! What the events of a response say: reports of usage, generated text, and what is needed to end a stream in its form.

use super::generated::GeneratedPart;
use super::passage::StreamPoint;
use super::settings::TokenCounter;
use super::text_count::TextCount;
use super::usage::{ReportedUsage, TokenUsage, steps_to_report};
use crate::json::{JsonEvent, JsonPart, JsonPath, JsonSink, amount};

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
    text: TextCount,
    /// Whether the last report says everything: no text followed it.
    is_final: bool,
    event: EventFacts,
    /// What the value that is being read is, once a part of it has come.
    part: Option<Option<GeneratedPart>>,
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
    text: TextCount,
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
            text: TextCount::default(),
            is_final: false,
            event: EventFacts::default(),
            part: None,
            place: StreamPoint::default(),
            identity: StreamIdentity::default(),
        }
    }

    /// Usage so far: as reported at the end, before it the larger of the last report and the estimate.
    pub(super) fn usage(&self) -> TokenUsage {
        let estimate = self.text.with(&self.event.text).tokens(self.counter);
        let mut reported = self.reported;
        reported.merge(&self.event.reported);
        let output = match reported.output() {
            Some(output) if self.is_final() => output,
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

    /// Whether the provider has reported everything, and nothing has followed.
    pub(super) fn is_final(&self) -> bool {
        self.is_final && self.event.text.is_empty() && self.reported.output().is_some()
    }

    /// Counts bytes that cannot be read as generated text.
    pub(super) fn add_opaque(&mut self, bytes: u64) {
        self.event.text.add_opaque(bytes);
    }

    /// Whether the event is what `include_usage` adds: a report, and no choices.
    pub(super) fn is_usage_only(&self) -> bool {
        self.event.has_report && self.event.no_choices == Some(true) && self.event.text.is_empty()
    }

    /// The text of a body ends: a report in it is about all of it.
    pub(super) fn end_body(&mut self) {
        self.event.finished = true;
        self.end_event();
    }

    /// The event ends: what it said is added.
    pub(super) fn end_event(&mut self) {
        let event = std::mem::take(&mut self.event);
        self.reported.merge(&event.reported);
        self.part = None;
        self.text = self.text.with(&event.text);
        if event.has_report {
            self.is_final = event.text.is_empty() || event.finished;
        } else if !event.text.is_empty() {
            self.is_final = false;
        }
        match event.block {
            Some(BlockChange::Start) => self.place.open_block = event.index,
            Some(BlockChange::Stop) => self.place.open_block = None,
            None => {}
        }
    }

    fn text(&mut self, path: &JsonPath, from: usize, text: Option<&str>) {
        let Some(text) = text else { return };
        let is_ended = matches!(path.last_key(), Some("finish_reason" | "finishReason" | "stop_reason"));
        self.event.finished |= is_ended && !text.is_empty() && path.depth() > from + 1;
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

    /// Adds what has no parts and is written by the model only within arguments: brackets, `true`, `false` and `null`.
    fn add_written(&mut self, path: &JsonPath, from: usize, bytes: u64) {
        if let Some(part) = GeneratedPart::at(path, from, JsonPart::Number) {
            self.event.text.add(part, bytes);
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
    fn part(&mut self, path: &JsonPath, kind: JsonPart, bytes: &[u8]) {
        let find = || GeneratedPart::at(path, steps_to_response(path), kind);
        if let Some(part) = *self.part.get_or_insert_with(find) {
            self.event.text.add(part, bytes.len() as u64);
        }
    }

    fn event(&mut self, path: &JsonPath, event: JsonEvent<'_>, _offset: u64) {
        let from = steps_to_response(path);
        self.place.has_started |= path.depth() > from;
        let part = self.part.take().flatten();
        match event {
            JsonEvent::Text { text, .. } => {
                if let Some(part) = part {
                    self.event.text.end_piece(part);
                }
                // What arguments say is no word about the stream.
                if part.is_none_or(|part| !part.is_argument) {
                    self.text(path, from, text);
                }
            }
            JsonEvent::Number(text) if part.is_none() => self.number(path, from, text),
            JsonEvent::Bool(_) | JsonEvent::Null => self.add_written(path, from, 4),
            JsonEvent::List if path.depth() == from + 1 && path.key(from) == Some("choices") => {
                self.event.no_choices = Some(true);
            }
            JsonEvent::Object if path.depth() == from + 2 && path.key(from) == Some("choices") => {
                self.event.no_choices = Some(false);
            }
            JsonEvent::Object if steps_to_report(path, from) == Some(path.depth()) => self.event.has_report = true,
            // Both brackets.
            JsonEvent::Object | JsonEvent::List => self.add_written(path, from, 2),
            JsonEvent::End | JsonEvent::Key { .. } | JsonEvent::Number(_) => {}
        }
    }
}

/// Gemini streams are lists of responses where events are not asked for.
fn steps_to_response(path: &JsonPath) -> usize {
    usize::from(path.index(0).is_some())
}
