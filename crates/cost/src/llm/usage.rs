//! Tokens that a call has used, as reported by providers.

use crate::json::JsonPath;

/// Tokens that a call has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the prompt, cached ones included.
    pub input: u64,
    /// Generated tokens, hidden reasoning included.
    pub output: u64,
    /// Tokens of the prompt that came from the provider's cache.
    pub cached: u64,
}

/// The fields of a report. Each is replaced by a later one: reports of a stream are running totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedUsage {
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
    /// Anthropic counts these beside the input.
    cache_write: Option<u64>,
    cache_read: Option<u64>,
    /// Gemini counts these beside the output, and beside the input.
    thoughts: Option<u64>,
    tool_input: Option<u64>,
    total: Option<u64>,
}

/// Where providers report: OpenAI and Anthropic, the start of an Anthropic stream, the end of a stream of responses,
/// Gemini.
const PLACES: [&[&str]; 4] = [&["usage"], &["message", "usage"], &["response", "usage"], &["usageMetadata"]];

/// The number of steps to the report around `path`, the report itself included; `from` are those to the response.
pub(super) fn steps_to_report(path: &JsonPath, from: usize) -> Option<usize> {
    PLACES.iter().find(|place| path.starts_with(from, place)).map(|place| from + place.len())
}

impl ReportedUsage {
    /// Takes the number at a field of a report, whose own path has `steps`.
    pub(super) fn set(&mut self, path: &JsonPath, steps: usize, amount: u64) {
        let (Some(field), inner) = (path.key(steps), path.key(steps + 1)) else { return };
        let place = match (field, inner) {
            ("prompt_tokens" | "input_tokens" | "promptTokenCount", None) => &mut self.input,
            ("completion_tokens" | "output_tokens" | "candidatesTokenCount", None) => &mut self.output,
            ("prompt_tokens_details" | "input_tokens_details", Some("cached_tokens")) => &mut self.cached,
            ("cachedContentTokenCount", None) => &mut self.cached,
            ("cache_creation_input_tokens", None) => &mut self.cache_write,
            ("cache_read_input_tokens", None) => &mut self.cache_read,
            ("thoughtsTokenCount", None) => &mut self.thoughts,
            ("toolUsePromptTokenCount", None) => &mut self.tool_input,
            ("total_tokens" | "totalTokenCount", None) => &mut self.total,
            _ => return,
        };
        let is_field = path.depth() == steps + 1 + usize::from(inner.is_some());
        if is_field {
            *place = Some(amount);
        }
    }

    /// Replaces the fields that a later report has.
    pub(super) fn merge(&mut self, later: &ReportedUsage) {
        *self = ReportedUsage {
            input: later.input.or(self.input),
            output: later.output.or(self.output),
            cached: later.cached.or(self.cached),
            cache_write: later.cache_write.or(self.cache_write),
            cache_read: later.cache_read.or(self.cache_read),
            thoughts: later.thoughts.or(self.thoughts),
            tool_input: later.tool_input.or(self.tool_input),
            total: later.total.or(self.total),
        };
    }

    /// Tokens of the prompt, if they were reported.
    pub(super) fn input(&self) -> Option<u64> {
        let beside = [self.cache_write, self.cache_read, self.tool_input].into_iter().flatten();
        Some(beside.fold(self.input?, u64::saturating_add))
    }

    /// Generated tokens, if they were reported.
    pub(super) fn output(&self) -> Option<u64> {
        let parts = [self.output, self.thoughts].into_iter().flatten().reduce(u64::saturating_add);
        parts.or_else(|| Some(self.total?.saturating_sub(self.input()?)))
    }

    /// Tokens from the provider's cache.
    pub(super) fn cached(&self) -> u64 {
        self.cached.or(self.cache_read).unwrap_or(0)
    }
}
