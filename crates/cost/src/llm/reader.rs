//! Reads the usage of a response while it passes.

use bytes::Bytes;

use super::dialect::LlmDialect;
use super::ending::Ending;
use super::events_body::EventsBody;
use super::json_body::JsonBody;
use super::passage::{Passage, Passages, StreamPoint};
use super::request::LlmRequest;
use super::settings::{LlmSpec, OnExhausted};
use super::tally::UsageTally;
use super::usage::TokenUsage;

/// Reads the usage of one response. Its body must come without a content coding: remove `Accept-Encoding` from the request.
///
/// A stream is passed on in whole events: at most one is held, and none that is longer than 256 KiB. So it can be ended
/// after any passage. Everything else is passed on as it comes, byte for byte.
#[derive(Debug)]
pub struct UsageReader {
    dialect: LlmDialect,
    reports: bool,
    body: ResponseBody,
    tally: UsageTally,
    /// Output tokens that are charged if the provider reports none: what is reserved of a response that was generated as a
    /// whole, however little of it passed.
    unreported: u64,
    has_ended: bool,
}

#[derive(Debug)]
enum ResponseBody {
    Events(EventsBody),
    Json(JsonBody),
    /// A media type that is not known: its bytes are counted as text.
    Opaque,
    /// A refusal of the upstream, which costs nothing.
    Failed,
}

impl UsageReader {
    /// A reader for the response to `request`, from its head.
    pub fn new(request: &LlmRequest, spec: &LlmSpec, status: u16, content_type: Option<&str>) -> UsageReader {
        let media = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let is_json = media.eq_ignore_ascii_case("application/json") || media.to_ascii_lowercase().ends_with("+json");
        let is_failed = !(200..300).contains(&status);
        let is_events = media.eq_ignore_ascii_case("text/event-stream");
        let is_stream = (request.stream || is_events) && !request.background;
        let body = match () {
            () if is_failed => ResponseBody::Failed,
            () if is_events => ResponseBody::Events(EventsBody::new(request.adds_usage())),
            () if is_json || media.is_empty() => {
                ResponseBody::Json(JsonBody::new(request.dialect == LlmDialect::Gemini))
            }
            () => ResponseBody::Opaque,
        };
        let prompt = if is_failed { 0 } else { request.prompt_tokens };
        UsageReader {
            dialect: request.dialect,
            reports: request.asks_for_usage(),
            body,
            tally: UsageTally::new(spec.counter, prompt),
            unreported: if is_failed || is_stream { 0 } else { request.output_reservation(spec) },
            has_ended: false,
        }
    }

    /// Reads a chunk of the body, and adds to `out` what is to be passed on.
    pub fn push(&mut self, chunk: Bytes, out: &mut Vec<Passage>) {
        if self.has_ended || chunk.is_empty() {
            return;
        }
        let mut passages = Passages::new(out);
        match &mut self.body {
            ResponseBody::Events(events) => events.push(&chunk, &mut self.tally, &mut passages),
            ResponseBody::Json(json) => json.push(&chunk, &mut self.tally, &mut passages),
            ResponseBody::Opaque => {
                self.tally.add_opaque(chunk.len() as u64);
                passages.add_whole(Vec::new(), &chunk, 0..chunk.len(), self.tally.point());
            }
            ResponseBody::Failed => passages.add_whole(Vec::new(), &chunk, 0..chunk.len(), StreamPoint::default()),
        }
        passages.close(&chunk);
    }

    /// The body ends: adds to `out` what was held.
    pub fn end(&mut self, out: &mut Vec<Passage>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let mut passages = Passages::new(out);
        match &mut self.body {
            ResponseBody::Events(events) => events.end(&mut self.tally, &mut passages),
            ResponseBody::Json(json) => json.end(&mut self.tally, &mut passages),
            ResponseBody::Opaque | ResponseBody::Failed => {}
        }
    }

    /// What to charge if the response ended now: what the provider reported, or else what was passed on. `passed` are the
    /// output tokens of that, for a stream that is held to a budget. A response that is no stream keeps its reservation
    /// until it is reported: the provider has generated all of it.
    pub fn charge(&self, passed: Option<u64>) -> TokenUsage {
        let usage = self.tally.usage();
        let output = match passed {
            _ if self.is_reported() => usage.output,
            passed => passed.unwrap_or(usage.output).max(self.unreported),
        };
        TokenUsage { output, ..usage }
    }

    /// Usage so far: what the provider reported, or an estimate from what was streamed.
    pub fn usage(&self) -> TokenUsage {
        self.tally.usage()
    }

    /// Whether the provider has reported the usage of the whole response.
    pub fn is_reported(&self) -> bool {
        self.tally.is_final()
    }

    /// Ends a stream because the budget is spent: what follows the last passage that was passed on, in the provider's
    /// form. A stream of which nothing was passed on ends with an error. Empty if the response is no stream, which cannot
    /// be ended cleanly.
    pub fn exhaust(&mut self, how: OnExhausted, message: &str, after: &StreamPoint) -> Bytes {
        if std::mem::replace(&mut self.has_ended, true) {
            return Bytes::new();
        }
        let (start, list) = match &mut self.body {
            ResponseBody::Events(events) => match (events.give_up(), after.after_cr) {
                (true, _) => ("\n\n", None),
                (false, true) => ("\n", None),
                (false, false) => ("", None),
            },
            ResponseBody::Json(json) => match (json.give_up(), after.has_started) {
                (true, true) => ("", Some(",")),
                (true, false) => ("", Some("[")),
                (false, _) => return Bytes::new(),
            },
            ResponseBody::Opaque | ResponseBody::Failed => return Bytes::new(),
        };
        let ending = Ending {
            how: if after.has_started { how } else { OnExhausted::Cut },
            message,
            after,
            identity: &self.tally.identity,
            usage: TokenUsage { output: after.output_tokens, ..self.tally.usage() },
            reports: self.reports,
        };
        Bytes::from(format!("{start}{}", self.dialect.ending(&ending, list)))
    }
}
