//! A call of a language model, as its request says.

use super::body::{BodyFacts, BodyFault};
use super::dialect::LlmDialect;
use super::rewrite::BodyEdit;
use super::settings::{LlmSpec, OtherCalls};
use super::usage::TokenUsage;
use crate::amounts::MeterAmounts;
use crate::error::{CostError, CostErrorKind};

/// A call of a language model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmRequest {
    /// Its API.
    pub dialect: LlmDialect,
    /// The model, from the body or the path; what has more than 256 bytes is left out.
    pub model: Option<String>,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// Whether the response is generated behind the call, and fetched by others.
    pub background: bool,
    /// Estimate of the tokens of the prompt.
    pub prompt_tokens: u64,
    /// The most tokens that all its choices may have together, if it says so.
    pub max_output_tokens: Option<u64>,
    edit: Option<BodyEdit>,
    asks_for_usage: bool,
}

impl LlmRequest {
    /// Longest body that is read.
    pub const BODY_BYTES_MAX: usize = 32 << 20;

    /// Reads a request: path without its query, and the whole body. `None` if it is no call of a language model and the
    /// route lets such requests pass.
    pub fn read(spec: &LlmSpec, path: &str, body: &[u8]) -> Result<Option<LlmRequest>, CostError> {
        let of_path = spec.dialect.or_else(|| LlmDialect::of_path(path));
        if body.len() > Self::BODY_BYTES_MAX {
            return Err(CostErrorKind::BodyTooLarge.error("the body is larger than 32 MiB"));
        }
        let facts = match BodyFacts::read(body, spec.vocabulary.as_ref()) {
            Ok(facts) => facts,
            // Files and audio are no JSON, and have paths of their own.
            Err(BodyFault::Json(_)) if of_path.is_none() => return other(spec),
            Err(fault) => return Err(fault.error()),
        };
        let Some(dialect) = of_path.or_else(|| LlmDialect::of_fields(|name| facts.has(name))) else {
            return other(spec);
        };
        if !facts.is_object() {
            return Err(CostErrorKind::BadBody.error("the body is not a JSON object"));
        }
        let background = facts.background && dialect == LlmDialect::Responses;
        if background && !spec.background {
            return Err(CostErrorKind::BackgroundCall.error(
                "`background: true` is not served here: the tokens of such a response are not reported to the call; leave it out",
            ));
        }
        let stream = facts.stream || path.to_ascii_lowercase().ends_with(":streamgeneratecontent");
        let edit = (spec.include_usage && stream && dialect.reports_on_request()).then(|| facts.usage_edit()).flatten();
        Ok(Some(LlmRequest {
            dialect,
            stream,
            background,
            prompt_tokens: facts.prompt_tokens(spec.counter),
            max_output_tokens: facts.max_output_tokens(dialect),
            edit,
            asks_for_usage: facts.asks_for_usage(),
            model: facts.model.or_else(|| model_of(path)),
        }))
    }

    /// The body to forward, if it differs from the one that was read: the same bytes, and `include_usage`.
    pub fn rewritten(&self, body: &[u8]) -> Option<Vec<u8>> {
        self.edit.as_ref().map(|edit| edit.apply(body))
    }

    /// Output tokens to reserve before the request is forwarded. A stream is extended later; anything else cannot be.
    pub fn output_reservation(&self, spec: &LlmSpec) -> u64 {
        if !self.dialect.generates() {
            return 0;
        }
        match (self.max_output_tokens, self.stream) {
            (Some(most), true) => most.min(spec.reserve),
            (Some(most), false) => most,
            (None, _) => spec.reserve,
        }
    }

    /// The amounts to reserve before the request is forwarded.
    pub fn reservation(&self, spec: &LlmSpec) -> MeterAmounts {
        let usage = TokenUsage { input: self.prompt_tokens, output: self.output_reservation(spec), cached: 0 };
        spec.meters.amounts(&usage)
    }

    /// Whether the report of usage is added to the stream, so that it is removed again.
    pub(super) fn adds_usage(&self) -> bool {
        self.edit.is_some()
    }

    /// Whether the caller asked for a report in the stream.
    pub(super) fn asks_for_usage(&self) -> bool {
        self.asks_for_usage
    }
}

fn other(spec: &LlmSpec) -> Result<Option<LlmRequest>, CostError> {
    match spec.others {
        OtherCalls::Pass => Ok(None),
        OtherCalls::Reject => Err(CostErrorKind::UnknownCall.error("this is no call of a language model")),
    }
}

/// The model in `/v1beta/models/NAME:generateContent` and `/openai/deployments/NAME/…`.
fn model_of(path: &str) -> Option<String> {
    let after = |mark: &str| path.split_once(mark).map(|(_, rest)| rest);
    let name = match after("/deployments/") {
        Some(rest) => rest.split('/').next()?,
        None => after("/models/")?.split(':').next()?,
    };
    (!name.is_empty() && name.len() <= 256).then(|| name.to_owned())
}
